"""A forest as plain arrays in heap order, and its scores.

Node 1 is the root, node n has children 2n (left) and 2n+1 (right), node 0 is unused. A
row goes right where its feature is greater than the threshold. A branch that ends early
keeps an infinite threshold, so every row walks the same number of levels, always to the
left, and ends at a leaf slot that holds the path length of the branch.

Rows are scored in chunks, so memory stays bounded whatever their number, and threads
fetch chunks as they come free, so a busy core slows nobody but itself. Two engines walk
the trees:

* ``numba``: compiled for the processor at hand; the default for arrays where numba is
  installed (``pip install 'denspu[fast]'``).
* ``torch``: gathers on whatever device the rows or the caller name; the default for
  tensors and the fallback for arrays. All rows of a chunk walk all trees at once: a
  (rows, trees) tensor of node numbers goes down one level a step.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from denspu._machine import in_threads, n_threads
from denspu._typing import FloatArray
from denspu.exceptions import MissingDependencyError


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of one depth; all arrays have one row a tree and one column a node."""

    feature: NDArray[np.uint32]
    """(trees, 2**depth, k): the k features a node looks at; k is 1 in plain trees."""
    weight: FloatArray | None
    """(trees, 2**depth, k): their weights, or None where the only weight is 1."""
    threshold: FloatArray
    """(trees, 2**depth): float32 or float64, the precision rows are compared in."""
    path: NDArray[np.float64]
    """(trees, 2**depth): path length at each leaf slot."""
    n_samples: int
    """Rows each tree was grown on."""
    n_features: int

    @property
    def n_trees(self) -> int:
        """Return the number of trees."""
        return len(self.threshold)

    @property
    def depth(self) -> int:
        """Return the levels every row walks."""
        return int(self.threshold.shape[1]).bit_length() - 1

    def normality(self, total_path: FloatArray) -> FloatArray:
        """Turn path lengths summed over trees into scores in [-1, 0).

        The score is -2^(-mean path / c(n_samples)); a tree grown on one row says
        nothing, and its score is -0.5. ``total_path`` is overwritten by the scores.
        """
        scale = self.n_trees * average_path_length(np.array([self.n_samples]))[0]
        if scale == 0:
            total_path[:] = -0.5
            return total_path
        np.divide(total_path, -scale, out=total_path)
        np.exp2(total_path, out=total_path)
        return np.negative(total_path, out=total_path)

    @classmethod
    def from_sklearn(cls, forest: Any) -> Self:
        """Copy the trees of a fitted ``sklearn.ensemble.IsolationForest``.

        scikit-learn compares float32 rows with float64 thresholds; rounding those down
        to float32 leaves every comparison as it was.
        """
        trees = [estimator.tree_ for estimator in forest.estimators_]
        depth = max(1, *(tree.max_depth for tree in trees))
        arrays = empty_arrays(len(trees), depth, np.dtype(np.float32))
        for t, tree in enumerate(trees):
            columns = forest.estimators_features_[t]
            _copy_tree(tree, columns, depth, *(a[t] for a in arrays))
        feature, threshold, path = arrays
        return cls(
            feature=feature[..., None],
            weight=None,
            threshold=threshold,
            path=path,
            n_samples=int(forest._max_samples),
            n_features=int(forest.n_features_in_),
        )


def empty_arrays(
    n_trees: int, depth: int, dtype: np.dtype[Any]
) -> tuple[NDArray[np.uint32], FloatArray, NDArray[np.float64]]:
    """Return features, thresholds and paths of trees without any split."""
    shape = (n_trees, 1 << depth)
    return (
        np.zeros(shape, np.uint32),
        np.full(shape, np.inf, dtype),
        np.zeros(shape, np.float64),
    )


def _copy_tree(
    tree: Any,
    columns: NDArray[Any],
    depth: int,
    feature: NDArray[np.uint32],
    threshold: FloatArray,
    path: NDArray[np.float64],
) -> None:
    """Copy one scikit-learn tree into heap order, level by level."""
    source, slot = np.array([0]), np.array([1])
    for level in range(depth + 1):
        leaf = tree.children_left[source] < 0
        ends = source[leaf]
        size = average_path_length(tree.n_node_samples[ends])
        path[(slot[leaf] << (depth - level)) - (1 << depth)] = level + size
        source, slot = source[~leaf], slot[~leaf]
        if len(source) == 0:
            return
        feature[slot] = columns[tree.feature[source]]
        threshold[slot] = round_down(tree.threshold[source])
        children = tree.children_left[source], tree.children_right[source]
        source, slot = (
            np.concatenate(children),
            np.concatenate([2 * slot, 2 * slot + 1]),
        )


def round_down(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest float32 that is not above each value."""
    rounded = values.astype(np.float32)
    above = rounded.astype(np.float64) > values
    return np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def average_path_length(n: NDArray[Any]) -> NDArray[np.float64]:
    """Return c(n): the mean path of an unsuccessful search in a tree of n rows.

    c(0) = c(1) = 0, c(2) = 1, else 2(ln(n-1) + γ) - 2(n-1)/n (Liu et al. 2008, eq. 1).
    """
    n = np.asarray(n, dtype=np.float64)
    large = np.maximum(n, 3)
    many = 2 * (np.log(large - 1) + np.euler_gamma) - 2 * (large - 1) / large
    return np.select([n <= 1, n <= 2], [0.0, 1.0], many)


def depth_for(n_samples: int) -> int:
    """Return the depth limit of a tree grown on ``n_samples`` rows."""
    return max(1, math.ceil(math.log2(max(n_samples, 2))))


CHUNK_ROWS = 2_048


def available_engines() -> tuple[str, ...]:
    """Return the engines that can run here, fastest first."""
    has_numba = importlib.util.find_spec("numba") is not None
    return ("numba", "torch") if has_numba else ("torch",)


def forest_scores(
    forest: Forest,
    Z: Any,
    *,
    engine: str = "auto",
    device: Any = "cpu",
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the normality of each row of ``Z``, higher = more normal.

    Arrays, memory maps and tensors are read in chunks and never copied as a whole. The
    torch engine works on arrays on ``device``; tensors stay where they are. The numba
    engine takes ``n_jobs`` threads; the scores do not depend on them.
    """
    on_host = isinstance(Z, np.ndarray)
    if engine == "auto":
        fast = on_host and str(device) == "cpu"
        engine = available_engines()[0] if fast else "torch"
    if engine == "torch":
        return forest.normality(total_paths(forest, Z, device))
    if engine not in available_engines():
        raise MissingDependencyError(
            f"engine={engine!r} is not installed: pip install 'denspu[fast]'."
        )
    from denspu.detectors.forest_numba import add_paths

    total = np.zeros(len(Z))

    def work(start: int) -> None:
        rows = np.ascontiguousarray(Z[start : start + CHUNK_ROWS])
        add_paths(forest, rows, total[start : start + CHUNK_ROWS])

    in_threads(work, range(0, len(Z), CHUNK_ROWS), n_threads(n_jobs))
    return forest.normality(total)


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
        if not isinstance(rows, Tensor):  # a copy: memory maps may be read-only
            rows = torch.from_numpy(np.array(rows))
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
