"""Counting the entries of each row that reach two bounds, in one pass."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor

from denspu._threads import in_threads, n_threads
from denspu._typing import FloatArray

ROWS_AT_ONCE = 32


def count_at_least(
    values: Tensor, low: Tensor, high: Tensor
) -> tuple[FloatArray, FloatArray]:
    """Return how many entries of each row are at least ``low``, and at least ``high``.

    Parameters
    ----------
    values : Tensor of shape (n, m)
    low, high : Tensor of shape (n,)

    Notes
    -----
    On a CPU with numba this is one pass over the values in compiled code, several times
    faster than comparing and summing tensors.
    """
    if values.device.type != "cpu" or importlib.util.find_spec("numba") is None:
        reached = ((values >= bound[:, None]).sum(1) for bound in (low, high))
        first, second = (count.double().cpu().numpy() for count in reached)
        return first, second
    table, least, most = values.numpy(), low.numpy(), high.numpy()
    out = np.empty((2, len(table)))

    def work(start: int) -> None:
        rows = slice(start, start + ROWS_AT_ONCE)
        _compiled()(table[rows], least[rows], most[rows], out[:, rows])

    in_threads(work, range(0, len(table), ROWS_AT_ONCE), n_threads(None))
    return out[0], out[1]


@cache
def _compiled() -> Any:
    import numba

    @numba.njit(nogil=True, error_model="numpy")
    def count(values: Any, low: Any, high: Any, out: Any) -> None:
        for i in range(len(low)):
            row, least, most = values[i], low[i], high[i]
            above_low = above_high = 0
            for j in range(len(row)):
                above_low += row[j] >= least
                above_high += row[j] >= most
            out[0, i], out[1, i] = above_low, above_high

    return count
