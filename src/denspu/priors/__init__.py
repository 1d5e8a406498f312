"""How many of the unlabelled rows are positive, estimated without one negative."""

from denspu.priors.density_ratio import PriorEstimate, estimate_prior_from_scores
from denspu.priors.mixture import mixture_share

__all__ = ["PriorEstimate", "estimate_prior_from_scores", "mixture_share"]
