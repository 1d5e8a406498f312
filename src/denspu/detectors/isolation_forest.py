"""Isolation Forest (Liu et al. 2008), the paper's detector, and its extended form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from denspu._machine import in_threads, n_threads, resolve_device
from denspu._parameters import About, OneOf, Whole, setting
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu.base import Detector
from denspu.detectors.forest import (
    Forest,
    average_path_length,
    depth_for,
    empty_arrays,
    forest_scores,
)


class IsolationForest(Detector):
    """How many random splits isolate a row.

    The trees are scikit-learn's in meaning: at each node a feature that varies there
    and a threshold uniform in its range, down to ceil(log2(max_samples)) levels. With
    ``contamination="auto"`` the threshold is the original paper's score of -0.5.

    Attributes
    ----------
    forest_ : Forest
        The trees as plain arrays.
    """

    about = About(key="isolation_forest", paper="Liu et al. 2008, Isolation Forest")
    takes_tensors: ClassVar[bool] = True

    n_estimators: int = setting(
        1000,
        Whole(1),
        doc="Trees. On 512-dimensional embeddings 100 trees rank poorly.",
    )
    max_samples: int = setting(
        256, Whole(1, 2**16), doc="Rows a tree sees (all, where there are fewer)."
    )
    random_state: RandomState = setting(None)
    n_jobs: int | None = setting(
        None,
        OneOf(None),
        Whole(),
        doc="Threads; None takes all cores, and the scores are the same.",
    )
    engine: Literal["auto", "numba", "torch"] = setting(
        "auto",
        OneOf("auto", "numba", "torch"),
        doc="What walks the trees, see :mod:`denspu.detectors.forest`.",
    )
    device: str = setting(
        "auto", doc="Where arrays are scored; tensors are scored where they are."
    )

    @classmethod
    def from_sklearn(cls, forest: Any) -> Self:
        """Return a detector with the trees of a fitted scikit-learn forest.

        Its scores equal ``forest.score_samples`` to rounding, its threshold is
        ``forest.offset_``.
        """
        detector = cls(
            n_estimators=len(forest.estimators_),
            max_samples=int(forest._max_samples),
            contamination=forest.contamination,
        )
        detector.forest_ = Forest.from_sklearn(forest)
        detector.n_features_in_ = forest.n_features_in_
        detector.threshold_ = float(forest.offset_)
        return detector

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        self.forest_ = build_forest(
            Z,
            n_trees=self.n_estimators,
            max_samples=self.max_samples,
            rng=randomness.numpy("forest"),
            n_jobs=self.n_jobs,
            n_directions=getattr(self, "n_directions", 1),
        )

    def _score(self, Z: FloatArray) -> FloatArray:
        return forest_scores(
            self.forest_,
            Z,
            engine=self.engine,
            device=resolve_device(self.device),
            n_jobs=self.n_jobs,
        )

    def _natural_threshold(self) -> float | None:
        return -0.5


class ExtendedIsolationForest(IsolationForest):
    """How many random planes isolate a row: without the axis-parallel ghosts."""

    about = About(
        key="extended_isolation_forest",
        paper="Hariri et al. 2019, Extended Isolation Forest",
    )

    n_directions: int = setting(
        8,
        Whole(2),
        doc="Features in a plane; one less is the paper's extension level.",
    )


# --- growing all trees at once, level by level ---
#
# At each level the rows of one node lie side by side, so the range of a feature
# within every node is one ``reduceat``. Only the values a level looks at are read from
# the data, which may be a NumPy array, a memory map or a tensor on a GPU.

Take = Callable[[IntArray, IntArray], FloatArray]
"""Returns the values at (row, column) pairs."""

BLOCK_TREES = 125
"""Trees grown together; each block has its own random stream."""

REDRAWS = 12
"""Tries at a feature that varies within the node, before all are looked at."""

FEW_FEATURES = 32
"""Up to this many, all are looked at once the first try fails."""

GRID_CELLS = 1 << 21
"""(rows x features) read at once while looking at all features."""


@dataclass(eq=False)
class _Level:
    """Nodes of a level by tree, heap number and rows; those of a node side by side."""

    rows: IntArray
    tree: IntArray
    slot: IntArray
    size: IntArray

    @property
    def start(self) -> IntArray:
        return np.cumsum(self.size) - self.size


def build_forest(
    Z: Any,
    *,
    n_trees: int,
    max_samples: int,
    rng: np.random.Generator,
    n_directions: int = 1,
    n_jobs: int | None = None,
) -> Forest:
    """Grow isolation trees, each on ``max_samples`` distinct random rows of ``Z``.

    ``Z`` is never copied; single values are read. A node compares one feature, chosen
    among those that vary in the node, with a threshold uniform in its range; with more
    ``n_directions`` a random combination of that many features (Extended Isolation
    Forest). The trees do not depend on ``n_jobs``.
    """
    n, d = Z.shape
    n_directions = min(n_directions, d)
    psi = min(max_samples, n)
    dtype = np.dtype(str(Z.dtype).removeprefix("torch."))
    sizes = [min(BLOCK_TREES, n_trees - t) for t in range(0, n_trees, BLOCK_TREES)]

    def grow(block: tuple[int, np.random.Generator]) -> _Grower:
        trees, stream = block
        grower = _Grower(
            taker(Z), d, depth_for(psi), trees, dtype, stream, n_directions
        )
        rows = distinct_rows(n, trees, psi, stream).ravel()
        one = np.ones(trees, np.int64)
        grower.grow(_Level(rows, np.arange(trees), one, psi * one))
        return grower

    blocks = list(zip(sizes, rng.spawn(len(sizes)), strict=True))
    grown = in_threads(grow, blocks, n_threads(n_jobs))
    return Forest(
        feature=np.concatenate([g.feature for g in grown]),
        weight=np.concatenate([g.weight for g in grown]) if n_directions > 1 else None,
        threshold=np.concatenate([g.threshold for g in grown]),
        path=np.concatenate([g.path for g in grown]),
        n_samples=psi,
        n_features=d,
    )


def taker(Z: Any) -> Take:
    """Return a reader of single values, for arrays and for tensors on any device."""
    if isinstance(Z, np.ndarray):
        return lambda rows, columns: Z[rows, columns]
    import torch

    def take(rows: IntArray, columns: IntArray) -> FloatArray:
        index = (torch.from_numpy(i).to(Z.device) for i in (rows, columns))
        return Z[tuple(index)].cpu().numpy()

    return take


def distinct_rows(
    n: int, n_trees: int, psi: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw ``psi`` distinct row numbers for each tree, every subset equally likely."""
    if psi * 4 > n:
        return np.stack([rng.permutation(n)[:psi] for _ in range(n_trees)])
    drawn = np.sort(rng.integers(n, size=(n_trees, psi)), axis=1)
    trees = np.arange(n_trees)
    while len(trees):
        block = drawn[trees]
        again = np.zeros(block.shape, bool)
        again[:, 1:] = block[:, 1:] == block[:, :-1]
        block[again] = rng.integers(n, size=int(again.sum()))
        block.sort(axis=1)
        drawn[trees] = block
        trees = trees[again.any(axis=1)]
    return drawn


class _Grower:
    """Splits nodes level by level and writes the forest's arrays."""

    def __init__(
        self,
        take: Take,
        n_features: int,
        depth: int,
        n_trees: int,
        dtype: np.dtype[Any],
        rng: np.random.Generator,
        n_directions: int,
    ) -> None:
        self.take = take
        self.n_features = n_features
        self.depth = depth
        self.rng = rng
        self.n_directions = n_directions
        feature, self.threshold, self.path = empty_arrays(n_trees, depth, dtype)
        self.feature = np.repeat(feature[..., None], self.n_directions, axis=2)
        self.weight = np.zeros(self.feature.shape, dtype)

    def grow(self, level: _Level) -> None:
        for done in range(self.depth):
            level = self._set_leaves_aside(level, level.size < 2, done)
            if len(level.size) == 0:
                return
            level = self._split(level, done)
        everything = np.ones(len(level.size), bool)
        self._set_leaves_aside(level, everything, self.depth)

    def _set_leaves_aside(self, level: _Level, leaf: BoolArray, done: int) -> _Level:
        """Write the path lengths of finished nodes and keep the others."""
        position = (level.slot[leaf] << (self.depth - done)) - (1 << self.depth)
        path = done + average_path_length(level.size[leaf])
        self.path[level.tree[leaf], position] = path
        keep = ~leaf
        return _Level(
            level.rows[np.repeat(keep, level.size)],
            level.tree[keep],
            level.slot[keep],
            level.size[keep],
        )

    def _split(self, level: _Level, done: int) -> _Level:
        draw = self._plane if self.n_directions > 1 else self._axis
        value, threshold, constant = draw(level)
        self.threshold[level.tree, level.slot] = threshold
        keep = np.repeat(~constant, level.size)
        level = self._set_leaves_aside(level, constant, done)
        limit = np.repeat(threshold[~constant], level.size)
        return _children(level, value[keep] > limit)

    def _axis(self, level: _Level) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Draw a feature that varies within each node and a threshold in its range.

        Returns the rows' values, the nodes' thresholds (infinite where all rows of the
        node are equal), and which nodes those are.
        """
        feature = self.rng.integers(self.n_features, size=len(level.size))
        value, low, high = self._range_of(level, feature)
        for _ in range(REDRAWS if self.n_features > FEW_FEATURES else 0):
            stuck = np.flatnonzero(low >= high)
            if len(stuck) == 0:
                break
            part, rows = _part(level, stuck)
            feature[stuck] = self.rng.integers(self.n_features, size=len(stuck))
            value[rows], low[stuck], high[stuck] = self._range_of(part, feature[stuck])
        stuck = np.flatnonzero(low >= high)
        if len(stuck):
            part, rows = _part(level, stuck)
            feature[stuck] = self._any_varying(part)
            value[rows], low[stuck], high[stuck] = self._range_of(part, feature[stuck])
        constant = low >= high
        uniform = self.rng.random(len(low)).astype(low.dtype)
        threshold = low + uniform * (high - low)
        threshold = np.where(threshold >= high, low, threshold)
        threshold[constant] = np.inf
        self.feature[level.tree, level.slot, 0] = feature
        return value, threshold, constant

    def _range_of(
        self, level: _Level, feature: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        value = self.take(level.rows, np.repeat(feature, level.size))
        start = level.start
        return (
            value,
            np.minimum.reduceat(value, start),
            np.maximum.reduceat(value, start),
        )

    def _any_varying(self, level: _Level) -> IntArray:
        """Look at all features of each node and draw one of those that vary.

        Where none varies the answer is feature 0.
        """
        d, chosen = self.n_features, np.zeros(len(level.size), np.int64)
        ends = np.cumsum(level.size)
        nodes_at_once = max(1, GRID_CELLS // (int(level.size.max()) * d))
        for first in range(0, len(level.size), nodes_at_once):
            nodes = slice(first, first + nodes_at_once)
            size = level.size[nodes]
            begin = ends[first] - level.size[first]
            rows = level.rows[begin : begin + size.sum()]
            grid = self.take(np.repeat(rows, d), np.tile(np.arange(d), len(rows)))
            grid = grid.reshape(len(rows), d)
            start = np.cumsum(size) - size
            span = np.maximum.reduceat(grid, start) > np.minimum.reduceat(grid, start)
            draw = np.where(span, self.rng.random(span.shape), -1.0)
            chosen[nodes] = np.where(span.any(1), draw.argmax(1), 0)
        return chosen

    def _plane(self, level: _Level) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Draw a random plane through each node's bounding box; see ``_axis``."""
        nodes, k, dtype = len(level.size), self.n_directions, self.threshold.dtype
        feature = self.rng.random((nodes, self.n_features)).argpartition(k - 1)[:, :k]
        ranges = [self._range_of(level, feature[:, j]) for j in range(k)]
        stuck = np.flatnonzero(np.all([low >= high for _, low, high in ranges], axis=0))
        if len(stuck):  # none of the k features varies: put in one that does, if any
            part, _ = _part(level, stuck)
            feature[stuck, 0] = self._any_varying(part)
            ranges[0] = self._range_of(level, feature[:, 0])
        constant = np.all([low >= high for _, low, high in ranges], axis=0)
        weight = self.rng.normal(size=(nodes, k)).astype(dtype)
        value, threshold = np.zeros(len(level.rows), dtype), np.zeros(nodes, dtype)
        for j, (column, low, high) in enumerate(ranges):
            at = low + self.rng.random(nodes).astype(dtype) * (high - low)
            value += np.repeat(weight[:, j], level.size) * column
            threshold += weight[:, j] * at
        threshold[constant] = np.inf
        self.feature[level.tree, level.slot] = feature
        self.weight[level.tree, level.slot] = weight
        return value, threshold, constant


def _part(level: _Level, nodes: IntArray) -> tuple[_Level, BoolArray]:
    """Return some nodes of a level, and the mask of their rows."""
    chosen = np.zeros(len(level.size), bool)
    chosen[nodes] = True
    rows = np.repeat(chosen, level.size)
    part = _Level(level.rows[rows], level.tree[nodes], level.slot[nodes],
                  level.size[nodes])  # fmt: skip
    return part, rows


def _children(level: _Level, right: BoolArray) -> _Level:
    """Put the rows of each node's left child before those of its right child."""
    n_right = np.add.reduceat(right, level.start, dtype=np.int64)
    n_left = level.size - n_right
    size = np.column_stack([n_left, n_right]).ravel()
    start = np.cumsum(size) - size
    # A row's place: its child's start plus how many of its side came before it.
    before_right: IntArray = np.cumsum(right) - right
    before_left = np.arange(len(right)) - before_right
    first = level.start
    rank_right: IntArray = before_right - np.repeat(before_right[first], level.size)
    rank_left = before_left - np.repeat(before_left[first], level.size)
    begin_left = np.repeat(start[0::2], level.size)
    begin_right = np.repeat(start[1::2], level.size)
    place = np.where(right, begin_right + rank_right, begin_left + rank_left)
    rows = np.empty_like(level.rows)
    rows[place] = level.rows
    slot = np.column_stack([2 * level.slot, 2 * level.slot + 1]).ravel()
    return _Level(rows, np.repeat(level.tree, 2), slot, size)
