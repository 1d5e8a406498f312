"""Step 4 of the walk, z → normality: a boundary around the positive region."""

from denspu.detectors.isolation_forest import IsolationForest
from denspu.detectors.local_outlier_factor import LocalOutlierFactor
from denspu.detectors.one_class_svm import OneClassSVM

__all__ = ["IsolationForest", "LocalOutlierFactor", "OneClassSVM"]
