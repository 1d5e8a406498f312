"""The formulas: from counts in cells to figures, for many draws at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from denspu._typing import BoolArray, FloatArray

TINY = 1e-9

THIN = 1e-6
"""Width of a cell without rows, as a share of U, so that no slope is infinite."""


@dataclass(frozen=True, eq=False)
class Mass:
    """How many rows lie in each cell; one row a draw."""

    unlabeled: FloatArray
    """Rows of U."""
    labeled: FloatArray
    """Labelled positives that belong to the population; zero where U is all."""
    hidden: FloatArray
    """Where the positives hidden in U lie, as shares of them."""
    prior: FloatArray
    """Share of U that is positive, one number a draw."""

    @property
    def n_hidden(self) -> FloatArray:
        """Positives inside U."""
        return self.prior * self.unlabeled.sum(axis=1)

    @property
    def n_rows(self) -> FloatArray:
        """Rows of the population."""
        return (self.unlabeled + self.labeled).sum(axis=1)

    @property
    def n_positive(self) -> FloatArray:
        """Positives of the population."""
        return self.n_hidden + self.labeled.sum(axis=1)


def at_threshold(mass: Mass, called: int) -> dict[str, FloatArray]:
    """Return the figures of a decision: cells before ``called`` are positive.

    The number of hidden positives called positive is kept between what the rows of U
    allow: no more than are called, no fewer than must be once all negatives are used.
    Recall alone is left as it is: it needs no prior.
    """
    u = mass.unlabeled[:, :called].sum(axis=1)
    known = mass.labeled[:, :called].sum(axis=1)
    share = mass.hidden[:, :called].sum(axis=1)
    n, n_hidden = mass.unlabeled.sum(axis=1), mass.n_hidden
    least = np.maximum(0.0, u - (n - n_hidden))
    hits = known + np.clip(n_hidden * share, least, np.minimum(u, n_hidden))
    rows, positives = mass.n_rows, mass.n_positive
    negatives = n - n_hidden
    any_positive = positives > TINY
    found = _divided(hits, positives)
    labeled = mass.labeled.sum(axis=1)
    recall = np.where(labeled > 0, _divided(known + n_hidden * share, positives), share)
    false_alarms = _divided(known + u - hits, negatives)
    return {
        "recall": recall,
        "precision": _divided(hits, known + u),
        "f1": _divided(2 * hits, positives + known + u),
        "accuracy": (hits + negatives - (known + u - hits)) / rows,
        "balanced_accuracy": _unknown(
            (recall + 1 - false_alarms) / 2, negatives <= TINY * rows
        ),
        "lift": _divided(np.where(any_positive, found, share), (known + u) / rows),
    }


def ranking_auc(mass: Mass) -> FloatArray:
    """Return the chance that a positive scores above a negative, ties one half.

    (A - π/2) / (1 - π), where A compares positives with all rows and π is the
    population's share of positives.
    """
    rows, share = mass.n_rows, mass.n_positive / mass.n_rows
    where = mass.labeled + mass.n_hidden[:, None] * mass.hidden
    where = np.where(mass.n_positive[:, None] > TINY, where, mass.hidden)
    where = where / where.sum(axis=1, keepdims=True)
    everyone = (mass.unlabeled + mass.labeled) / rows[:, None]
    below = 1 - np.cumsum(everyone, axis=1) + everyone / 2
    against_all = (where * below).sum(axis=1)
    none = share >= 1 - TINY
    return _unknown((against_all - share / 2) / np.where(none, 1, 1 - share), none)


def hidden_curve(mass: Mass) -> FloatArray:
    """Return how many hidden positives lie in each cell and above.

    The raw count n_hidden × (share of held-out positives) is noisy at the top. Two
    things are known of the truth: the k highest rows hold at most k positives, and a
    score worth its name holds fewer positives a row the lower it gets. So the least
    concave curve above the raw one is taken, and cut off at k.
    """
    u = mass.unlabeled
    width = u + THIN * u.sum(axis=1, keepdims=True)
    raw = mass.n_hidden[:, None] * mass.hidden / width
    # One call for all draws: steps between them, too high to be pooled over.
    steps = 2 / THIN * np.arange(len(raw))[:, None]
    slopes = isotonic_regression(
        (raw - steps).ravel(), weights=width.ravel(), increasing=False
    ).x.reshape(raw.shape)
    curve = np.cumsum((slopes + steps) * width, axis=1)
    return within(mass, curve)


def within(mass: Mass, curve: FloatArray) -> FloatArray:
    """Keep a curve below the number of rows, and of hidden positives."""
    rows = np.cumsum(mass.unlabeled, axis=1)
    return np.clip(curve, 0.0, np.minimum(rows, mass.n_hidden[:, None]))


def rough_curve(draws: Mass, curve: FloatArray, n_hidden: float) -> FloatArray:
    """Return curves that hidden positives may follow, one row a draw.

    Down to as many rows as there are hidden positives, a draw has the shape of
    ``curve``, made higher or lower to meet the drawn count there; below, it is the
    drawn count itself.
    """
    raw = np.cumsum(draws.n_hidden[:, None] * draws.hidden, axis=1)
    rows = np.cumsum(draws.unlabeled[0])
    meet = min(int(np.searchsorted(rows, n_hidden)), len(rows) - 1)
    factor = _divided(raw[:, meet], curve[:, meet])[:, None]
    above = np.arange(len(rows)) < meet
    return within(draws, np.where(above, curve * factor, raw))


def precision_at(mass: Mass, curve: FloatArray, k: int) -> FloatArray:
    """Return the share of positives among the k highest rows; ties share alike."""
    rows = np.cumsum(mass.unlabeled + mass.labeled, axis=1)
    last = np.argmax(rows >= k - TINY, axis=1)
    at = (np.arange(len(last)), last)
    before = np.where(last > 0, rows[at[0], last - 1], 0.0)
    part = np.clip((k - before) / np.maximum(rows[at] - before, TINY), 0.0, 1.0)
    positives = np.cumsum(mass.labeled, axis=1) + curve
    above = np.where(last > 0, positives[at[0], last - 1], 0.0)
    hits = above + part * (positives[at] - above)
    return np.clip(hits / k, 0.0, 1.0)


def average_precision(mass: Mass, curve: FloatArray, tied: FloatArray) -> FloatArray:
    """Return the mean, over positives, of the precision down to their score.

    Inside a gap the rows of U stand one below another and positives are spread evenly
    among them; the sum over these rows is taken as an integral. Rows of one value are
    taken together. A positive counts itself among the hits.
    """
    known = np.cumsum(mass.labeled, axis=1)
    end = np.cumsum(mass.unlabeled, axis=1)
    start = end - mass.unlabeled
    hits = curve - np.diff(curve, axis=1, prepend=0.0)
    gain = curve - hits
    slope = np.clip(_divided(gain, mass.unlabeled), 0.0, 1.0)
    # (known + hits + slope (x - start) + 1 - slope) / (known + x), x from start to end
    rest = known + hits + 1 - slope - slope * (known + start)
    span = np.log((known + end + 0.5) / (known + start + 0.5))
    spread = slope * (slope * mass.unlabeled + rest * span)
    together = gain * _divided(known + curve, known + end)
    hidden = np.where(tied > 0, together, np.minimum(spread, gain))
    labeled = mass.labeled * _divided(known + curve, known + end)
    total = _divided((hidden + labeled).sum(axis=1), mass.n_positive)
    return np.clip(total, 0.0, 1.0)


def ranking(
    mass: Mass, curve: FloatArray, tied: FloatArray, ks: Sequence[int]
) -> dict[str, FloatArray]:
    """Return the figures that rest on the curve."""
    slopes = np.maximum(np.diff(curve, axis=1, prepend=0.0), 0.0)
    total = slopes.sum(axis=1, keepdims=True)
    where = np.where(total > TINY, slopes / np.maximum(total, TINY), mass.hidden)
    followed = Mass(mass.unlabeled, mass.labeled, where, mass.prior)
    found = {
        "roc_auc": ranking_auc(followed),
        "average_precision": average_precision(mass, curve, tied),
    }
    return found | {f"precision_at_{k}": precision_at(mass, curve, k) for k in ks}


def _divided(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Return the quotient, and 0 where there is nothing to divide by."""
    top, bottom = np.broadcast_arrays(top, bottom)
    none = np.abs(bottom) <= TINY
    return np.where(none, 0.0, top / np.where(none, 1.0, bottom))


def _unknown(values: FloatArray, where: BoolArray) -> FloatArray:
    """Put 0 and 1 in turn where nothing can be known, so that intervals are wide."""
    return np.where(where, np.arange(len(values)) % 2, values)
