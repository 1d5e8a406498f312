"""Counting the entries of each row that lie between two bounds."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor

from denspu._threads import in_threads, n_threads
from denspu._typing import FloatArray

ROWS_AT_ONCE = 32


def count_between(values: Tensor, low: Tensor, high: Tensor) -> FloatArray:
    """Return how many entries of each row are at least ``low`` and below ``high``.

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
        inside = (values >= low[:, None]) & (values < high[:, None])
        return inside.sum(1).double().cpu().numpy()
    table, below, above = values.numpy(), low.numpy(), high.numpy()
    out = np.empty(len(table))

    def work(start: int) -> None:
        rows = slice(start, start + ROWS_AT_ONCE)
        _compiled()(table[rows], below[rows], above[rows], out[rows])

    in_threads(work, range(0, len(table), ROWS_AT_ONCE), n_threads(None))
    return out


@cache
def _compiled() -> Any:
    import numba

    @numba.njit(nogil=True, error_model="numpy")
    def count(values: Any, low: Any, high: Any, out: Any) -> None:
        for i in range(len(out)):
            row, least, most = values[i], low[i], high[i]
            found = 0
            for j in range(len(row)):
                found += (row[j] >= least) & (row[j] < most)
            out[i] = found

    return count
