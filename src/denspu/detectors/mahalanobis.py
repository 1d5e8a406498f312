"""Distance from one Gaussian cloud, with a covariance that is safe to invert."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from sklearn.covariance import ledoit_wolf

from denspu._random import Randomness
from denspu._typing import FloatArray
from denspu.base import CONTAMINATION_RULE, Detector, Rules

CHUNK_ROWS = 8_192
RIDGE = 1e-9
"""Added to the diagonal, relative to its mean: constant columns stay invertible."""


class Mahalanobis(Detector):
    """Score rows by minus their Mahalanobis distance from the training mean.

    The covariance is shrunk towards a multiple of the identity by Ledoit and Wolf's
    formula, so that it works with fewer rows than features.

    Parameters
    ----------
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows beyond the threshold; ``"auto"`` is 0.05.
    """

    _rules: ClassVar[Rules] = {"contamination": CONTAMINATION_RULE}

    def __init__(self, *, contamination: float | Literal["auto"] = "auto") -> None:
        self.contamination = contamination

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        Z = Z.astype(np.float64, copy=False)
        self.mean_ = Z.mean(axis=0)
        covariance, shrinkage = np.eye(Z.shape[1]), 1.0
        if len(Z) > 1:
            covariance, shrinkage = ledoit_wolf(Z)
        self.shrinkage_ = float(shrinkage)
        level = np.trace(covariance) / len(covariance)
        ridge = RIDGE * level if level > 0 else 1.0
        self.cholesky_ = np.tril(
            cho_factor(covariance + ridge * np.eye(len(covariance)), lower=True)[0]
        )

    def _score(self, Z: FloatArray) -> FloatArray:
        out = np.empty(len(Z))
        for start in range(0, len(Z), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            centred = (Z[rows] - self.mean_).T
            whitened = solve_triangular(self.cholesky_, centred, lower=True)
            out[rows] = -np.sqrt((whitened**2).sum(0))
        return out
