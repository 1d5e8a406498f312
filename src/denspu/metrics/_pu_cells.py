"""Scores as counts in cells, and draws of what is not known.

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

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from denspu._typing import FloatArray, IntArray

END = 0.5
"""Positives imagined above, and as many below, all scores."""


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

    def positive_weights(self, times: int, rng: np.random.Generator) -> FloatArray:
        """Return weights of cells, one row a draw of where positives come from."""
        side = self.positive
        shape = np.zeros(side.n_cells)
        shape[[0, -1]] = END
        if side.groups is None:
            shape += side.counts
        drawn = rng.standard_gamma(shape, (times, side.n_cells))
        if side.groups is not None:
            of_group = rng.standard_exponential((times, side.n_units))
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


def drawn_priors(
    prior: float,
    below: float,
    above: float,
    times: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return priors around the given one; its two sides may differ in width."""
    z = rng.standard_normal(times)
    return np.clip(prior + z * np.where(z < 0, below, above), 0.0, 1.0)
