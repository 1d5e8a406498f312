"""KM2: the share by kernel mean embedding (Ramaswamy, Scott and Tewari 2016).

φ(P) and φ(U) are the means of P and U in the space of a Gaussian kernel. Taking P out
of U moves to λ φ(U) + (1-λ) φ(P), λ ≥ 1, and stays among the distributions as long as
1 - 1/λ is at most the share of P inside U. The distance to the nearest distribution

    d(λ) = min over w on the simplex of ‖ λ φ(U) + (1-λ) φ(P) - Σ w_i φ(x_i) ‖

is convex and flat up to there. λ is where its slope passes ν = 1/√min(n_P, n_U), and
the share is 1 - 1/λ.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from denspu._parameters import Whole
from denspu._typing import FloatArray
from denspu.base import Rules
from denspu.priors._base import PriorEstimator

WIDTHS = (0.25, 0.5, 1.0, 2.0)
"""Kernel widths tried, in median distances; that with the largest ‖φ(P)-φ(U)‖ wins."""

LARGEST = 0.99
"""Shares above this are not told apart."""

ALIKE = 2.0
"""P and U are told apart when ‖φ(P)-φ(U)‖² is this many times what samples of one
distribution would show, (1/n_P + 1/n_U)(1 - mean K)."""

HALVINGS = 10
STEPS = 300
STILL = 1e-7


class KM2(PriorEstimator):
    """Where taking P out of U leaves the distributions, by the slope of the distance.

    Memory grows with the square of ``max_rows`` alone: larger samples are drawn from.

    Parameters
    ----------
    max_rows : int, default=300
        Rows drawn from P, and from U, for one kernel.
    n_draws : int, default=3
        Draws that are averaged where a sample has more rows than that.
    """

    sees = "features"
    _rules: ClassVar[Rules] = {"max_rows": (Whole(10),), "n_draws": (Whole(1),)}

    def __init__(self, *, max_rows: int = 300, n_draws: int = 3) -> None:
        self.max_rows = max_rows
        self.n_draws = n_draws

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        draws = self.n_draws if max(len(P), len(U)) > self.max_rows else 1
        found = [
            share_of_kernel(self._drawn(P, rng), self._drawn(U, rng))
            for _ in range(draws)
        ]
        return float(np.mean(found))

    def _drawn(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        if len(X) <= self.max_rows:
            return X
        return X[rng.choice(len(X), self.max_rows, replace=False)]


def share_of_kernel(P: FloatArray, U: FloatArray) -> float:
    """Return the share of P inside U from one kernel matrix."""
    n_p, n_u = len(P), len(U)
    difference = np.r_[np.full(n_u, 1 / n_u), np.full(n_p, -1 / n_p)]
    K, gap = best_kernel(np.concatenate([U, P]), difference)
    noise = (1 / n_p + 1 / n_u) * (1 - float(K.mean()))
    if gap**2 <= ALIKE * noise:
        return LARGEST
    slope = min(min(n_p, n_u) ** -0.5, 0.9 * gap)
    mean_p = np.r_[np.zeros(n_u), np.full(n_p, 1 / n_p)]
    low, high = 1.0, 1 / (1 - LARGEST)
    w = np.r_[np.full(n_u, 1 / n_u), np.zeros(n_p)]
    step = 1 / float(np.linalg.eigvalsh(K)[-1])
    for _ in range(HALVINGS):
        # halve on the scale of shares, where the answer is wanted
        share = 1 - (1 / low + 1 / high) / 2
        middle = 1 / (1 - share)
        target = mean_p + middle * difference
        w = nearest_distribution(K, target, w, step)
        rest = target - w
        distance = np.sqrt(max(float(rest @ K @ rest), 0.0))
        steep = distance > 0 and float(difference @ K @ rest) / distance > slope
        low, high = (low, middle) if steep else (middle, high)
    return 1 - (1 / low + 1 / high) / 2


def best_kernel(X: FloatArray, difference: FloatArray) -> tuple[FloatArray, float]:
    """Return the Gaussian kernel that tells P from U best, and ‖φ(P)-φ(U)‖ under it."""
    squared = cdist(X, X, "sqeuclidean")
    scale = float(np.median(squared)) or 1.0
    best, kernel = -1.0, squared
    for width in WIDTHS:
        K = np.exp(squared / (-2 * width**2 * scale))
        gap = float(np.sqrt(max(difference @ K @ difference, 0.0)))
        if gap > best:
            best, kernel = gap, K
    return kernel, best


def nearest_distribution(
    K: FloatArray, target: FloatArray, start: FloatArray, step: float
) -> FloatArray:
    """Return the w on the simplex that minimises (target-w)' K (target-w).

    Accelerated projected gradient (Beck and Teboulle 2009) from ``start``.
    """
    w = ahead = start
    momentum = 1.0
    for _ in range(STEPS):
        last = w
        w = on_simplex(ahead - step * (K @ (ahead - target)))
        if float((ahead - w) @ (w - last)) > 0:  # overshot: start the momentum anew
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = w + (momentum - 1) / following * (w - last)
        momentum = following
        if np.abs(w - last).max() < STILL:
            break
    return w


def on_simplex(v: FloatArray) -> FloatArray:
    """Return the nearest point with entries of at least 0 that sum to 1."""
    falling = np.sort(v)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(v) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(v - excess[last], 0.0)
