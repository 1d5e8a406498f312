"""TIcE: tree induction for the label frequency (Bekker and Davis 2018).

In any part S of the feature space the share of labelled rows is at most the label
frequency c, and near c where S holds positives alone. A tree looks for such parts on
one share of the rows; on the other rows each part of T rows, L of them labelled, gives
a lower bound (one-sided Chebyshev, failing with chance δ)

    c  ≥  L/T - √( c(1-c)(1-δ) / (δT) )

and the largest is the estimate. c under the root is the estimate of the pass before.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from denspu._folds import deal_even_folds
from denspu._parameters import Whole
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.base import Rules
from denspu.priors._base import PriorEstimator

CUTS = np.array([0.25, 0.5, 0.75])
"""Where the range of a feature inside a part may be cut."""


class TIcE(PriorEstimator):
    """Largest lower bound of the labelled share over the parts of a tree.

    Parameters
    ----------
    folds : int, default=5
        Each fold is once the rows on which the tree is grown; the others are judged.
    max_splits : int, default=500
        Splits of one tree.
    min_rows : int, default=10
        Parts with fewer rows are not looked at.
    max_rows : int, default=20_000
        Rows drawn from P and U together, in their shares, where there are more.
    """

    sees = "features"
    _rules: ClassVar[Rules] = {
        "folds": (Whole(2, 100),),
        "max_splits": (Whole(1),),
        "min_rows": (Whole(2),),
        "max_rows": (Whole(100),),
    }

    def __init__(
        self,
        *,
        folds: int = 5,
        max_splits: int = 500,
        min_rows: int = 10,
        max_rows: int = 20_000,
    ) -> None:
        self.folds = folds
        self.max_splits = max_splits
        self.min_rows = min_rows
        self.max_rows = max_rows

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        keep = min(1.0, self.max_rows / (len(P) + len(U)))
        if keep < 1:
            P = P[rng.permutation(len(P))[: max(2, round(keep * len(P)))]]
            U = U[rng.permutation(len(U))[: max(2, round(keep * len(U)))]]
        X = unit_cube(np.concatenate([P, U]))
        labelled = np.arange(len(X)) < len(P)
        fold = deal_even_folds(labelled, None, self.folds, rng)
        c = 0.5
        for _ in range(2):
            found = [self._of_tree(X, labelled, fold == k, c) for k in np.unique(fold)]
            c = float(np.mean(found))
        return Share.of_label_frequency(c, Counts(len(P), len(U))).value

    def _of_tree(
        self, X: FloatArray, labelled: BoolArray, grow: BoolArray, c: float
    ) -> float:
        """Return the largest lower bound that one tree finds."""
        risk = max(0.025, 1 / (1 + 0.004 * float((~grow).sum())))
        slack = np.sqrt(c * (1 - c) * (1 - risk) / risk)
        best = float(labelled.mean())
        rows, judged = np.flatnonzero(grow), np.flatnonzero(~grow)
        whole = Node(0.0, 0, rows, judged, np.zeros(X.shape[1]), np.ones(X.shape[1]))
        heap, count = [whole], 0
        for _ in range(self.max_splits):
            if not heap:
                break
            node = heapq.heappop(heap)
            for part in node.parts(X, labelled, self.min_rows):
                T = len(part.judged)
                best = max(best, labelled[part.judged].mean() - slack / np.sqrt(T))
                count += 1
                if len(part.rows) >= self.min_rows:
                    heapq.heappush(heap, replace(part, number=count))
        return best


@dataclass(frozen=True, order=True)
class Node:
    """A box of the feature space; the purest comes first."""

    impurity: float
    number: int
    rows: IntArray = field(compare=False)
    """Those that the tree grows on."""
    judged: IntArray = field(compare=False)
    low: FloatArray = field(compare=False)
    high: FloatArray = field(compare=False)

    def parts(self, X: FloatArray, labelled: BoolArray, least: int) -> Iterator[Node]:
        """Cut the box in two; a side with too few judged rows is dropped."""
        split = best_split(
            X[self.rows], labelled[self.rows], self.low, self.high, least
        )
        if split is None:
            return
        feature, cut = split
        for above in (False, True):
            rows = self.rows[(X[self.rows, feature] > cut) == above]
            judged = self.judged[(X[self.judged, feature] > cut) == above]
            if len(judged) < least or not len(rows):
                continue
            low, high = self.low.copy(), self.high.copy()
            (low if above else high)[feature] = cut
            yield Node(-float(labelled[rows].mean()), 0, rows, judged, low, high)


def best_split(
    X: FloatArray, labelled: BoolArray, low: FloatArray, high: FloatArray, least: int
) -> tuple[int, float] | None:
    """Return the feature and cut with the purest side of at least ``least`` rows."""
    best, found = -1.0, None
    for where in CUTS:
        cuts = low + where * (high - low)
        above = cuts < X
        n_above = above.sum(axis=0)
        l_above = labelled.astype(np.float64) @ above
        for n, hits in (
            (n_above, l_above),
            (len(X) - n_above, labelled.sum() - l_above),
        ):
            both = (n >= least) & (n < len(X))
            share = np.where(both, hits / np.maximum(n, 1), -1.0)
            k = int(np.argmax(share))
            if share[k] > best:
                best, found = float(share[k]), (k, float(cuts[k]))
    return found


def unit_cube(X: FloatArray) -> FloatArray:
    """Return the columns scaled to [0, 1]; constant ones become 0."""
    low = X.min(axis=0)
    span = X.max(axis=0) - low
    return (X - low) / np.where(span > 0, span, 1.0)
