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
    # order, dealt back and forth.
    order = np.lexsort((rng.permutation(n_units), -n_unlabeled, -n_positive))
    turn = np.arange(n_units) % (2 * folds)
    of_unit = np.empty(n_units, dtype=np.int64)
    of_unit[order] = np.minimum(turn, 2 * folds - 1 - turn)
    return of_unit[unit]
