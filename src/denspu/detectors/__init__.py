"""Step 4 of the walk, z → normality: a boundary around the positive region."""

from denspu.detectors.density_ratio import DensityRatio
from denspu.detectors.extended_isolation_forest import ExtendedIsolationForest
from denspu.detectors.isolation_forest import IsolationForest
from denspu.detectors.knn import KNNDistance
from denspu.detectors.local_outlier_factor import LocalOutlierFactor
from denspu.detectors.mahalanobis import Mahalanobis
from denspu.detectors.one_class_svm import OneClassSVM
from denspu.detectors.sphere_density import SphereDensity

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
