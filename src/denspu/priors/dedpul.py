"""DEDPUL: the share from the densities of P and U along a score (Ivanov 2020).

A row of U with densities f_P and f_U is positive with chance π f_P / f_U, at most 1,
where π is the share of positives inside U. The mean chance over U must be π again:

    D(π) = π - ∫ min(π f_P, f_U)

is 0 up to the share and grows after it: the part of π f_P that sticks out of f_U. EM
starts at π = 1 and takes D(π) off again and again. Noise in the densities makes D
positive a little early, so EM ends when a step is within their noise.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.ndimage import gaussian_filter1d

from denspu._parameters import Number
from denspu._typing import FloatArray
from denspu.base import Rules
from denspu.priors._base import PriorEstimator

BINS = 1024
MARGIN = 0.2
"""Room on both sides of the grid, in ranges of the scores."""

STEPS = 10_000


class DEDPUL(PriorEstimator):
    """EM on the ratio of two kernel densities of out-of-fold scores.

    Densities are worked out on a fine grid, so time and memory hardly grow with rows.

    Parameters
    ----------
    tolerance : float, default=0.3
        EM ends when a step takes off less of the share than this times the noise of
        the densities, √(1/n_P + 1/(π n_U)).
    bandwidth : float, default=1.5
        Kernel width, in widths of Scott's rule for P.
    """

    _rules: ClassVar[Rules] = {
        "tolerance": (Number(0, closed="right"),),
        "bandwidth": (Number(0, closed="right"),),
    }

    def __init__(self, *, tolerance: float = 0.3, bandwidth: float = 1.5) -> None:
        self.tolerance = tolerance
        self.bandwidth = bandwidth

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        f_p, f_u = densities(P, U, self.bandwidth)
        share = 1.0
        for _ in range(STEPS):
            step = share - float(np.minimum(share * f_p, f_u).sum())
            share -= step
            # Of so many rows a density is known up to this part of itself.
            noise = np.sqrt(1 / len(P) + 1 / max(share * len(U), 1.0))
            if step <= self.tolerance * noise * share:
                break
        return share


def densities(
    P: FloatArray, U: FloatArray, bandwidth: float
) -> tuple[FloatArray, FloatArray]:
    """Return kernel densities of P and of U on one grid; each sums to 1.

    One width serves both, that of P, so that blurring leaves the mixture a mixture.
    """
    low, high = min(P.min(), U.min()), max(P.max(), U.max())
    if high == low:
        return np.ones(1), np.ones(1)
    margin = MARGIN * (high - low)
    edges = np.linspace(low - margin, high + margin, BINS + 1)
    width = bandwidth * P.std() * len(P) ** -0.2
    bins = max(width / (edges[1] - edges[0]), 0.5)
    return _smooth(P, edges, bins), _smooth(U, edges, bins)


def _smooth(scores: FloatArray, edges: FloatArray, bins: float) -> FloatArray:
    """Return the share of the scores in each bin, blurred by a Gaussian."""
    count = np.histogram(scores, edges)[0] / len(scores)
    blurred: FloatArray = gaussian_filter1d(count, bins, mode="constant")
    return blurred / blurred.sum()
