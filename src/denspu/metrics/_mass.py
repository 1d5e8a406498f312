"""From scores to counts in cells, and from counts to figures, for many draws at once.

A cell is one of the values that held-out positives take, or the gap between two of
them; cells run from the highest score down. All figures are sums over cells.

What is not known is where the hidden positives of U lie. Under SCAR they are a second
draw from where the held-out ones came from. A draw therefore has two steps: weights of
the held-out positives (Bayesian bootstrap over rows or groups, with half a positive
above and half a one below all scores, so that a count above a cut has Jeffreys' Beta
distribution), then as many hidden positives as the prior says, drawn with these
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.sparse import csr_matrix

from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.exceptions import InvalidInputError

CHUNK = 2_000_000
"""Cells times draws held in memory at once."""

CROWDED = 0.85, 0.95
"""From the first to the second, the AUC on the curve replaces the plain one.

The plain one is right on average, but near 1 half of its errors would lie above 1.
"""

CORRECTION = 200
"""Draws that measure how far the concave curve leans upwards."""

TINY = 1e-9

THIN = 1e-6
"""Width of a cell without rows, as a share of U, so that no slope is infinite."""

END = 0.5
"""Positives imagined above, and as many below, all scores."""


# --- the gate ------------------------------------------------------------------------


def scores_of(argument: str, scores: Any) -> FloatArray:
    """Return scores as a vector of floats; infinite ones are allowed, NaN is not."""
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{argument} must be numbers. Pass decision_function(X) of those rows."
        ) from None
    if array.ndim != 1:
        raise InvalidInputError(
            f"{argument} has shape {array.shape}; it must have one number a row. Pass "
            "decision_function(X), or one column of predict_proba(X)."
        )
    if len(array) == 0:
        raise InvalidInputError(
            f"{argument} is empty; nothing can be said without at least one row."
        )
    if np.isnan(array).any():
        raise InvalidInputError(
            f"{argument} holds {np.isnan(array).sum()} NaN. Leave those rows out, or "
            "find out why the model cannot score them."
        )
    return array


def groups_of(argument: str, groups: Any, n_rows: int) -> IntArray | None:
    """Return group numbers from 0 on, or nothing."""
    if groups is None:
        return None
    array = np.asarray(groups)
    if array.shape != (n_rows,):
        raise InvalidInputError(
            f"{argument} has shape {array.shape}; it must name one group for each of "
            f"the {n_rows} scores."
        )
    return np.unique(array, return_inverse=True)[1]


# --- draws ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Side:
    """The rows of P or of U in cells, and what is resampled: rows or groups."""

    cell: IntArray
    """Cell of each row."""
    groups: IntArray | None
    n_cells: int

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.cell)

    @property
    def n_units(self) -> int:
        """How many rows there are, or groups where there are groups."""
        return self.n_rows if self.groups is None else int(self.groups.max()) + 1

    @property
    def counts(self) -> FloatArray:
        """Rows by cell."""
        return np.bincount(self.cell, minlength=self.n_cells).astype(np.float64)

    def by_unit(self) -> csr_matrix:
        """Rows of each group (row) in each cell (column)."""
        shape = (self.n_units, self.n_cells)
        ones = np.ones(self.n_rows)
        return csr_matrix((ones, (self.groups, self.cell)), shape=shape)


@dataclass(frozen=True, eq=False)
class Cells:
    """P and U along the score, from high to low."""

    positive: Side
    unlabeled: Side
    called: int
    """Cells above the threshold."""
    tied: FloatArray
    """1 for cells that are one value, 0 for gaps between values."""

    @classmethod
    def of(
        cls,
        positive: FloatArray,
        unlabeled: FloatArray,
        threshold: float,
        positive_groups: IntArray | None = None,
        unlabeled_groups: IntArray | None = None,
    ) -> Cells:
        """Sort both into cells; rows above the threshold are called positive."""
        values = np.unique(np.append(positive, threshold))
        n_cells = 2 * len(values) + 1

        def cell(scores: FloatArray) -> IntArray:
            below = np.searchsorted(values, scores, side="left")
            same = np.searchsorted(values, scores, side="right") - below
            return n_cells - 1 - (2 * below + same)

        return cls(
            Side(cell(positive), positive_groups, n_cells),
            Side(cell(unlabeled), unlabeled_groups, n_cells),
            int(cell(np.array([threshold]))[0]),
            np.arange(n_cells) % 2.0,
        )

    def positive_weights(
        self, times: int, rng: np.random.Generator, each: float = 1.0
    ) -> FloatArray:
        """Return weights of cells, one row a draw of where positives come from.

        Every positive counts as ``each``: draws differ more where that is less.
        """
        side = self.positive
        shape = np.zeros(side.n_cells)
        shape[[0, -1]] = END
        if side.groups is None:
            shape += each * side.counts
        drawn = rng.standard_gamma(shape, (times, side.n_cells))
        if side.groups is not None:
            of_group = rng.standard_gamma(each, (times, side.n_units))
            size = side.n_rows / side.n_units
            drawn = drawn * size + of_group @ side.by_unit()
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))

    def unlabeled_counts(self, times: int, rng: np.random.Generator) -> FloatArray:
        """Return rows by cell, one row a resample of U."""
        side = self.unlabeled
        if side.groups is None:
            shares = side.counts / side.n_rows
            return rng.multinomial(side.n_rows, shares, times).astype(np.float64)
        even = np.full(side.n_units, 1 / side.n_units)
        chosen = rng.multinomial(side.n_units, even, times)
        counts = np.asarray(chosen @ side.by_unit(), dtype=np.float64)
        return counts * (side.n_rows / counts.sum(axis=1, keepdims=True))

    def hidden_shares(
        self, weights: FloatArray, n_hidden: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Return the share of the hidden positives in each cell, drawn by weights.

        ``n_hidden`` counts units, one number a draw. Where it is 0 there is nothing to
        draw, and the weights themselves are returned.
        """
        whole = np.maximum(np.rint(n_hidden), 0).astype(np.int64)
        drawn = rng.multinomial(whole, weights) / np.maximum(whole, 1)[:, None]
        return np.where(whole[:, None] > 0, drawn, weights)


# --- figures ----------------------------------------------------------------------


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
    def raw_curve(self) -> FloatArray:
        """Hidden positives in each cell and above, as counted."""
        return np.cumsum(self.n_hidden[:, None] * self.hidden, axis=1)

    @property
    def n_rows(self) -> FloatArray:
        """Rows of the population."""
        return (self.unlabeled + self.labeled).sum(axis=1)

    @property
    def n_positive(self) -> FloatArray:
        """Positives of the population."""
        return self.n_hidden + self.labeled.sum(axis=1)


def plain(mass: Mass, called: int) -> dict[str, FloatArray]:
    """Return the figures that need no curve; cells before ``called`` are positive.

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
        "roc_auc": ranking_auc(mass),
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
    raw = draws.raw_curve
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


# --- all together -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Maker:
    """Values and draws of all figures."""

    cells: Cells
    prior: float
    errors: tuple[float, float]
    n_known: int
    rows: Literal["these", "new"]
    ks: tuple[int, ...]
    each: float = 1.0
    """What a held-out positive counts for."""

    def found(
        self, times: int, rng: np.random.Generator
    ) -> tuple[dict[str, float], dict[str, FloatArray]]:
        """Return the estimates, and each as it may be, in many draws."""
        positive = self.cells.positive.counts
        shares = positive / positive.sum()
        mass = Mass(
            self.cells.unlabeled.counts[None],
            self.n_known * shares[None],
            shares[None],
            np.array([self.prior]),
        )
        found = plain(mass, self.cells.called)
        curve = hidden_curve(mass)
        on_curve = self.ranked(mass, curve, rng)
        auc = on_curve["roc_auc"]
        part = np.clip((auc - CROWDED[0]) / (CROWDED[1] - CROWDED[0]), 0.0, 1.0)
        on_curve["roc_auc"] = found["roc_auc"] + part * (auc - found["roc_auc"])
        found |= on_curve
        values = {
            name: float(v[0] if name == "lift" else np.clip(v[0], 0, 1))
            for name, v in found.items()
        }
        step = max(1, CHUNK // self.cells.positive.n_cells)
        parts = [
            self.draws(min(step, times - start), curve, rng)
            for start in range(0, times, step)
        ]
        draws = {name: np.concatenate([p[name] for p in parts]) for name in values}
        return values, draws

    def ranked(
        self, mass: Mass, curve: FloatArray, rng: np.random.Generator
    ) -> dict[str, FloatArray]:
        """Return the figures on the curve, less what it leans upwards.

        Positives are drawn from the curve, as many as there are held-out ones (or
        groups of them), and the figures made again; what they are off by on average is
        taken off.
        """
        tied = self.cells.tied
        found = ranking(mass, curve, tied, self.ks)
        slopes = np.maximum(np.diff(curve[0], prepend=0.0), 0.0)
        if slopes.sum() <= TINY:
            return found
        n = self.cells.positive.n_units
        again = Mass(
            np.repeat(mass.unlabeled, CORRECTION, axis=0),
            np.repeat(mass.labeled, CORRECTION, axis=0),
            rng.multinomial(n, slopes / slopes.sum(), CORRECTION) / n,
            np.full(CORRECTION, self.prior),
        )
        refound = ranking(again, hidden_curve(again), tied, self.ks)
        found = {name: 2 * v - refound[name].mean() for name, v in found.items()}
        raw = within(mass, mass.raw_curve)
        for k in self.ks:
            part = float(np.clip(2 * k / mass.n_positive[0] - 1, 0.0, 1.0)) ** 2
            name = f"precision_at_{k}"
            found[name] += part * (precision_at(mass, raw, k) - found[name])
        return found

    def draws(
        self, times: int, curve: FloatArray, rng: np.random.Generator
    ) -> dict[str, FloatArray]:
        """Return each figure as it may be, in many draws."""
        mass = self.drawn(times, rng)
        rough = rough_curve(mass, curve, self.prior * self.cells.unlabeled.n_rows)
        raw = within(mass, mass.raw_curve)
        found = ranking(mass, rough, self.cells.tied, ())
        found |= plain(mass, self.cells.called)
        return found | {
            f"precision_at_{k}": precision_at(mass, raw, k) for k in self.ks
        }

    def drawn(self, times: int, rng: np.random.Generator) -> Mass:
        """Draw where hidden positives lie, how many there are, and U if it is new."""
        cells, n = self.cells, self.cells.positive.n_rows
        z = rng.standard_normal(times)
        priors = self.prior + z * np.where(z < 0, *self.errors)
        priors = np.clip(priors, 0.0, 1.0)
        weights = cells.positive_weights(times, rng, self.each)
        if self.rows == "new":
            return Mass(
                cells.unlabeled_counts(times, rng),
                self.n_known * weights,
                weights,
                priors,
            )
        n_units = cells.unlabeled.n_units
        labeled = np.zeros((times, cells.positive.n_cells))
        if self.n_known:
            others = self.n_known - n
            per_row = cells.positive.n_units / n
            unseen = cells.hidden_shares(weights, np.full(times, others * per_row), rng)
            labeled = labeled + cells.positive.counts + others * unseen
        return Mass(
            np.repeat(cells.unlabeled.counts[None], times, axis=0),
            labeled,
            cells.hidden_shares(weights, priors * n_units, rng),
            priors,
        )


def _divided(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Return the quotient, and 0 where there is nothing to divide by."""
    top, bottom = np.broadcast_arrays(top, bottom)
    none = np.abs(bottom) <= TINY
    return np.where(none, 0.0, top / np.where(none, 1.0, bottom))


def _unknown(values: FloatArray, where: BoolArray) -> FloatArray:
    """Put 0 and 1 in turn where nothing can be known, so that intervals are wide."""
    return np.where(where, np.arange(len(values)) % 2, values)
