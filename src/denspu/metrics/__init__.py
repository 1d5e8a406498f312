"""How good is it? ``oracle_metrics`` alone needs true labels: for benchmarks only."""

from denspu.metrics._decisions import (
    DeclaredRows,
    ScarCheck,
    ScarTest,
    ThresholdChoice,
    TrivialCheck,
    benjamini_hochberg,
    choose_threshold,
    conformal_p_values,
    declared_negatives,
    declared_positives,
    oracle_metrics,
    scar_check,
    trivial_check,
)
from denspu.metrics._pu import (
    Figure,
    PUReport,
    Sensitivity,
    prior_sensitivity,
    pu_metrics,
)

__all__ = [
    "DeclaredRows",
    "Figure",
    "PUReport",
    "ScarCheck",
    "ScarTest",
    "Sensitivity",
    "ThresholdChoice",
    "TrivialCheck",
    "benjamini_hochberg",
    "choose_threshold",
    "conformal_p_values",
    "declared_negatives",
    "declared_positives",
    "oracle_metrics",
    "prior_sensitivity",
    "pu_metrics",
    "scar_check",
    "trivial_check",
]
