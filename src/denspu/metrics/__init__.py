"""How good is it? ``_oracle`` alone needs true labels, and is for benchmarks only."""

from denspu.metrics._conformal import (
    DeclaredRows,
    benjamini_hochberg,
    conformal_p_values,
    declared_negatives,
    declared_positives,
)
from denspu.metrics._oracle import oracle_metrics
from denspu.metrics._pu import Figure, PUReport, pu_metrics
from denspu.metrics._pu_checks import (
    ScarCheck,
    ScarTest,
    TrivialCheck,
    scar_check,
    trivial_check,
)
from denspu.metrics._pu_sensitivity import Sensitivity, prior_sensitivity
from denspu.metrics._pu_threshold import ThresholdChoice, choose_threshold

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
