"""One Gaussian cloud, a kernel machine, the density of neighbours: three classics."""

from __future__ import annotations

from typing import Literal

import numpy as np
import sklearn.neighbors
import sklearn.svm
from scipy.linalg import cho_factor, solve_triangular
from sklearn.covariance import ledoit_wolf

from denspu._parameters import About, Number, OneOf, Whole, setting
from denspu._random import Randomness
from denspu._typing import FloatArray
from denspu.base import Detector
from denspu.exceptions import InvalidInputError


class Mahalanobis(Detector):
    """Distance from one Gaussian cloud.

    Minus the Mahalanobis distance from the training mean. The covariance is shrunk
    towards a multiple of the identity by Ledoit and Wolf's formula, so that it works
    with fewer rows than features.
    """

    about = About(
        key="mahalanobis",
        paper="Ledoit and Wolf 2004, A well-conditioned estimator for covariance",
    )

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        Z = Z.astype(np.float64, copy=False)
        self.mean_ = Z.mean(axis=0)
        covariance, shrinkage = np.eye(Z.shape[1]), 1.0
        if len(Z) > 1:
            covariance, shrinkage = ledoit_wolf(Z)
        self.shrinkage_ = float(shrinkage)
        # Constant columns stay invertible.
        level = np.trace(covariance) / len(covariance)
        ridge = 1e-9 * level if level > 0 else 1.0
        self.cholesky_ = np.tril(
            cho_factor(covariance + ridge * np.eye(len(covariance)), lower=True)[0]
        )

    def _score(self, Z: FloatArray) -> FloatArray:
        out, step = np.empty(len(Z)), 8_192
        for start in range(0, len(Z), step):
            rows = slice(start, start + step)
            centred = (Z[rows] - self.mean_).T
            whitened = solve_triangular(self.cholesky_, centred, lower=True)
            out[rows] = -np.sqrt((whitened**2).sum(0))
        return out


class OneClassSVM(Detector):
    """A kernel boundary around the rows.

    Cost grows with the square of the rows; use it on thousands, not millions. With
    ``contamination="auto"`` the machine keeps its own boundary, which follows ``nu``.
    """

    about = About(
        key="one_class_svm",
        paper="Schölkopf et al. 2001, Support of a high-dimensional distribution",
    )

    nu: float = setting(
        0.05,
        Number(0, 1, "right"),
        doc="Upper bound on the share of training rows left outside.",
    )
    gamma: float | Literal["scale", "auto"] = setting(
        "scale",
        OneOf("scale", "auto"),
        Number(0, closed="neither"),
        doc="Width of the Gaussian kernel, as in scikit-learn.",
    )

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        self.model_ = sklearn.svm.OneClassSVM(nu=self.nu, gamma=self.gamma)
        self.model_.random_state = 0  # unused, but else asked of NumPy's global state
        self.model_.fit(Z)

    def _score(self, Z: FloatArray) -> FloatArray:
        return self.model_.score_samples(Z)

    def _natural_threshold(self) -> float:
        return float(self.model_.offset_[0])


class LocalOutlierFactor(Detector):
    """Density relative to the nearest neighbours, for new points.

    With ``contamination="auto"`` the threshold is the original paper's factor of 1.5.
    """

    about = About(key="local_outlier_factor", paper="Breunig et al. 2000, LOF")

    n_neighbors: int = setting(
        20, Whole(1), doc="Neighbours (all other rows, where there are fewer)."
    )
    n_jobs: int | None = setting(None, OneOf(None), Whole(), doc="Cores used.")

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
