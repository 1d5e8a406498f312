"""How good is it? ``_oracle`` alone needs true labels, and is for benchmarks only."""

from denspu.metrics._checks import (
    ScarCheck,
    ScarTest,
    TrivialCheck,
    scar_check,
    trivial_check,
)
from denspu.metrics._decisions import (
    DeclaredRows,
    ThresholdChoice,
    benjamini_hochberg,
    choose_threshold,
    conformal_p_values,
    declared_negatives,
    declared_positives,
)
from denspu.metrics._oracle import oracle_metrics
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
