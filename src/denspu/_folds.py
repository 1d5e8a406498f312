"""Parts of the rows such that each is judged by models that have not seen it.

The one place where folds are dealt; no group is ever split. There are three ways, and
:func:`hold_out` for a single part:

- :func:`make_folds` deals at random, in as many folds as asked for.
- :func:`deal_folds` is for rare positives: fewer folds where few rows or groups hold
  any.
- :func:`deal_even_folds` also promises every fold some of P and some of U.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from denspu._typing import BoolArray, IntArray


def make_folds(
    positive: BoolArray,
    groups: IntArray | None,
    n_folds: int,
    rng: np.random.Generator,
) -> IntArray:
    """Return the fold of each row; P and U are spread evenly, no group is split."""
    unit, n_units = units(groups, len(positive))
    holds = np.bincount(unit, weights=positive, minlength=n_units) > 0
    of_unit = np.empty(n_units, dtype=np.int64)
    for some in (np.flatnonzero(holds), np.flatnonzero(~holds)):
        of_unit[some] = rng.permutation(len(some)) % n_folds
    return of_unit[unit]


def share_held(
    positive: BoolArray,
    groups: IntArray | None,
    share: float,
    rng: np.random.Generator,
) -> BoolArray:
    """Return which rows make up about a share of P and of U."""
    return make_folds(positive, groups, max(2, round(1 / share)), rng) == 0


def hold_out(
    positive: BoolArray,
    groups: IntArray | None,
    share: float,
    rng: np.random.Generator,
) -> BoolArray:
    """Return which rows to hold out; none where a side would miss P or U."""
    held = share_held(positive, groups, share, rng)
    sides = (held & positive, held & ~positive, ~held & positive, ~held & ~positive)
    return held if all(side.any() for side in sides) else np.zeros_like(held)


def deal_folds(
    positive: BoolArray, groups: IntArray | None, folds: int, rng: np.random.Generator
) -> IntArray:
    """Return a fold for every row: positives spread evenly, no group split.

    As :func:`make_folds`, for rare positives: fewer folds where few units hold any, and
    one where a fold would see no row of U.
    """
    unit, n_units = units(groups, len(positive))
    held = np.bincount(unit, weights=positive, minlength=n_units)
    folds = max(1, min(folds, int((held > 0).sum())))
    # Units with many positives first, equals in random order, dealt like cards.
    order = np.lexsort((rng.permutation(n_units), -held))
    of_unit = np.empty(n_units, dtype=np.int8)
    of_unit[order] = np.arange(n_units) % folds
    fold = of_unit[unit]
    if len(np.unique(fold[~positive])) < min(2, folds):  # a fold would see no U
        return np.zeros_like(fold)
    return fold


def deal_even_folds(
    positive: BoolArray, groups: IntArray | None, folds: int, rng: np.random.Generator
) -> IntArray:
    """Return the fold of each row; every fold holds some of P and some of U.

    Each fold gets about the same share of P as of U, so that a score's scale, which
    differs from fold to fold, tells nothing about the label. There are at most as many
    folds as units (rows or groups) with a positive, and with an unlabelled row; one
    fold means that no model can be kept from a row.
    """
    unit, n_units = units(groups, len(positive))
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


def hold_groups(
    codes: IntArray, fraction: float, rng: np.random.Generator
) -> BoolArray:
    """Mark whole groups at random, about a share of the rows; never all, never none.

    They are picked for the smaller side, so that they can never be all of them.
    """
    sizes = np.bincount(codes)
    target = min(fraction, 1 - fraction) * len(codes)
    order = rng.permutation(len(sizes))
    picked: list[int] = []
    total = 0
    for group in order:
        if abs(total + sizes[group] - target) < abs(total - target):
            picked.append(group)
            total += sizes[group]
    if not picked:
        picked = [order[sizes[order].argmin()]]
    smaller_side = np.isin(codes, picked)
    return smaller_side if fraction <= 0.5 else ~smaller_side


def units(groups: IntArray | None, n_rows: int) -> tuple[IntArray, int]:
    """Return the unit of each row, counted from 0, and how many there are.

    A unit is what must not be split: a group, or a row where there are no groups.
    """
    if groups is None:
        return np.arange(n_rows), n_rows
    names, unit = np.unique(groups, return_inverse=True)
    return unit, len(names)


def same_rows(rows: Any) -> IntArray:
    """Return a number for each row; equal rows get the same."""
    rows = np.ascontiguousarray(rows)
    if np.issubdtype(rows.dtype, np.floating):
        rows = rows + 0.0  # no negative zero
    prints = np.array([zlib.crc32(row.tobytes()) for row in rows], dtype=np.int64)
    return np.unique(prints, return_inverse=True)[1]


def groups_argument(
    model: Any, groups: IntArray | None, index: IntArray
) -> dict[str, Any]:
    """Return the argument that keeps groups together in a classifier's own hold-out.

    Rows that are there twice are kept together too.
    """
    if not has_fit_parameter(model, "groups"):
        return {}
    if groups is not None:
        return {"groups": groups[index]}
    return {"groups": index} if len(np.unique(index)) < len(index) else {}
