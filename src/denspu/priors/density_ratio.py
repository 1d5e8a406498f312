"""The share of positives inside U from two lists of scores.

Let q_P(t) and q_U(t) be the shares of held-out positives and of U that score at least
t. Where U holds π positives like those of P, q_U = π q_P + (1-π) q_N, so q_U / q_P is
never below π, and equals π where only positives reach t. Few rows reach a high t and
their shares are noisy, so the cut is chosen by an upper bound of the ratio (the best
bin of Garg et al., "Mixture Proportion Estimation and PU Learning", 2021). Exact
binomial bounds stand in for their uniform ones, which are blind to a rare class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from scipy.special import betaincinv

from denspu._parameters import About, Number, Whole, check
from denspu._share import Counts, Share
from denspu._typing import FloatArray, IntArray
from denspu.priors._base import (
    PriorEstimator,
    around,
    check_scores,
    counting_variance,
)

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

    Parameters
    ----------
    scores_positive, scores_unlabeled : arrays
        Higher = more positive. Each row must be scored by a model that has not seen
        it, or the positives look better than their like inside U and the share comes
        out too small.
    rng : numpy.random.Generator
        Draws the resamples.
    level : float, default=0.9
        Of the interval.
    n_resamples : int, default=100
        Bootstrap draws for the interval; 0 gives the widest, [0, 1].

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
