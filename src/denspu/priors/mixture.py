"""The share of positives inside U when the negatives make one bell along the score.

U is a mixture π f_P + (1-π) f_N. The density f_P comes from held-out positives; f_N is
taken for a normal density, and EM finds its place, its width and π. It looks at all of
U, not at the top alone, but it is wrong where the bell is.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import gaussian_kde, norm

from denspu._typing import FloatArray
from denspu.priors._base import PriorEstimator
from denspu.priors.density_ratio import DensityRatioPrior

GRID = 512
BINS = 1024
MOST = 1_000
"""Rows of P that make a density at most; more are thinned to their quantiles."""

STEPS = 300
STILL = 1e-6
"""EM ends when π moves less."""

LEFT = 2.0
"""So many widths below the bell's centre nothing counts as positive."""


class Mixture(PriorEstimator):
    """EM of the density of P and a bell of negatives, started at ``density_ratio``.

    Rows are counted on a grid first, so time hardly grows with them.
    """

    prefers_linear = True  # a sum of many features makes one bell

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        start = DensityRatioPrior().estimate(P, U, rng)
        if len(P) > MOST:
            P = np.quantile(P, (np.arange(MOST) + 0.5) / MOST)
        edges = np.linspace(U.min(), U.max(), BINS + 1)
        x = (edges[1:] + edges[:-1]) / 2
        density = _density(P, x)
        if density is None or not 0 < start < 1:
            return start
        rows = np.histogram(U, edges)[0].astype(np.float64)
        positive = (x > np.quantile(U, 1 - start)).astype(np.float64)
        return _em(x, rows, density, positive, start)


def mixture_share(
    scores_positive: FloatArray, scores_unlabeled: FloatArray, start: float
) -> float:
    """Return the share of positives inside U, refined from the guess ``start``.

    Scores that do not vary say nothing: then the guess is returned.
    """
    x = np.asarray(scores_unlabeled, dtype=np.float64)
    density = _density(np.asarray(scores_positive, dtype=np.float64), x)
    if density is None:
        return start
    share = float(np.clip(start, 0.01, 0.99))
    positive = (x > np.quantile(x, 1 - share)).astype(np.float64)
    return _em(x, np.ones(len(x)), density, positive, share)


def _em(
    x: FloatArray,
    rows: FloatArray,
    density: FloatArray,
    positive: FloatArray,
    share: float,
) -> float:
    """Return the share in the end; ``rows`` says how many rows each x stands for."""
    spread = np.sqrt(np.average((x - np.average(x, weights=rows)) ** 2, weights=rows))
    for _ in range(STEPS):
        weight = rows * (1 - positive)
        if weight.sum() < 1:
            return 1.0
        centre = np.average(x, weights=weight)
        width = np.sqrt(np.average((x - centre) ** 2, weights=weight)) + 1e-3 * spread
        ours = share * density
        theirs = (1 - share) * norm.pdf(x, centre, width)
        positive = ours / np.maximum(ours + theirs, np.finfo(np.float64).tiny)
        positive[x < centre - LEFT * width] = 0
        last, share = share, float((rows * positive).sum() / rows.sum())
        if abs(share - last) < STILL:
            break
    return share


def _density(positive: FloatArray, x: FloatArray) -> FloatArray | None:
    """Return a smooth density of the positives at ``x``."""
    if len(positive) < 2 or np.ptp(positive) <= 1e-9 * np.ptp(x) or np.ptp(x) == 0:
        return None
    grid = np.linspace(min(x.min(), positive.min()), max(x.max(), positive.max()), GRID)
    return np.interp(x, grid, gaussian_kde(positive)(grid))
