"""Which pairs of positives are joined by a segment, and how many."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from denspu._typing import IntArray

CONFIDENCE = 0.99
MARGIN = 0.01
ROUNDING = 1_000


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
    population = math.comb(n, 2)
    infinite = ndtri((1 + CONFIDENCE) / 2) ** 2 * 0.25 / MARGIN**2
    size = infinite / (1 + (infinite - 1) / max(population, 1))
    rounded = max(ROUNDING, round(size / ROUNDING) * ROUNDING)
    return min(population, rounded)


def sample_pairs(n: int, size: int, rng: np.random.Generator) -> IntArray:
    """Draw distinct unordered pairs of 0..n-1 without replacement.

    Returns
    -------
    array of shape (size, 2)
        Row (i, j) with i < j; no row occurs twice.
    """
    ranks = rng.choice(math.comb(n, 2), size=size, replace=False, shuffle=False)
    return unrank_pairs(ranks)


def unrank_pairs(ranks: IntArray) -> IntArray:
    """Return the pair with each rank in (0,1), (0,2), (1,2), (0,3), (1,3), ..."""
    j = ((1 + np.sqrt(1 + 8 * ranks.astype(np.float64))) / 2).astype(np.int64)
    j -= ranks < j * (j - 1) // 2  # undo a square root that came out too high
    j += ranks >= j * (j + 1) // 2
    return np.column_stack([ranks - j * (j - 1) // 2, j])
