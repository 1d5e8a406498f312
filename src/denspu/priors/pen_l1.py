"""Penalised L1 distance (du Plessis, Niu and Sugiyama 2015, 2017).

θ p(x | y=1) must lie below p_U(x) everywhere for θ up to the share π. The L1 distance
of the two, made infinite where it does not, falls until θ = π and rises after. With
r(x) = Σ α_l φ_l(x) - 1, Gaussian φ_l, α_l ≥ 0 and a ridge (λ/2)‖α‖² its dual has the
solution

    α_l = max(0, β_l) / λ,   β_l = θ mean_P φ_l - mean_U φ_l
    penL1(θ) = Σ α_l β_l - θ + 1

and π is the θ with the least value. The width of φ and λ are chosen for each θ by the
value on held-out rows.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from denspu._parameters import Whole
from denspu._typing import FloatArray, IntArray
from denspu.base import Rules
from denspu.exceptions import InvalidInputError
from denspu.priors._base import PriorEstimator

WIDTHS = np.geomspace(0.1, 2.0, 6)
"""Kernel widths tried, in median distances."""

RIDGES = np.geomspace(1e-3, 1e1, 7)
GRID = np.linspace(0.0, 1.0, 201)
BLOCK = 10_000


class PenL1(PriorEstimator):
    """Share with the least penalised L1 distance between θ p(x | y=1) and p_U(x).

    Parameters
    ----------
    n_centers : int, default=200
        Kernels, centred on rows drawn from P and U.
    folds : int, default=5
        For width and ridge; at most one a row of the smaller sample, which must have
        two.
    """

    sees = "features"
    _rules: ClassVar[Rules] = {"n_centers": (Whole(1),), "folds": (Whole(2, 100),)}

    def __init__(self, *, n_centers: int = 200, folds: int = 5) -> None:
        self.n_centers = n_centers
        self.folds = folds

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        folds = min(self.folds, len(P), len(U))
        if folds < 2:
            raise InvalidInputError(
                f"positive has {len(P)} row(s), unlabeled {len(U)}; 'pen_l1' chooses "
                "its kernels by rows held out and needs at least 2 of each. Give more "
                "rows, or take an estimator that looks at scores, 'density_ratio', say."
            )
        everything = np.concatenate([P, U])
        few = rng.permutation(len(everything))[: self.n_centers]
        centers = everything[few]
        fold_p, fold_u = (rng.permutation(len(X)) % folds for X in (P, U))
        scale = float(np.median(cdist(centers, centers))) or 1.0
        held_out, value = [], []
        for width in WIDTHS * scale:
            p = fold_means(P, centers, width, fold_p, folds)
            u = fold_means(U, centers, width, fold_u, folds)
            found = [_both_values(p, u, ridge, fold_p, fold_u) for ridge in RIDGES]
            held_out += [h for h, _ in found]
            value += [v for _, v in found]
        best = np.argmax(held_out, axis=0)
        curve = np.array(value)[best, np.arange(len(GRID))]
        return float(GRID[np.argmin(curve)])


def fold_means(
    X: FloatArray, centers: FloatArray, width: float, fold: IntArray, folds: int
) -> FloatArray:
    """Return the mean of each kernel over each fold."""
    total = np.zeros((folds, len(centers)))
    for start in range(0, len(X), BLOCK):
        some = slice(start, start + BLOCK)
        K = np.exp(cdist(X[some], centers, "sqeuclidean") / (-2 * width**2))
        for k in range(folds):
            total[k] += K[fold[some] == k].sum(axis=0)
    return total / np.bincount(fold, minlength=folds)[:, None]


def _both_values(
    p: FloatArray, u: FloatArray, ridge: float, fold_p: IntArray, fold_u: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return Σ α_l β_l on held-out rows, and penL1 on all rows, for each θ."""
    n_p, n_u = np.bincount(fold_p)[:, None], np.bincount(fold_u)[:, None]
    all_p, all_u = (p * n_p).sum(0) / n_p.sum(), (u * n_u).sum(0) / n_u.sum()
    held = np.zeros(len(GRID))
    for k in range(len(p)):
        rest_p = (all_p * n_p.sum() - p[k] * n_p[k]) / (n_p.sum() - n_p[k])
        rest_u = (all_u * n_u.sum() - u[k] * n_u[k]) / (n_u.sum() - n_u[k])
        alpha = np.maximum(beta(rest_p, rest_u), 0) / ridge
        held += (alpha * beta(p[k], u[k])).sum(axis=1)
    return held, penalised(all_p, all_u, ridge)


def beta(p: FloatArray, u: FloatArray) -> FloatArray:
    """Return θ p - u, one row for each θ of the grid."""
    return GRID[:, None] * p - u


def penalised(p: FloatArray, u: FloatArray, ridge: float) -> FloatArray:
    """Return penL1(θ) for each θ of the grid."""
    return (np.maximum(beta(p, u), 0) ** 2).sum(axis=1) / ridge - GRID + 1
