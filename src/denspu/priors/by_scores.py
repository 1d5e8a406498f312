"""Estimators that look at one score a row, higher = more positive.

q_P(t) and q_U(t) are the shares of P and of U that score at least t; π is the share of
positives inside U. The ratio q_U / q_P has a file of its own, ``density_ratio``.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.stats import gaussian_kde, norm, rankdata
from sklearn.isotonic import IsotonicRegression

from denspu._folds import deal_even_folds
from denspu._parameters import About, Number, Whole, setting
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray
from denspu.priors._base import PriorEstimator
from denspu.priors.density_ratio import DensityRatioPrior

BINS = 1024
"""Rows are counted on a grid this fine, so that time hardly grows with them."""


# --- best bin ------------------------------------------------------------------------


class BestBin(PriorEstimator):
    """Ratio of U to P above the score where its uniform bound is least.

    q_U / q_P never falls below π, and equals it where only positives score so high. The
    bound is q_U / q_P + (1 + γ) / q_P · (√(log(4/δ) / 2n_U) + √(log(4/δ) / 2n_P)).
    """

    about = About(
        key="bbe",
        paper="Garg et al. 2021, Mixture proportion estimation and PU learning",
    )

    delta: float = setting(
        0.1, Number(0, 1, "neither"), doc="Chance that the bound fails."
    )
    gamma: float = setting(0.01, Number(0, 1, "neither"), doc="Slack of the bound.")

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        cuts, counts = np.unique(P, return_counts=True)
        q_p = np.cumsum(counts[::-1]) / len(P)  # highest cut first
        q_u = 1 - np.searchsorted(np.sort(U), cuts[::-1], side="left") / len(U)
        noise = np.sqrt(np.log(4 / self.delta) / 2)
        noise *= (1 + self.gamma) * (len(U) ** -0.5 + len(P) ** -0.5)
        return float((q_u / q_p)[np.argmin((q_u + noise) / q_p)])


# --- DEDPUL --------------------------------------------------------------------------

MARGIN = 0.2
"""Room on both sides of the grid, in ranges of the scores."""


class DEDPUL(PriorEstimator):
    """EM on the densities of P and U along a score.

    A row of U with densities f_P and f_U is positive with chance π f_P / f_U, at most
    1. The mean chance over U must be π again: D(π) = π - ∫ min(π f_P, f_U) is 0 up to
    the share and grows after it. EM starts at π = 1 and takes D(π) off again and again.
    Noise in the densities makes D positive a little early, so EM ends when a step is
    within their noise.
    """

    about = About(key="dedpul", paper="Ivanov 2020, DEDPUL")

    tolerance: float = setting(
        0.3,
        Number(0, closed="right"),
        doc="EM ends when a step takes off less of the share than so many times the\n"
        "noise of the densities, √(1/n_P + 1/(π n_U)).",
    )
    bandwidth: float = setting(
        1.5,
        Number(0, closed="right"),
        doc="Kernel width, in widths of Scott's rule for P.",
    )

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        f_p, f_u = densities(P, U, self.bandwidth)
        share = 1.0
        for _ in range(10_000):
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

    def smooth(scores: FloatArray) -> FloatArray:
        count = np.histogram(scores, edges)[0] / len(scores)
        blurred: FloatArray = gaussian_filter1d(count, bins, mode="constant")
        return blurred / blurred.sum()

    return smooth(P), smooth(U)


# --- a bell of negatives -------------------------------------------------------------

GRID = 512
"""Points at which the density of P is worked out."""

MOST = 1_000
"""Rows of P that make a density at most; more are thinned to their quantiles."""

LEFT = 2.0
"""So many widths below the bell's centre nothing counts as positive."""


class Mixture(PriorEstimator):
    """EM of P's density and one bell of negatives along a score.

    U is a mixture π f_P + (1-π) f_N. The density f_P comes from held-out positives; f_N
    is taken for a normal density, and EM finds its place, its width and π. It looks at
    all of U, not at the top alone, but it is wrong where the negatives make no bell.
    It starts at the share of ``density_ratio``.
    """

    about = About(key="mixture")

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
    for _ in range(300):
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
        if abs(share - last) < 1e-6:
            break
    return share


def _density(positive: FloatArray, x: FloatArray) -> FloatArray | None:
    """Return a smooth density of the positives at ``x``, if their scores vary."""
    if len(positive) < 2 or np.ptp(positive) <= 1e-9 * np.ptp(x) or np.ptp(x) == 0:
        return None
    grid = np.linspace(min(x.min(), positive.min()), max(x.max(), positive.max()), GRID)
    return np.interp(x, grid, gaussian_kde(positive)(grid))


# --- label frequency -----------------------------------------------------------------


class ElkanNoto(PriorEstimator):
    """Mean calibrated P(labelled | x) over the labelled positives.

    With P and U in one heap let s = 1 mark the rows of P. Where positives never look
    like negatives, P(s=1 | x) is the same number c for every positive x: the share of
    positives that carry a label (estimator e1 of the paper). It must be calibrated, and
    no row may judge itself: isotonic regression on the other parts of the rows turns
    scores into it.
    """

    about = About(
        key="elkan_noto",
        paper="Elkan and Noto 2008, Learning from only positive and unlabeled data",
    )

    folds: int = setting(
        5,
        Whole(2, 100),
        doc=(
            "Parts for the calibration; at most one for each row of the smaller sample."
        ),
    )

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        scores = np.concatenate([P, U])
        labelled = np.arange(len(scores)) < len(P)
        c = float(calibrated(scores, labelled, self.folds, rng)[labelled].mean())
        return Share.of_label_frequency(c, Counts(len(P), len(U))).value


def calibrated(
    scores: FloatArray, labelled: BoolArray, folds: int, rng: np.random.Generator
) -> FloatArray:
    """Return P(s=1 | score) of each row, learned from the other parts of the rows.

    Scores become ranks first, so that nothing but their order counts.
    """
    scores = rankdata(scores)
    fold = deal_even_folds(labelled, None, folds, rng)
    g = np.empty(len(scores))
    for k in np.unique(fold):
        own = fold == k
        others = ~own if not own.all() else own
        rising = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        rising.fit(scores[others], labelled[others])
        g[own] = rising.predict(scores[own])
    return g
