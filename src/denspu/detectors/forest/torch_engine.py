"""The walk through the trees as tensor gathers, on a GPU or a CPU.

All rows of a chunk walk all trees at once: a (rows, trees) tensor of node numbers goes
down one level a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from denspu._typing import FloatArray
from denspu.detectors.forest.arrays import Forest

CHUNK_CELLS = {"cpu": 1 << 18, "cuda": 1 << 26}
"""(rows x trees) worked on at once; about 40 bytes each."""


def total_paths(forest: Forest, Z: Any, device: Any = "cpu") -> FloatArray:
    """Return each row's path lengths summed over all trees."""
    device = Z.device if isinstance(Z, Tensor) else torch.device(device)
    walker = _Walker(forest, device)
    step = max(1, CHUNK_CELLS.get(device.type, CHUNK_CELLS["cpu"]) // forest.n_trees)
    parts = []
    for start in range(0, len(Z), step):
        rows = Z[start : start + step]
        if not isinstance(rows, Tensor):
            rows = torch.from_numpy(
                np.array(rows)
            )  # a copy: memory maps may be read-only
        parts.append(walker(rows.to(device, walker.threshold.dtype)).cpu())
    return torch.cat(parts).numpy()


class _Walker:
    """The forest's arrays as flat tensors on one device."""

    def __init__(self, forest: Forest, device: torch.device) -> None:
        def flat(array: Any) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        self.depth = forest.depth
        self.feature = flat(forest.feature.astype(np.int64)).flatten(0, 1)
        self.weight = None if forest.weight is None else flat(forest.weight)
        if self.weight is not None:
            self.weight = self.weight.flatten(0, 1)
        self.threshold = flat(forest.threshold).flatten()
        self.path = flat(forest.path).flatten()
        self.tree = torch.arange(forest.n_trees, device=device) << forest.depth

    def __call__(self, rows: Tensor) -> Tensor:
        node = torch.ones(
            len(rows), len(self.tree), dtype=torch.int64, device=rows.device
        )
        for _ in range(self.depth):
            at = self.tree + node
            right = self._value(rows, at) > self.threshold[at]
            node = node.mul_(2).add_(right)
        return self.path[self.tree + node - (1 << self.depth)].sum(1)

    def _value(self, rows: Tensor, at: Tensor) -> Tensor:
        feature = self.feature[at]  # (rows, trees, k)
        if self.weight is None:
            return rows.gather(1, feature[..., 0])
        seen = rows.gather(1, feature.flatten(1)).view(feature.shape)
        return (seen * self.weight[at]).sum(-1)
