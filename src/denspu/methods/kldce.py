"""LDCE and KLDCE: U as noisy negatives, with the noise mended in one centroid.

Shi, Pan, Yang and Gong, "Positive and Unlabeled Learning via Loss Decomposition and
Centroid Estimation" (LDCE), IJCAI 2018; Gong, Shi, Liu, Zhang, Yang and Tao, "Loss
Decomposition and Centroid Estimation for Positive and Unlabeled Learning" (KLDCE),
TPAMI 2021.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import minimize
from sklearn.kernel_approximation import Nystroem

from denspu._parameters import About, Number, OneOf, Whole, setting
from denspu._random import Randomness
from denspu._typing import FloatArray
from denspu._validation import PUInput
from denspu.base import forget
from denspu.methods._classical import EmbeddingPU, RowScale, shares
from denspu.methods._evidence import POSITIVE, PRIOR_RULE

SMOOTH = 0.1
"""Width of the parabola that rounds the corner of the hinge."""

FEW_GROUPS = 5
"""Rows a group of the median of means holds at least."""


class KLDCE(EmbeddingPU):
    """U as noisy negatives, the noise mended in a centroid.

    Split the hinge loss into an even part and a centroid, and mend the centroid.

    The even part ½([1-z]₊ + [1+z]₊) needs no label. Labels enter the risk of U only
    through the centroid m of y·x: -mean(U) + 2 π_U mean(P) has no bias under SCAR. The
    centroid is searched for in an ellipsoid around this estimate.

    Attributes
    ----------
    weights_ : array
        The last is the intercept.
    centroid_ : array
    prior_, prior_in_unlabeled_ : float
    n_rounds_ : int
    """

    about = About(
        key="kldce",
        paper="Gong et al. 2021, KLDCE; Shi et al. 2018, LDCE",
        scenario="one-sample",
        needs_prior=True,
    )

    variant: Literal["rbf", "linear"] = setting(
        "rbf",
        OneOf("rbf", "linear"),
        doc='``"rbf"``: KLDCE with random landmarks. ``"linear"``: LDCE.',
    )
    prior: float | Literal["estimate"] = setting(
        "estimate", *PRIOR_RULE, doc="Share of positives in all rows."
    )
    radius: float = setting(
        0.1, Number(0), doc="b, how far the centroid may move, in its own variance."
    )
    weight_decay: float = setting(3e-3, POSITIVE, doc="λ, what large weights cost.")
    gamma: float | Literal["scale"] = setting(
        "scale",
        OneOf("scale"),
        POSITIVE,
        doc='Of the kernel exp(-gamma |x - x\'|²); ``"scale"``: 1 / columns.',
    )
    n_components: int = setting(300, Whole(1), doc="Landmarks of the kernel.")
    n_groups: int = setting(10, Whole(1), doc="Groups of the median of means.")
    max_rounds: int = setting(10, Whole(1), doc="Turns of centroid and weights.")

    def _learn(self, Z: FloatArray, data: PUInput, randomness: Randomness) -> None:
        self.scale_ = RowScale.of(Z)
        Z = self.scale_(Z)
        self.prior_, self.prior_in_unlabeled_, inside = shares(
            self.prior, "one-sample", Z, data, randomness, self.device_
        )
        self._learn_features(Z, randomness)
        rows = self._features(Z)
        free = data.unlabeled & ~data.known_negative
        positive, known = rows[data.positive], rows[data.known_negative]
        risk = Risk(positive, rows[free], known, self.weight_decay)
        mean = median_of_means(rows[free], self.n_groups, randomness.numpy("groups"))
        start = np.asarray(-mean + 2 * inside * positive.mean(axis=0))
        self.weights_, self.centroid_, self.n_rounds_ = alternate(
            risk, start, self.radius, self.max_rounds
        )

    def _learn_features(self, Z: FloatArray, randomness: Randomness) -> None:
        forget(self, "kernel_")
        if self.variant == "linear":
            return
        gamma = 1 / Z.shape[1] if isinstance(self.gamma, str) else self.gamma
        self.kernel_ = Nystroem(
            gamma=gamma,
            n_components=min(self.n_components, len(Z)),
            random_state=randomness.seed("landmarks"),
        ).fit(Z)

    def _features(self, Z: FloatArray) -> FloatArray:
        """Return features and a column of ones for the intercept."""
        rows = Z if self.variant == "linear" else self.kernel_.transform(Z)
        return np.column_stack([rows, np.ones(len(rows))])

    def _score(self, Z: FloatArray) -> FloatArray:
        return np.asarray(self._features(self.scale_(Z)) @ self.weights_)


class Risk:
    """The risk of weights at a centroid: P, known negatives, and U in two parts."""

    def __init__(
        self,
        positive: FloatArray,
        free: FloatArray,
        negative: FloatArray,
        weight_decay: float,
    ) -> None:
        self.free, self.weight_decay = free, weight_decay
        self.rows = np.concatenate([positive, negative, free])
        sizes = len(positive), len(negative), len(free)
        # How much each row counts as a positive, and as a negative.
        self.toward = np.repeat([1.0, 0.0, 0.5], sizes)
        self.away = np.repeat([0.0, 1.0, 0.5], sizes)

    def __call__(self, w: FloatArray, centroid: FloatArray) -> tuple[float, FloatArray]:
        """Return the risk and its gradient."""
        n, decayed = len(self.rows), np.r_[w[:-1], 0.0]
        share = len(self.free) / (2 * n)
        value = self.weight_decay * float(decayed @ decayed)
        value -= share * float(w @ centroid)
        gradient = 2 * self.weight_decay * decayed - share * centroid
        z = self.rows @ w
        (up, up_slope), (down, down_slope) = hinge(z), hinge(-z)
        value += float(self.toward @ up + self.away @ down) / n
        slope = self.toward * up_slope - self.away * down_slope
        return value, gradient + slope @ self.rows / n

    def solve(self, centroid: FloatArray, start: FloatArray) -> FloatArray:
        """Return the best weights at a centroid; the problem is convex."""
        found = minimize(
            self, start, args=(centroid,), jac=True, method="L-BFGS-B",
            options={"maxiter": 200},
        )  # fmt: skip
        return np.asarray(found.x)


def hinge(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return [1 - z]₊ with a rounded corner, and its slope."""
    gap = 1 - z
    inside = np.clip(gap, 0.0, SMOOTH)
    value = inside**2 / (2 * SMOOTH) + np.maximum(gap - SMOOTH, 0.0)
    return np.asarray(value), np.asarray(-inside / SMOOTH)


def alternate(
    risk: Risk, centroid: FloatArray, radius: float, max_rounds: int
) -> tuple[FloatArray, FloatArray, int]:
    """Return weights and centroid after turns of solving for one and then the other."""
    spread = risk.free - risk.free.mean(axis=0)
    first, moved = centroid, centroid
    w = risk.solve(centroid, np.zeros(len(centroid)))
    step = 0
    while step < max_rounds:
        step += 1
        moved = best_centroid(w, first, spread, radius)
        new = risk.solve(moved, w)
        change, w = np.abs(new - w).max(), new
        if change <= 1e-2 * max(np.abs(w).max(), 1e-12):
            break
    return w, moved, step


def best_centroid(
    w: FloatArray, centre: FloatArray, spread: FloatArray, radius: float
) -> FloatArray:
    """Return the point of the ellipsoid with the largest wᵀm.

    The ellipsoid is (m - m̂)ᵀ V⁻¹ (m - m̂) ≤ b with V the covariance of the mean of U:
    m = m̂ + V w √(b / wᵀVw).
    """
    direction = spread.T @ (spread @ w) / len(spread) ** 2
    length = float(w @ direction)
    if length <= 0:
        return centre
    return np.asarray(centre + direction * np.sqrt(radius / length))


def median_of_means(
    rows: FloatArray, n_groups: int, rng: np.random.Generator
) -> FloatArray:
    """Return the geometric median of the means of random groups (Weiszfeld)."""
    n_groups = max(1, min(n_groups, len(rows) // FEW_GROUPS))
    parts = np.array_split(rng.permutation(len(rows)), n_groups)
    means = np.array([rows[part].mean(axis=0) for part in parts])
    centre = means.mean(axis=0)
    for _ in range(100):
        distance = np.maximum(np.linalg.norm(means - centre, axis=1), 1e-12)
        new = (means / distance[:, None]).sum(axis=0) / (1 / distance).sum()
        moved, centre = np.abs(new - centre).max(), new
        if moved <= 1e-9:
            break
    return np.asarray(centre)
