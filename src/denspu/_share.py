"""Shares and scores: how many rows are positive, where to cut, how sure each one is.

Three shares speak of the same positives: that of all rows, P and U together; that
inside U; and that of the open rows, whose label is not known (U less the known
negatives). To a fit, positives that are held out are rows of U: its U is larger than
the user's, and holds more positives. All of this is converted here and nowhere else.

Scores become labels by a cut, and probabilities by a map that never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from denspu._typing import FloatArray, Scenario
from denspu._validation import PUInput
from denspu.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from denspu.base import RefinerInput

# --- shares ---------------------------------------------------------------------------

Of = Literal["unlabeled", "all", "open"]

HALF_A_ROW = 0.5
"""A share that leaves fewer positives, or fewer negatives, speaks of no row."""

PRECISE, NEAR = 10**9, 1e-3
"""Ends of a range are told in steps of 1/PRECISE. NEAR of a step, or of a row, is
none."""


@dataclass(frozen=True)
class Counts:
    """How many rows there are, by what is known of their label."""

    labeled: int
    """Labelled positives that are not in U."""
    unlabeled: int
    """Rows of U, the known ones among them."""
    known_negative: int = 0
    """Rows of U known to be negative."""
    known_positive: int = 0
    """Rows of U known to be positive, such as copies of labelled ones."""

    @classmethod
    def given(cls, data: PUInput) -> Self:
        """Count the rows as the user gave them: held-out positives carry a label."""
        held = 0 if data.held_out is None else int(data.held_out.sum())
        seen = cls.seen(data)
        return replace(
            seen, labeled=seen.labeled + held, unlabeled=seen.unlabeled - held
        )

    @classmethod
    def seen(cls, data: PUInput) -> Self:
        """Count the rows as the fit sees them: held-out positives are open ones."""
        return cls(
            int(data.positive.sum()),
            int(data.unlabeled.sum()),
            int(data.known_negative.sum()),
        )

    @property
    def all(self) -> int:
        """P and U together."""
        return self.labeled + self.unlabeled

    @property
    def open(self) -> int:
        """Rows of U whose label is not known."""
        return self.unlabeled - self.known_negative - self.known_positive


@dataclass(frozen=True)
class Share:
    """How many of some rows are positive, and between which ends that lies."""

    value: float
    low: float
    high: float
    of: Of
    """Which rows."""
    counts: Counts

    @classmethod
    def exactly(cls, value: float, of: Of, counts: Counts) -> Self:
        """Return a share that is known, or of whose interval nothing is said."""
        return cls(float(value), float(value), float(value), of, counts)

    @classmethod
    def of_prior(
        cls, prior: float, counts: Counts, scenario: Scenario, *, asks: bool = True
    ) -> Self:
        """Return the share inside U that ``prior=`` of a method means, or raise.

        ``asks`` says whether the method has a ``scenario`` that the user could change.
        """
        if scenario == "two-sample":  # U is the population
            return cls.exactly(prior, "unlabeled", counts)
        n, labeled = counts.all, counts.labeled
        if prior <= labeled / n:
            apart = "scenario='two-sample' if U was drawn apart from P"
            other = f"prior='estimate', or {apart}" if asks else "or prior='estimate'"
            raise InvalidParameterError(
                f"prior={prior!r} is the share of positives among all {n} rows, and "
                f"{labeled} of them ({labeled / n:.4g}) carry a label already. Pass a "
                f"larger share, {other}."
            )
        inside = cls(prior, prior, prior, "all", counts)._inside(prior)
        return cls.exactly(inside, "unlabeled", counts)

    @classmethod
    def of_label_frequency(cls, c: float, counts: Counts) -> Self:
        """Return the share inside U when the part ``c`` of all positives is in P."""
        share = 1.0
        if c > 0:
            share = min(1.0, counts.labeled * (1 - c) / (c * counts.unlabeled))
        return cls.exactly(share, "unlabeled", counts)

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    @property
    def positives(self) -> float:
        """How many rows of U are positive."""
        return self._inside(self.value) * self.counts.unlabeled

    @property
    def label_frequency(self) -> float:
        """Share c of all positives that carry a label."""
        return self.counts.labeled / (self.counts.labeled + self.positives)

    def to(self, of: Of, counts: Counts | None = None) -> Share:
        """Return the share of other rows that the same positives make.

        ``counts`` are given where labels are held out or put back: rows that are
        labelled on one side alone are positives inside U on the other.
        """
        value, low, high = (
            self._converted(end, of, counts)
            for end in (self.value, self.low, self.high)
        )
        return Share(value, low, high, of, counts or self.counts)

    def population(self, scenario: Scenario) -> Share:
        """Return what the scenario calls the prior."""
        return self.to("all" if scenario == "one-sample" else "unlabeled")

    def _inside(self, share: float) -> float:
        """Return a share of these rows as one inside U."""
        c = self.counts
        if self.of == "all":
            return (share * c.all - c.labeled) / c.unlabeled
        if self.of == "open":
            known = c.known_negative + c.known_positive
            return c.known_positive / c.unlabeled + share * (1 - known / c.unlabeled)
        return share

    def _converted(self, share: float, of: Of, counts: Counts | None) -> float:
        inside = self._inside(share)
        positives = inside * self.counts.unlabeled
        new = counts or self.counts
        positives += self.counts.labeled - new.labeled
        if of == "all":
            found = (new.labeled + positives) / new.all
        elif of == "open":
            found = (positives - new.known_positive) / new.open
        else:
            found = inside if counts is None else positives / new.unlabeled
        return float(np.clip(found, 0.0, 1.0))


def known_share(prior: float, data: PUInput) -> float:
    """Return what a share in all rows means among the open rows the fit sees, or raise.

    A share is refused that leaves no row of the user's U positive, or none negative.
    """
    given = Counts.given(data)
    share = Share.of_prior(prior, given, "one-sample", asks=False)
    hidden = share.positives
    if not HALF_A_ROW - NEAR <= hidden <= given.open - HALF_A_ROW + NEAR:
        ends = (
            (given.labeled + HALF_A_ROW) / given.all,
            (given.labeled + given.open - HALF_A_ROW) / given.all,
        )
        raise InvalidParameterError(
            f"prior={prior!r} means {hidden:,.4g} positives among the {given.open:,} "
            f"rows of U that are not known to be negative. Pass {between(*ends)}, or "
            "prior='estimate'."
        )
    return share.to("open", Counts.seen(data)).value


def between(low: float, high: float) -> str:
    """Say which shares are allowed, in digits that are allowed themselves.

    Examples
    --------
    >>> between(0.151_25, 0.998_75), between(7 / 88, 7 / 88)
    ('a share between 0.15125 and 0.99875', '0.07954545454545454')
    >>> between(1 / 3, 2 / 3)
    'a share between 0.333333334 and 0.666666666'
    """
    ends = ceil(low * PRECISE - NEAR) / PRECISE, floor(high * PRECISE + NEAR) / PRECISE
    if ends[0] >= ends[1]:  # one row is open
        return repr(low)
    return f"a share between {ends[0]:.9g} and {ends[1]:.9g}"


# --- where to cut -------------------------------------------------------------------


def quantile_cut(scores: FloatArray, below: float) -> float:
    """Return the score that leaves the share ``below`` of the rows under it."""
    return float(np.quantile(scores, below))


def prior_cut(scores: FloatArray, prior: float) -> float:
    """Return the score that the share ``prior`` of the rows reaches."""
    count = min(len(scores), max(1, round(prior * len(scores))))
    return float(np.partition(scores, len(scores) - count)[len(scores) - count])


def otsu_cut(scores: FloatArray) -> float:
    """Return the cut that separates two groups best (Otsu 1979).

    Every cut between two neighbouring values is tried; the one with the largest
    variance between the groups lies halfway between its neighbours. It presumes two
    sizeable groups: do not use it where one class is rare.
    """
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    n = len(ordered)
    if ordered[0] == ordered[-1]:
        return float(ordered[0])
    left = np.arange(1, n)
    total = np.cumsum(ordered)
    mean_left = total[:-1] / left
    mean_right = (total[-1] - total[:-1]) / (n - left)
    between = left * (n - left) * (mean_right - mean_left) ** 2
    between[ordered[1:] == ordered[:-1]] = -1.0  # not a cut: the two are equal
    best = int(np.argmax(between))
    return float((ordered[best] + ordered[best + 1]) / 2)


def cut_at(scores: FloatArray, share: float) -> float:
    """Return the score halfway between the last row inside ``share`` and the next."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    outside = len(ordered) - round(share * len(ordered))
    if outside == 0:
        return float(np.nextafter(ordered[0], -np.inf))
    if outside == len(ordered):
        return float(ordered[-1])
    return float((ordered[outside - 1] + ordered[outside]) / 2)


def known_cut(scores: FloatArray, start: RefinerInput) -> float:
    """Return the score that the share of the user's U that is known lies above.

    Held-out positives are free rows of the fit, but none of theirs. Rows that are equal
    lie on one side, whichever is nearer to the share, so long as there are some above.
    """
    mine, held = start.free, 0
    if start.held_out is not None:
        mine, held = start.free & ~start.held_out, int(start.held_out.sum())
    hidden = start.prior_in_unlabeled * start.free.sum() - held
    among = scores[mine]
    count = int(np.clip(round(hidden), 1, len(among)))
    last = np.sort(among)[-count]
    fewer, more = int((among > last).sum()), int((among >= last).sum())
    nearer = fewer if fewer and count - fewer < more - count else more
    return cut_at(among, nearer / len(among))


# --- score → probability ------------------------------------------------------------

HALF = 0.5
"""A positive imagined below all scores, and one above, count so much."""

TINY = float(np.finfo(np.float64).tiny)
HALVINGS = 60

KNOTS = 600
"""Scores at which the map is kept, at most about twice as many."""

ENOUGH = 100
"""Positives from which rising steps count more than smooth curves."""

SLOPES = np.geomspace(0.1, 100, 16)
"""Of the smooth curves; scores are divided by their spread."""

LOST = (0.0, 0.03, 0.1, 0.3)
"""Shares of the positives that score like negatives."""


class Isotonic:
    """Any rising steps from scores to the share of rows with a label."""

    def __init__(
        self, scores: FloatArray, labelled: Any, weight: FloatArray | None = None
    ) -> None:
        self.steps = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        self.steps.fit(scores, np.asarray(labelled, dtype=np.float64), weight)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the share of rows with a label at these scores."""
        return np.asarray(self.steps.predict(scores))


class HiddenPositive:
    """P(y = 1) of rows of U by their score, from positives that score alike.

    Bayes: P(y = 1 | s) = π f_P(s) / f_U(s). Two answers are mixed. Rising steps (the
    isotonic share of positives among both) follow any shape, but are rough where
    positives are few. Smooth curves are less rough and less free. With n positives the
    steps count n / (n + 100). The mean over U is π.
    """

    def __init__(
        self, positive: FloatArray, unlabeled: FloatArray, prior: float
    ) -> None:
        prior = float(prior)
        share = _steps(positive, unlabeled)
        if 0 < prior < 1:
            knots = _knots(positive, unlabeled)
            odds = _odds(share(unlabeled))
            found = np.minimum(_factor(odds, prior) * _odds(share(knots)), 1.0)
            trust = len(positive) / (len(positive) + ENOUGH)
            smooth = _smooth(knots, positive, unlabeled, prior)
            found = trust * found + (1 - trust) * smooth
            share = Isotonic(knots, found / (1 + found))
        self.share = share
        self.factor = _factor(_odds(share(unlabeled)), prior)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return P(y = 1)."""
        return np.minimum(self.factor * _odds(self.share(scores)), 1.0)


def _odds(share: FloatArray) -> FloatArray:
    return share / np.maximum(1 - share, 1e-12)


def _factor(odds: FloatArray, prior: float) -> float:
    """Return c with mean(min(c · odds, 1)) = prior; odds are above 0."""
    low, high = 0.0, 1.0 / float(odds.min())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if np.minimum(middle * odds, 1.0).mean() < prior:
            low = middle
        else:
            high = middle
    return high


def _steps(positive: FloatArray, unlabeled: FloatArray) -> Isotonic:
    """Return the rising share of positives among both.

    Half a positive is imagined below all scores and half a one above: few positives do
    not make a row surely negative.
    """
    both = np.concatenate([positive, unlabeled])
    scores = np.concatenate([both, [both.min(), both.max()]])
    labelled = np.zeros(len(scores))
    labelled[: len(positive)] = labelled[-2:] = 1.0
    weight = np.ones(len(scores))
    weight[-2:] = HALF
    return Isotonic(scores, labelled, weight)


def _knots(positive: FloatArray, unlabeled: FloatArray) -> FloatArray:
    """Return different scores, closer to each other at the top of the list."""
    scores = np.unique(np.concatenate([positive, unlabeled]))
    last = len(scores) - 1
    if last < KNOTS:
        return scores
    places = [np.linspace(0, last, KNOTS), last + 1 - np.geomspace(1, last, KNOTS)]
    return np.asarray(scores[np.unique(np.concatenate(places).astype(np.int64))])


def _smooth(
    knots: FloatArray, positive: FloatArray, unlabeled: FloatArray, prior: float
) -> FloatArray:
    """Return the mean of logistic curves at the knots, each as it fits the scores.

    t is the score or the log-odds of its rank. A curve says q = logistic(a + b t) of
    positives that can be told apart; some others score like negatives and are a fixed
    share of what q leaves. Its mean over U is π. The chance of finding these positives
    where they are, among both, says how much a curve counts.
    """
    P, U = (_counts(knots, scores) for scores in (positive, unlabeled))
    rank = (np.cumsum(U) - U / 2 + HALF) / (len(unlabeled) + 1)
    curves = np.concatenate(
        [
            1 - (1 - q) * (1 - prior) / (1 - told)
            for t in (knots, logit(rank))
            for told in (prior * (1 - lost) for lost in LOST)
            for q in [_logistics(t, U / U.sum(), told)]
        ]
    )
    curves = np.maximum(curves, TINY)
    ratio = len(positive) / (prior * len(unlabeled))
    chance = np.log(curves) @ P - np.log1p(ratio * curves) @ (P + U)
    weight = np.exp(chance - chance.max())
    return np.asarray(weight @ curves / weight.sum())


def _counts(knots: FloatArray, scores: FloatArray) -> FloatArray:
    """Return how many scores are nearest to each knot."""
    place = np.searchsorted((knots[1:] + knots[:-1]) / 2, scores)
    return np.bincount(place, minlength=len(knots)).astype(np.float64)


def _logistics(t: FloatArray, share: FloatArray, mean: float) -> FloatArray:
    """Return logistic curves of all slopes with this mean over U, one a row."""
    spread = float(np.sqrt(share @ (t - share @ t) ** 2)) or 1.0
    lines = SLOPES[:, None] * (t / spread)
    low, high = logit(mean) - lines.max(axis=1), logit(mean) - lines.min(axis=1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        less = expit(middle[:, None] + lines) @ share < mean
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.asarray(expit(high[:, None] + lines))
