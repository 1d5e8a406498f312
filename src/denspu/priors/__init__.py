"""How many of the unlabelled rows are positive, estimated without one negative."""

from denspu.exceptions import PriorDisagreementWarning
from denspu.priors.by_features import KM2, PenL1, TIcE
from denspu.priors.by_scores import (
    DEDPUL,
    BestBin,
    DensityRatioPrior,
    ElkanNoto,
    Mixture,
    PriorEstimate,
    estimate_prior_from_scores,
    mixture_share,
)
from denspu.priors.estimate import (
    PriorEstimator,
    PriorReport,
    estimate_prior,
    prior_from_scores,
)

__all__ = [
    "DEDPUL",
    "KM2",
    "BestBin",
    "DensityRatioPrior",
    "ElkanNoto",
    "Mixture",
    "PenL1",
    "PriorDisagreementWarning",
    "PriorEstimate",
    "PriorEstimator",
    "PriorReport",
    "TIcE",
    "estimate_prior",
    "estimate_prior_from_scores",
    "mixture_share",
    "prior_from_scores",
]
