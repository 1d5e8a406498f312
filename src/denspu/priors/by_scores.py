"""Estimators that look at one score a row, higher = more positive.

Let q_P(t) and q_U(t) be the shares of held-out positives and of U that score at least
t. Where U holds π positives like those of P, q_U = π q_P + (1-π) q_N, so q_U / q_P is
never below π, and equals π where only positives reach t. Few rows reach a high t and
their shares are noisy, so the cut is chosen by an upper bound of the ratio (the best
bin of Garg et al., "Mixture Proportion Estimation and PU Learning", 2021). In
``density_ratio``, our default, exact binomial bounds stand in for their uniform ones,
which are blind to a rare class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.special import betaincinv
from scipy.stats import gaussian_kde, norm, rankdata

from denspu._folds import deal_even_folds
from denspu._parameters import About, Number, Whole, check, setting
from denspu._share import Counts, Isotonic, Share
from denspu._typing import FloatArray, IntArray
from denspu.priors.estimate import (
    PriorEstimator,
    around,
    check_scores,
    counting_variance,
)

# --- the ratio of U to P, by exact bounds ---------------------------------------------

RISKS = (1e-2, 1e-3, 1e-4, 1e-5)
"""Chances that a bound is wrong; the estimate is the mean over them."""

MANY = 2_000
"""Counts of rows up to which every bound is worked out."""


@dataclass(frozen=True)
class PriorEstimate:
    """The share of positives inside U, and an interval around it."""

    prior_in_unlabeled: float
    low: float
    high: float
    level: float
    """How often such an interval should hold the truth."""
    cut: float
    """The score at which the ratio was read (median over the bounds)."""
    n_positive: int
    n_unlabeled: int

    @property
    def prior(self) -> float:
        """The share of positives among all rows, P and U together (one-sample)."""
        return self._share().to("all").value

    @property
    def label_frequency(self) -> float:
        """The share c of the positives that carry a label (one-sample)."""
        return self._share().label_frequency

    def _share(self) -> Share:
        counts = Counts(self.n_positive, self.n_unlabeled)
        return Share(self.prior_in_unlabeled, self.low, self.high, "unlabeled", counts)

    def with_share(self, share: float) -> PriorEstimate:
        """Return the same with a share in its place that is known from elsewhere."""
        return replace(self, prior_in_unlabeled=share, low=share, high=share)


def estimate_prior_from_scores(
    scores_positive: FloatArray,
    scores_unlabeled: FloatArray,
    *,
    rng: np.random.Generator,
    level: float = 0.9,
    n_resamples: int = 100,
) -> PriorEstimate:
    """Return the share of positives inside U.

    Higher scores are more positive. Each row must be scored by a model that has not
    seen it, or the positives look better than their like inside U and the share comes
    out too small. ``level`` is that of the interval; 0 resamples give the widest.

    Examples
    --------
    >>> import numpy as np
    >>> from denspu.priors import estimate_prior_from_scores
    >>> U = np.r_[np.full(30, 5.0), np.zeros(70)]
    >>> found = estimate_prior_from_scores(
    ...     np.full(50, 5.0), U, rng=np.random.default_rng(0)
    ... )
    >>> found.prior_in_unlabeled, round(found.prior, 3)
    (0.3, 0.533)
    """
    positive = check_scores(scores_positive, "scores_positive")
    unlabeled = check_scores(scores_unlabeled, "scores_unlabeled")
    check("level", level, Number(0, 1, "neither"))
    check("n_resamples", n_resamples, Whole(0))
    n, m = len(positive), len(unlabeled)
    bins = Bins.of(positive, unlabeled)
    bounds = Bounds(n, m)
    prior, cut = bins.best_ratio(bounds)
    low, high = 0.0, 1.0
    if n_resamples:
        drawn = [bins.resampled(rng).best_ratio(bounds)[0] for _ in range(n_resamples)]
        # Quantiles of the draws would lie too low: the least of many ratios falls when
        # rows are drawn twice. There are as many degrees as P has rows, less 1.
        degrees = max(1, n - 1)
        spread = float(np.var(drawn)) * (degrees + 1) / degrees
        variance = max(spread, counting_variance(prior, m))
        low, high = around(prior, variance, degrees, level)
    return PriorEstimate(prior, low, high, float(level), cut, n, m)


class DensityRatioPrior(PriorEstimator):
    """Ratio of U to P above the score where its exact bound is least.

    :func:`estimate_prior_from_scores` as an estimator.
    """

    about = About(
        key="density_ratio",
        paper="Garg et al. 2021, Mixture proportion estimation and PU learning",
    )

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        return Bins.of(P, U).best_ratio(bounds_of(len(P), len(U)))[0]


@lru_cache(maxsize=4)
def bounds_of(n_positive: int, n_unlabeled: int) -> Bounds:
    """Return the bounds for two sample sizes; resamples ask for the same ones again."""
    return Bounds(n_positive, n_unlabeled)


class Bounds:
    """Exact binomial bounds of a share, by the count of rows that reach a cut.

    Of the many counts that a large U allows, a few thousand are worked out and the
    others lie on the line between two of them.
    """

    def __init__(self, n_positive: int, n_unlabeled: int) -> None:
        risk = np.array(RISKS)[:, None]
        n, m = n_positive, n_unlabeled
        k = np.arange(1, n + 1)
        self.lower = np.pad(betaincinv(k, n - k + 1, risk), ((0, 0), (1, 0)))
        self.counts = np.arange(m)
        if m > MANY:
            far = np.geomspace(MANY, m - 1, MANY).astype(np.int64)
            self.counts = np.unique(np.concatenate([np.arange(MANY), far]))
        upper = betaincinv(self.counts + 1, m - self.counts, 1 - risk)
        self.counts = np.append(self.counts, m)
        self._upper = np.pad(upper, ((0, 0), (0, 1)), constant_values=1.0)

    def upper(self, reached: IntArray) -> FloatArray:
        """Return the upper bounds of the shares, one row a risk."""
        return np.stack([np.interp(reached, self.counts, row) for row in self._upper])


@dataclass(frozen=True, eq=False)
class Bins:
    """Rows of P at each cut, and rows of U from each cut to the next."""

    cuts: FloatArray
    """The scores of P in rising order, each once."""
    positive: IntArray
    unlabeled: IntArray
    """One more than cuts: the first counts the rows below all of them."""

    @classmethod
    def of(cls, positive: FloatArray, unlabeled: FloatArray) -> Self:
        """Count both lists of scores."""
        cuts, counts = np.unique(positive, return_counts=True)
        place = np.searchsorted(cuts, unlabeled, side="right")
        return cls(cuts, counts, np.bincount(place, minlength=len(cuts) + 1))

    def resampled(self, rng: np.random.Generator) -> Bins:
        """Return the counts of rows drawn with replacement."""
        n, m = self.positive.sum(), self.unlabeled.sum()
        return Bins(
            self.cuts,
            rng.multinomial(n, self.positive / n),
            rng.multinomial(m, self.unlabeled / m),
        )

    def best_ratio(self, bounds: Bounds) -> tuple[float, float]:
        """Return q_U / q_P at the cut where its upper bound is least, and the cut."""
        n, m = self.positive.sum(), self.unlabeled.sum()
        drawn = self.positive > 0
        reach_p = np.cumsum(self.positive[::-1])[::-1][drawn]
        reach_u = np.cumsum(self.unlabeled[:0:-1])[::-1][drawn]
        ratio = np.minimum(1.0, (reach_u / m) / (reach_p / n))
        bound = bounds.upper(reach_u) / bounds.lower[:, reach_p]
        best = np.argmin(bound, axis=1)
        return float(ratio[best].mean()), float(np.median(self.cuts[drawn][best]))


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

BINS = 1024
"""Rows are counted on a grid this fine, so that time hardly grows with them."""

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
        doc="Parts for the calibration; at most one for each row of the smaller\n"
        "sample.",
    )

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        scores = rankdata(np.concatenate([P, U]))  # nothing but their order counts
        labelled = np.arange(len(scores)) < len(P)
        fold = deal_even_folds(labelled, None, self.folds, rng)
        calibrated = np.empty(len(scores))
        for k in np.unique(fold):
            own = fold == k
            others = ~own if not own.all() else own
            rising = Isotonic(scores[others], labelled[others])
            calibrated[own] = rising(scores[own])
        c = float(calibrated[labelled].mean())
        return Share.of_label_frequency(c, Counts(len(P), len(U))).value
