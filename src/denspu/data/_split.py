"""Random hold-out in which no group crosses the line."""

from __future__ import annotations

from typing import Any

import numpy as np

from denspu._folds import hold_groups
from denspu._parameters import Number
from denspu._typing import IntArray
from denspu._validation import validate_groups
from denspu.exceptions import InvalidInputError, InvalidParameterError


def holdout(
    index_or_n: int | IntArray,
    fraction: float,
    *,
    groups: Any = None,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Split positions at random into a part to keep and a part held out.

    Parameters
    ----------
    index_or_n : int or array of int
        The positions to split; a number n stands for 0..n-1.
    fraction : float
        About which share to hold out, in (0, 1). At least one row, or one group,
        stays on each side.
    groups : array, optional
        Group of each position, in the same order. Groups are taken in random order
        as long as they bring the held-out share nearer to ``fraction``.
    rng : numpy.random.Generator
        Where the random numbers come from.

    Returns
    -------
    keep, held : arrays of int
        Positions, each in the order they were given.

    Examples
    --------
    >>> import numpy as np
    >>> keep, held = holdout(10, 0.3, rng=np.random.default_rng(0))
    >>> len(keep), len(held)
    (7, 3)
    """
    if not Number(0, 1, closed="neither").allows(fraction):
        raise InvalidParameterError(
            f"fraction={fraction!r} must be {Number(0, 1, closed='neither')}."
        )
    index = _positions(index_or_n)
    codes = validate_groups(groups, len(index))
    units, what = (len(index), "row") if codes is None else (_count(codes), "group")
    if units < 2:
        raise InvalidInputError(
            f"A hold-out needs at least 2 {what}s, one for each side; there "
            f"{'is' if units == 1 else 'are'} {units}."
        )
    if codes is None:
        n_held = min(max(round(fraction * len(index)), 1), len(index) - 1)
        held = np.zeros(len(index), dtype=bool)
        held[rng.permutation(len(index))[:n_held]] = True
    else:
        held = hold_groups(codes, fraction, rng)
    return index[~held], index[held]


def _positions(index_or_n: int | IntArray) -> IntArray:
    if isinstance(index_or_n, int | np.integer):
        return np.arange(index_or_n)
    return np.asarray(index_or_n)


def _count(codes: IntArray) -> int:
    return int(codes.max()) + 1 if len(codes) else 0
