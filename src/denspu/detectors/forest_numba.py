"""The walk through the trees, compiled by numba for the processor at hand.

A block of rows goes through one tree level by level: the rows' walks do not depend on
each other, so the processor overlaps them. Unsigned 32-bit indices keep the address
arithmetic short.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import uint32

from denspu._typing import FloatArray
from denspu.detectors.forest import Forest

BLOCK_ROWS = 64


def add_paths(forest: Forest, rows: FloatArray, total: FloatArray) -> None:
    """Add each row's path lengths in all trees to ``total``."""
    flat, d = rows.reshape(-1), rows.shape[1]
    if forest.weight is None:
        feature = forest.feature[..., 0]
        _walk(flat, d, feature, forest.threshold, forest.path, forest.depth, total)
        return
    _walk_planes(
        flat,
        d,
        forest.feature,
        forest.weight,
        forest.threshold,
        forest.path,
        forest.depth,
        total,
    )


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _walk(
    flat: Any,
    d: int,
    feature: Any,
    threshold: Any,
    path: Any,
    depth: int,
    total: Any,
) -> None:
    n_rows = len(total)
    leaves = uint32(1 << depth)
    width = uint32(d)
    node = np.empty(BLOCK_ROWS, np.uint32)
    cast = threshold.dtype.type
    for first in range(0, n_rows, BLOCK_ROWS):
        n = uint32(min(BLOCK_ROWS, n_rows - first))
        x = flat[first * d : (first + n) * d]
        for t in range(len(threshold)):
            f, th, p = feature[t], threshold[t], path[t]
            for i in range(n):
                node[i] = uint32(1)
            for _ in range(depth):
                for i in range(n):
                    k = node[i]
                    value = cast(x[uint32(uint32(i) * width + f[k])])
                    node[i] = uint32(k + k) + uint32(value > th[k])
            for i in range(n):
                total[first + i] += p[uint32(node[i] - leaves)]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _walk_planes(
    flat: Any,
    d: int,
    feature: Any,
    weight: Any,
    threshold: Any,
    path: Any,
    depth: int,
    total: Any,
) -> None:
    n_rows = len(total)
    leaves = uint32(1 << depth)
    width = uint32(d)
    directions = uint32(feature.shape[2])
    node = np.empty(BLOCK_ROWS, np.uint32)
    cast = threshold.dtype.type
    for first in range(0, n_rows, BLOCK_ROWS):
        n = uint32(min(BLOCK_ROWS, n_rows - first))
        x = flat[first * d : (first + n) * d]
        for t in range(len(threshold)):
            f, w, th, p = feature[t], weight[t], threshold[t], path[t]
            for i in range(n):
                node[i] = uint32(1)
            for _ in range(depth):
                for i in range(n):
                    k = node[i]
                    value = cast(0)
                    for j in range(directions):
                        at = uint32(uint32(i) * width + f[k, j])
                        value += w[k, j] * cast(x[at])
                    node[i] = uint32(k + k) + uint32(value > th[k])
            for i in range(n):
                total[first + i] += p[uint32(node[i] - leaves)]
