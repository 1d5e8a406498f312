"""Step 4 of the walk, z → normality: a boundary around the positive region."""

from denspu.detectors.classical import LocalOutlierFactor, Mahalanobis, OneClassSVM
from denspu.detectors.isolation_forest import ExtendedIsolationForest, IsolationForest
from denspu.detectors.neighbours import DensityRatio, KNNDistance, SphereDensity

__all__ = [
    "DensityRatio",
    "ExtendedIsolationForest",
    "IsolationForest",
    "KNNDistance",
    "LocalOutlierFactor",
    "Mahalanobis",
    "OneClassSVM",
    "SphereDensity",
]
