"""A forest as plain arrays in heap order.

Node 1 is the root, node n has children 2n (left) and 2n+1 (right), node 0 is unused. A
row goes right where its feature is greater than the threshold. A branch that ends early
keeps an infinite threshold, so every row walks the same number of levels, always to the
left, and ends at a leaf slot that holds the path length of the branch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from denspu._typing import FloatArray


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

    @property
    def nbytes(self) -> int:
        """Return the memory the arrays take."""
        arrays = (self.feature, self.weight, self.threshold, self.path)
        return sum(a.nbytes for a in arrays if a is not None)

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
