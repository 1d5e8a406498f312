"""The rows that small learners are trained on, and which of them judge which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.base import FIXED_ROWS

WIDE, N_AXES = 128, 64
"""Embeddings wider than the first number are reduced to the second by PCA."""

WIDE_ROWS = 20_000
"""Rows from which the axes are learned."""

AXES_ROWS = FIXED_ROWS


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that are trained on."""

    Z: FloatArray
    positive: BoolArray
    free: BoolArray
    """Unlabelled and not known to be negative: the rows whose label is sought."""
    labels: BoolArray
    """What each row counts as."""
    scores: FloatArray | None
    """Normality by the boundary; None: to be found anew from the rows at hand."""
    groups: IntArray | None

    def take(self, index: IntArray | BoolArray) -> Rows:
        """Return some of the rows."""
        return Rows(
            self.Z[index],
            self.positive[index],
            self.free[index],
            self.labels[index],
            None if self.scores is None else self.scores[index],
            None if self.groups is None else self.groups[index],
        )


@dataclass(frozen=True, eq=False)
class Axes:
    """The directions in which wide embeddings spread most; narrow ones stay as is."""

    mean: FloatArray
    directions: FloatArray | None

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Return coordinates, the same whatever rows come together."""
        if self.directions is None:
            return Z
        out = np.empty((len(Z), self.directions.shape[1]), dtype=Z.dtype)
        block = np.zeros((AXES_ROWS, Z.shape[1]), dtype=Z.dtype)
        for first in range(0, len(Z), AXES_ROWS):
            rows = Z[first : first + AXES_ROWS]
            block[: len(rows)] = rows - self.mean
            out[first : first + AXES_ROWS] = (block @ self.directions)[: len(rows)]
        return out


def leading_axes(Z: FloatArray, seed: int) -> Axes:
    """Return the principal axes of embeddings wider than learners of distances like."""
    if Z.shape[1] <= WIDE or len(Z) <= N_AXES:
        return Axes(Z[:0], None)
    found = PCA(N_AXES, svd_solver="randomized", random_state=seed)
    found.fit(Z[:: max(1, len(Z) // WIDE_ROWS)])
    return Axes(found.mean_, np.ascontiguousarray(found.components_.T))


def parts(
    rows: Rows, use: BoolArray, folds: int, seed: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield rows to train on and rows to judge; no group is on both sides.

    Nothing is yielded where a part would leave one class without a row.
    """
    counts = np.bincount(rows.labels, minlength=2)
    folds = min(folds, *counts)
    splitter: Any = StratifiedKFold
    if rows.groups is not None:
        folds, splitter = min(folds, len(np.unique(rows.groups))), StratifiedGroupKFold
    if folds < 2:
        return
    split = splitter(folds, shuffle=True, random_state=seed)
    found = [
        (train[use[train]], test)
        for train, test in split.split(rows.Z, rows.labels, rows.groups)
    ]
    if all(min(np.bincount(rows.labels[train], minlength=2)) > 0 for train, _ in found):
        yield from found


def sure(margin: FloatArray, free: BoolArray, leave_out: float) -> BoolArray:
    """Return the rows of U that are not among the nearest to the cut, side by side."""
    answer = np.zeros(len(margin), dtype=bool)
    for side in (free & (margin > 0), free & (margin <= 0)):
        if side.any():
            distance = np.abs(margin[side])
            answer[side] = distance >= np.quantile(distance, leave_out)
    return answer
