"""Step 3 of the walk: make the positive region denser by interpolation.

A pair of positives (z_i, z_j) gives ``s`` points λ·z_i + (1-λ)·z_j (section 3.3, eq. 2
and 3). The densifiers differ in how λ is drawn. Eq. 3 cannot be taken as printed (its
mean is a vector), so two readings stand side by side: :class:`Midpoint`, what the words
and the figure say, and :class:`LiteralVariance`, the printed variance.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr, ndtri

from denspu._parameters import About, Number, OneOf, Whole, check_parameters, setting
from denspu._typing import FloatArray, IntArray
from denspu._validation import check_embedding
from denspu.base import Densifier

_PAPER = "Sevetlidis et al. 2023, Dens-PU"
Shape = tuple[int, ...]
_CHUNK = 1 << 22  # floats worked on at once


class NoDensity(Densifier):
    """The positives alone (variants 2 and 3 of the paper's Table 4)."""

    about = About(key="none")

    def densify(self, Z: Any, rng: Generator) -> FloatArray:
        """Return an array with no rows."""
        return check_embedding(Z)[:0]


class Interpolation(Densifier):
    """Shared walk of the densifiers: pairs, λ, points."""

    s: int = setting(11, Whole(1), doc="Points on each segment.")
    n_pairs: int | Literal["cochran", "all"] = setting(
        "cochran",
        OneOf("cochran", "all"),
        Whole(1),
        doc='Segments; ``"cochran"`` is the paper\'s rule, 16,000 for 1,000 positives.',
    )

    @abstractmethod
    def sample_lambda(self, shape: Shape, rng: Generator) -> FloatArray:
        """Draw interpolation weights."""

    def densify(self, Z: Any, rng: Generator) -> FloatArray:
        """Return ``n_pairs * s`` new rows in the dtype of ``Z``."""
        check_parameters(self)
        Z = check_embedding(Z, minimum=2)
        pairs = sample_pairs(len(Z), self.count_pairs(len(Z)), rng)
        weights = self.sample_lambda((len(pairs), self.s), rng).astype(Z.dtype)
        out = np.empty((len(pairs), self.s, Z.shape[1]), dtype=Z.dtype)
        step = max(1, _CHUNK // (self.s * Z.shape[1]))
        for a in range(0, len(pairs), step):
            first, second = Z[pairs[a : a + step, 0]], Z[pairs[a : a + step, 1]]
            lam = weights[a : a + step, :, None]
            # lam·z_i + (1-lam)·z_j, shapes (pairs, s, 1) and (pairs, 1, d)
            np.multiply(lam, (first - second)[:, None], out=out[a : a + step])
            out[a : a + step] += second[:, None]
        return out.reshape(-1, Z.shape[1])

    def count_pairs(self, n: int) -> int:
        """Return how many pairs of ``n`` positives are joined."""
        if self.n_pairs == "cochran":
            return cochran_pairs(n)
        population = math.comb(n, 2)
        return population if self.n_pairs == "all" else min(population, self.n_pairs)


class Midpoint(Interpolation):
    """Segments between positives, λ Gaussian around the midpoint: the paper's proposal.

    λ ~ N(1/2, (k/2)²) truncated to (0, 1): a small k pulls towards the midpoint.
    """

    about = About(key="midpoint", paper=_PAPER)

    k: float = setting(
        0.2, Number(0, 1, "neither"), doc="Spread: λ's standard deviation is k/2."
    )

    def sample_lambda(self, shape: Shape, rng: Generator) -> FloatArray:
        """Draw from N(1/2, (k/2)²) inside (0, 1)."""
        return _truncated_normal(self.k / 2, shape, rng)


class LiteralVariance(Interpolation):
    """Segments between positives, λ with eq. 3's printed variance.

    In units of the segment ‖half segment‖² is 1/4, so the variance is e^k/4: λ is
    nearly uniform.
    """

    about = About(key="literal", paper=_PAPER)

    k: float = setting(0.2, Number(0, 1, "neither"))

    def sample_lambda(self, shape: Shape, rng: Generator) -> FloatArray:
        """Draw from N(1/2, e^k/4) inside (0, 1)."""
        return _truncated_normal(math.exp(self.k / 2) / 2, shape, rng)


class Mixup(Interpolation):
    """Segments between positives, λ ~ Beta(α, α).

    Eq. 1: most weight near the two ends for α < 1.
    """

    about = About(key="mixup", paper="Zhang et al. 2018, mixup")

    alpha: float = setting(0.2, Number(0, closed="neither"))

    def sample_lambda(self, shape: Shape, rng: Generator) -> FloatArray:
        """Draw from Beta(α, α)."""
        return rng.beta(self.alpha, self.alpha, size=shape)


class GreatCircle(Midpoint):
    """Arcs between positives on the sphere, λ Gaussian around the middle.

    A chord leaves the sphere, and its middle is nearer to everything than the two ends
    are; the arc stays on it. A point of the chord is moved to the arc along the ray
    from the centre. Rows are taken by their direction and come out with length 1.
    """

    about = About(key="great_circle")

    def densify(self, Z: Any, rng: Generator) -> FloatArray:
        """Return ``n_pairs * s`` new rows of length 1 in the dtype of ``Z``."""
        Z = np.asarray(Z)
        least = np.finfo(Z.dtype).tiny
        length = np.linalg.norm(Z, axis=1, keepdims=True)
        chords = super().densify(Z / np.maximum(length, least), rng)
        length = np.linalg.norm(chords, axis=1, keepdims=True)
        return chords / np.maximum(length, least)


def _truncated_normal(sd: float, shape: Shape, rng: Generator) -> FloatArray:
    """Draw N(1/2, sd²) inside the open interval (0, 1) by inverting its CDF."""
    tail = ndtr(-0.5 / sd)
    uniform = rng.uniform(tail, 1 - tail, size=shape)
    inside = np.nextafter(0, 1), np.nextafter(1, 0)
    return np.clip(0.5 + sd * ndtri(uniform), *inside)


def cochran_pairs(n: int) -> int:
    """Return the paper's number of pairs for ``n`` positives.

    Cochran's sample size with finite-population correction at 99 % confidence and a
    1 % margin, rounded to thousands as the paper does (16,056 → 16,000 at n = 1,000);
    all pairs where there are fewer.

    Examples
    --------
    >>> cochran_pairs(1000), cochran_pairs(100), cochran_pairs(10)
    (16000, 4000, 45)
    """
    confidence, margin, rounding = 0.99, 0.01, 1_000
    population = math.comb(n, 2)
    infinite = ndtri((1 + confidence) / 2) ** 2 * 0.25 / margin**2
    size = infinite / (1 + (infinite - 1) / max(population, 1))
    rounded = max(rounding, round(size / rounding) * rounding)
    return min(population, rounded)


def sample_pairs(n: int, size: int, rng: Generator) -> IntArray:
    """Draw distinct pairs (i, j) of 0..n-1 with i < j, an array of shape (size, 2)."""
    ranks = rng.choice(math.comb(n, 2), size=size, replace=False, shuffle=False)
    return unrank_pairs(ranks)


def unrank_pairs(ranks: IntArray) -> IntArray:
    """Return the pair with each rank in (0,1), (0,2), (1,2), (0,3), (1,3), ..."""
    j = ((1 + np.sqrt(1 + 8 * ranks.astype(np.float64))) / 2).astype(np.int64)
    j -= ranks < j * (j - 1) // 2  # undo a square root that came out too high
    j += ranks >= j * (j + 1) // 2
    return np.column_stack([ranks - j * (j - 1) // 2, j])
