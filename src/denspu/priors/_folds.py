"""Parts of the rows: P and U spread evenly, no group split."""

from __future__ import annotations

import numpy as np

from denspu._typing import BoolArray, IntArray


def deal_folds(
    positive: BoolArray, groups: IntArray | None, folds: int, rng: np.random.Generator
) -> IntArray:
    """Return the fold of each row.

    Each fold gets about the same share of P as of U, so that a score's scale, which
    differs from fold to fold, tells nothing about the label. There are at most as many
    folds as units (rows or groups) with a positive, and with an unlabelled row; one
    fold means that no model can be kept from a row.
    """
    unit = np.arange(len(positive)) if groups is None else groups
    n_units = int(unit.max()) + 1
    n_positive = np.bincount(unit, weights=positive, minlength=n_units)
    n_unlabeled = np.bincount(unit, weights=~positive, minlength=n_units)
    folds = min(folds, int((n_positive > 0).sum()), int((n_unlabeled > 0).sum()))
    # Units with many positives first, then those with many rows of U; equals in random
    # order. Those with a positive and those without are dealt back and forth apart.
    order = np.lexsort((rng.permutation(n_units), -n_unlabeled, -n_positive))
    holds = n_positive[order] > 0
    for count in range(folds, 1, -1):
        of_unit = np.empty(n_units, dtype=np.int64)
        for some in (order[holds], order[~holds]):
            turn = np.arange(len(some)) % (2 * count)
            of_unit[some] = np.minimum(turn, 2 * count - 1 - turn)
        fold = of_unit[unit]
        if all(len(np.unique(fold[rows])) == count for rows in (positive, ~positive)):
            return fold
    return np.zeros(len(positive), dtype=np.int64)
