"""Parts of the rows such that each is judged by models that have not seen it."""

from __future__ import annotations

import numpy as np

from denspu._typing import BoolArray, IntArray


def make_folds(
    positive: BoolArray,
    groups: IntArray | None,
    n_folds: int,
    rng: np.random.Generator,
) -> IntArray:
    """Return the fold of each row; P and U are spread evenly, no group is split."""
    fold = np.empty(len(positive), dtype=np.int64)
    if groups is None:
        for rows in (np.flatnonzero(positive), np.flatnonzero(~positive)):
            fold[rows] = rng.permutation(len(rows)) % n_folds
        return fold
    names, member = np.unique(groups, return_inverse=True)
    holds = np.bincount(member, weights=positive, minlength=len(names)) > 0
    of_group = np.empty(len(names), dtype=np.int64)
    for some in (np.flatnonzero(holds), np.flatnonzero(~holds)):
        of_group[some] = rng.permutation(len(some)) % n_folds
    return of_group[member]


def deal_folds(
    positive: BoolArray, groups: IntArray | None, folds: int, rng: np.random.Generator
) -> IntArray:
    """Return a fold for every row: positives spread evenly, no group split.

    As :func:`make_folds`, for rare positives: fewer folds where few units hold any, and
    one where a fold would see no row of U.
    """
    if groups is None:
        unit, n_units = np.arange(len(positive)), len(positive)
    else:
        values, unit = np.unique(groups, return_inverse=True)
        n_units = len(values)
    held = np.bincount(unit, weights=positive, minlength=n_units)
    folds = max(1, min(folds, int((held > 0).sum())))
    # Units with many positives first, equals in random order, dealt like cards.
    order = np.lexsort((rng.permutation(n_units), -held))
    fold_of_unit = np.empty(n_units, dtype=np.int8)
    fold_of_unit[order] = np.arange(n_units) % folds
    fold = fold_of_unit[unit]
    if len(np.unique(fold[~positive])) < min(2, folds):  # a fold would see no U
        return np.zeros_like(fold)
    return fold
