"""One Gaussian cloud, a kernel machine, the density of neighbours: three classics."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import sklearn.neighbors
import sklearn.svm
from scipy.linalg import cho_factor, solve_triangular
from sklearn.covariance import ledoit_wolf

from denspu._parameters import Number, OneOf, Whole
from denspu._random import Randomness
from denspu._typing import FloatArray
from denspu.base import CONTAMINATION_RULE, Detector, Rules
from denspu.exceptions import InvalidInputError

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


class OneClassSVM(Detector):
    """Separate the rows from the origin in a kernel space.

    Cost grows with the square of the rows; use it on thousands, not millions.

    Parameters
    ----------
    nu : float in (0, 1], default=0.05
        Upper bound on the share of training rows left outside.
    gamma : "scale", "auto" or float, default="scale"
        Width of the Gaussian kernel, as in scikit-learn.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows beyond the threshold; ``"auto"`` keeps the
        machine's own boundary, which follows ``nu``.
    """

    _rules: ClassVar[Rules] = {
        "nu": (Number(0, 1, "right"),),
        "gamma": (OneOf("scale", "auto"), Number(0, closed="neither")),
        "contamination": CONTAMINATION_RULE,
    }

    def __init__(
        self,
        *,
        nu: float = 0.05,
        gamma: float | Literal["scale", "auto"] = "scale",
        contamination: float | Literal["auto"] = "auto",
    ) -> None:
        self.nu = nu
        self.gamma = gamma
        self.contamination = contamination

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        self.model_ = sklearn.svm.OneClassSVM(nu=self.nu, gamma=self.gamma)
        self.model_.random_state = 0  # unused, but else asked of NumPy's global state
        self.model_.fit(Z)

    def _score(self, Z: FloatArray) -> FloatArray:
        return self.model_.score_samples(Z)

    def _natural_threshold(self) -> float:
        return float(self.model_.offset_[0])


class LocalOutlierFactor(Detector):
    """Compare a row's density with that of its nearest neighbours.

    Parameters
    ----------
    n_neighbors : int, default=20
        Neighbours (all other rows, where there are fewer).
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows beyond the threshold; ``"auto"`` puts the threshold
        at the original paper's factor of 1.5.
    n_jobs : int or None
        Cores used.
    """

    _rules: ClassVar[Rules] = {
        "n_neighbors": (Whole(1),),
        "contamination": CONTAMINATION_RULE,
        "n_jobs": (OneOf(None), Whole()),
    }

    def __init__(
        self,
        *,
        n_neighbors: int = 20,
        contamination: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.contamination = contamination
        self.n_jobs = n_jobs

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        if len(Z) < 2:
            raise InvalidInputError(
                "LocalOutlierFactor compares a row with its neighbours, so it needs "
                "at least 2 rows. Got 1 sample."
            )
        self.model_ = sklearn.neighbors.LocalOutlierFactor(
            n_neighbors=max(1, min(self.n_neighbors, len(Z) - 1)),
            novelty=True,
            n_jobs=self.n_jobs,
        ).fit(Z)

    def _score(self, Z: FloatArray) -> FloatArray:
        return self.model_.score_samples(Z)

    def _natural_threshold(self) -> float:
        return -1.5
