"""How many of the unlabelled rows are positive, estimated without one negative."""

from denspu.exceptions import PriorDisagreementWarning
from denspu.priors._base import PriorEstimator
from denspu.priors._report import PriorReport
from denspu.priors.bbe import BestBin
from denspu.priors.dedpul import DEDPUL
from denspu.priors.density_ratio import (
    DensityRatioPrior,
    PriorEstimate,
    estimate_prior_from_scores,
)
from denspu.priors.elkan_noto import ElkanNoto
from denspu.priors.estimate import estimate_prior, prior_from_scores
from denspu.priors.km2 import KM2
from denspu.priors.mixture import Mixture, mixture_share
from denspu.priors.pen_l1 import PenL1
from denspu.priors.tice import TIcE

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
