"""Trees: those of scikit-learn as arrays, and all rows walking them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from denspu.persistence.onnx.parts.basics import Part, constant


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """One tree: children as positions, a leaf leads to itself."""

    feature: Any
    threshold: Any
    left: Any
    right: Any
    value: Any
    depth: int


def _tree(
    leaf: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    value: Any,
    deep: int,
) -> TreeArrays:
    """Return a tree whose leaves lead to themselves."""
    here = np.arange(len(leaf))
    return TreeArrays(
        np.where(leaf, 0, feature).astype(np.int64),
        np.where(leaf, 0.0, threshold),
        np.where(leaf, here, left).astype(np.int64),
        np.where(leaf, here, right).astype(np.int64),
        value,
        deep,
    )


def boosted_tree(nodes: Any) -> TreeArrays:
    """Return a tree of scikit-learn's gradient boosting."""
    return _tree(
        nodes["is_leaf"].astype(bool),
        nodes["feature_idx"],
        nodes["num_threshold"],
        nodes["left"],
        nodes["right"],
        nodes["value"],
        int(nodes["depth"].max()),
    )


def voting_tree(tree: Any, column: int) -> TreeArrays:
    """Return a classification tree whose leaves hold the share of one class."""
    counts = tree.value[:, 0, :]
    share = counts[:, column] / np.maximum(counts.sum(axis=1), 1e-300)
    return _tree(
        tree.children_left < 0,
        tree.feature,
        tree.threshold,
        tree.children_left,
        tree.children_right,
        share,
        int(tree.max_depth),
    )


class Trees(Part):
    """Mean or sum of the leaf values that rows reach; left where not above.

    All rows walk all trees at once, one level a step.
    """

    feature: Tensor
    threshold: Tensor
    value: Tensor
    root: Tensor
    left: Tensor
    right: Tensor
    offset: Tensor

    def __init__(
        self,
        trees: Sequence[TreeArrays],
        *,
        precision: torch.dtype = torch.float64,
        mean: bool = False,
        offset: float = 0.0,
    ) -> None:
        super().__init__()
        starts = np.cumsum([0, *(len(tree.feature) for tree in trees)])[:-1]
        pairs = list(zip(trees, starts, strict=True))

        def joined(name: str, dtype: torch.dtype) -> Tensor:
            return constant(np.concatenate([getattr(t, name) for t in trees]), dtype)

        whole = torch.int64
        self.register_buffer("feature", joined("feature", whole))
        self.register_buffer("threshold", joined("threshold", torch.float64))
        self.register_buffer("value", joined("value", torch.float64))
        for side in ("left", "right"):
            at = np.concatenate([getattr(t, side) + start for t, start in pairs])
            self.register_buffer(side, constant(at, whole))
        self.register_buffer("root", constant(starts, whole))
        self.depth = max(tree.depth for tree in trees)
        self.precision = precision
        self._numbers(offset=offset)
        self.count = len(trees) if mean else 1

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        x = x.to(self.precision).double()
        node = self.root.expand(x.shape[0], -1)
        for _ in range(self.depth):
            stays_left = x.gather(1, self.feature[node]) <= self.threshold[node]
            node = torch.where(stays_left, self.left[node], self.right[node])
        return self.value[node].sum(1) / self.count + self.offset


class HeapForest(Part):
    """Normality by a forest in heap order (:mod:`denspu.detectors.forest`)."""

    feature: Tensor
    threshold: Tensor
    path: Tensor
    tree: Tensor
    weight: Tensor
    scale: Tensor

    def __init__(self, forest: Any, scale: float) -> None:
        super().__init__()
        self.depth, self.says_nothing = forest.depth, scale == 0
        self._numbers(scale=-float(scale))
        self.precision = constant(forest.threshold[:0], None).dtype
        feature = forest.feature.astype(np.int64)
        self.width = feature.shape[-1]
        self.register_buffer("feature", constant(feature, None).flatten(0, 1))
        self.register_buffer("threshold", constant(forest.threshold, None).flatten())
        self.register_buffer("path", constant(forest.path).flatten())
        self.register_buffer("tree", torch.arange(forest.n_trees) << forest.depth)
        self.weighted = forest.weight is not None
        if self.weighted:
            self.register_buffer("weight", constant(forest.weight, None).flatten(0, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return scores in [-1, 0)."""
        x = x.to(self.precision)
        node = torch.ones_like(self.tree).expand(x.shape[0], -1)
        for _ in range(self.depth):
            at = self.tree + node
            right = self._value(x, at) > self.threshold[at]
            node = node * 2 + right.to(torch.int64)
        total = self.path[self.tree + node - (1 << self.depth)].sum(1)
        if self.says_nothing:
            return torch.zeros_like(total) - 0.5
        return -torch.exp2(total / self.scale)

    def _value(self, x: Tensor, at: Tensor) -> Tensor:
        feature = self.feature[at]  # (rows, trees, k)
        if not self.weighted:
            return x.gather(1, feature[..., 0])
        seen = x.gather(1, feature.flatten(1)).reshape(feature.shape)
        return (seen * self.weight[at]).sum(-1)
