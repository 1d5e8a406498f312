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
