"""The arithmetic of fitted parts as torch modules, ready to become an ONNX graph.

Each module gives the numbers of the NumPy or scikit-learn code it stands for, from
the same fitted arrays, without loops over rows and without branches on values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F


def constant(values: Any, dtype: torch.dtype | None = torch.float64) -> Tensor:
    """Return an array as a tensor of its own."""
    found = torch.from_numpy(np.array(values))
    return found if dtype is None else found.to(dtype)


class Part(nn.Module):
    """A module whose numbers stay in double precision.

    The exporter writes a plain Python number in single precision.
    """

    def _numbers(self, **values: float) -> None:
        for name, value in values.items():
            self.register_buffer(name, torch.tensor(value, dtype=torch.float64))


class Chain(nn.Module):
    """Modules one after the other."""

    def __init__(self, *steps: nn.Module) -> None:
        super().__init__()
        self.steps = nn.ModuleList(steps)

    def forward(self, x: Tensor) -> Tensor:
        """Return what the last step makes of the rows."""
        for step in self.steps:
            x = step(x)
        return x


class Cast(nn.Module):
    """The same numbers in another precision."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows in that precision."""
        return x.to(self.dtype)


class Mean(nn.Module):
    """The mean answer of several parts."""

    def __init__(self, parts: Sequence[nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        total = self.parts[0](x)
        for part in list(self.parts)[1:]:
            total = total + part(x)
        return total / len(self.parts)


class Line(Part):
    """(answer - cut) / spread of a part."""

    cut: Tensor
    spread: Tensor

    def __init__(self, part: nn.Module, cut: float, spread: float = 1.0) -> None:
        super().__init__()
        self.part = part
        self._numbers(cut=cut, spread=spread)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        return (self.part(x).double() - self.cut) / self.spread


class LogOdds(Part):
    """Log-odds of a probability kept inside (sure, 1 - sure)."""

    low: Tensor
    high: Tensor

    def __init__(self, part: nn.Module, sure: float) -> None:
        super().__init__()
        self.part = part
        self._numbers(low=sure, high=1 - sure)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        share = self.part(x).double().clamp(self.low, self.high)
        return torch.log(share) - torch.log1p(-share)


# --- rows ----------------------------------------------------------------------------


class Pixels(nn.Module):
    """N×H×W×C pixels as N×C×H×W floats in [0, 1].

    Parameters
    ----------
    low, high : float
        Pixel values that mean 0 and 1.
    shape : tuple
        Height, width and channels.
    size : int or None
        Side to which images are resized.
    antialias : bool
    levels : int or None
        Values are rounded to so many steps, as a network's integers are.
    channels : int or None
        One grey channel is copied to so many.
    """

    height: Tensor
    width: Tensor

    def __init__(
        self,
        low: float,
        high: float,
        shape: tuple[int, int, int],
        *,
        size: int | None = None,
        antialias: bool = False,
        levels: int | None = None,
        channels: int | None = None,
    ) -> None:
        super().__init__()
        self.low, self.span = low, high - low
        self.alpha = shape[2] in (2, 4)
        self.levels, self.channels = levels, channels
        self.grey = shape[2] - self.alpha == 1
        self.resizes = size is not None and shape[:2] != (size, size)
        if self.resizes:
            assert size is not None
            height = resize_matrix(shape[0], size, antialias)
            width = resize_matrix(shape[1], size, antialias)
            self.register_buffer("height", height)
            self.register_buffer("width", width.T.contiguous())

    def forward(self, x: Tensor) -> Tensor:
        """Return pixels as a network takes them."""
        values = ((x.float() - self.low) / self.span).clamp(0, 1).permute(0, 3, 1, 2)
        if self.alpha:
            values = values[:, :-1]
        if self.grey and self.channels:
            values = values.expand(-1, self.channels, -1, -1)
        if self.resizes:
            values = (self.height @ values @ self.width).clamp(0, 1)
        if self.levels:
            values = (values * self.levels).round() / self.levels
        return values


def resize_matrix(n: int, size: int, antialias: bool) -> Tensor:
    """Return the matrix that resizes n pixels in a line to another number."""
    if n == size:
        return torch.eye(n)
    lines = torch.eye(n)[None, None]
    resized = F.interpolate(lines, size=(size, n), mode="bilinear", antialias=antialias)
    return resized[0, 0]


class FlatPixels(nn.Module):
    """N×H×W×C pixels as vectors in [0, 1]."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.low, self.span = low, high - low

    def forward(self, x: Tensor) -> Tensor:
        """Return vectors."""
        return ((x.float() - self.low) / self.span).clamp(0, 1).flatten(1)


class Unit(nn.Module):
    """Rows divided by their length."""

    def forward(self, x: Tensor) -> Tensor:
        """Return rows of length 1."""
        length = (x * x).sum(1, keepdim=True).sqrt()
        return x / length.clamp_min(torch.finfo(x.dtype).tiny)


class Affine(nn.Module):
    """(rows - centre) / spread, in the rows' own precision."""

    centre: Tensor
    spread: Tensor

    def __init__(self, centre: Any, spread: Any) -> None:
        super().__init__()
        self.register_buffer("centre", constant(centre))
        self.register_buffer("spread", constant(spread))

    def forward(self, x: Tensor) -> Tensor:
        """Return scaled rows."""
        return (x - self.centre.to(x.dtype)) / self.spread.to(x.dtype)


class Filled(nn.Module):
    """Gaps replaced by a number of their column, then scaled; then what was missing."""

    fill: Tensor
    marked: Tensor

    def __init__(self, fill: Any, scaled: nn.Module, marked: Any) -> None:
        super().__init__()
        self.register_buffer("fill", constant(fill))
        self.register_buffer("marked", constant(marked, torch.int64))
        self.scaled = scaled

    def forward(self, x: Tensor) -> Tensor:
        """Return numbers without gaps."""
        gap = x.isnan()
        found = self.scaled(torch.where(gap, self.fill.to(x.dtype), x))
        if not len(self.marked):
            return found
        return torch.cat([found, gap[:, self.marked].to(found.dtype)], dim=1)


class Product(nn.Module):
    """(rows - centre) times a matrix, in the rows' own precision."""

    centre: Tensor
    matrix: Tensor

    def __init__(self, centre: Any, matrix: Any) -> None:
        super().__init__()
        self.register_buffer("centre", constant(centre))
        self.register_buffer("matrix", constant(matrix))

    def forward(self, x: Tensor) -> Tensor:
        """Return coordinates."""
        return (x - self.centre.to(x.dtype)) @ self.matrix.to(x.dtype)


# --- linear and kernel answers -------------------------------------------------------


class Linear(Part):
    """Rows times weights plus a number."""

    weights: Tensor
    offset: Tensor

    def __init__(self, weights: Any, offset: float) -> None:
        super().__init__()
        self.register_buffer("weights", constant(np.ravel(weights)))
        self._numbers(offset=offset)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        return x.double() @ self.weights + self.offset


class Kernel(Part):
    """k(x, r) for each reference row r, as scikit-learn defines the kernels.

    ``gamma`` is one number, or one for each reference row.
    """

    centre: Tensor
    rows: Tensor
    gamma: Tensor
    coef0: Tensor

    def __init__(
        self,
        rows: Any,
        name: str,
        gamma: Any = 1.0,
        degree: int = 3,
        coef0: float = 0,
    ) -> None:
        super().__init__()
        held = constant(rows)
        centre = held.mean(0) if name == "rbf" else torch.zeros_like(held[0])
        self.register_buffer("centre", centre)
        self.register_buffer("rows", held - centre)
        self.name, self.degree = name, degree
        self.register_buffer("gamma", constant(gamma))
        self._numbers(coef0=coef0)

    def forward(self, x: Tensor) -> Tensor:
        """Return one column a reference row."""
        x = x.double() - self.centre
        if self.name == "rbf":
            return torch.exp(-self.gamma * squared_distances(x, self.rows))
        product = x @ self.rows.T
        if self.name == "linear":
            return product
        inner = self.gamma * product + self.coef0
        return inner.tanh() if self.name == "sigmoid" else inner**self.degree


def squared_distances(x: Tensor, rows: Tensor) -> Tensor:
    """Return |x - r|² by products; rows around 0 round least."""
    square = (x * x).sum(1, keepdim=True) + (rows * rows).sum(1)
    return (square - 2 * (x @ rows.T)).clamp_min(0)


class Gaussians(Part):
    """Log-odds of two clouds with independent columns."""

    means: Tensor
    variances: Tensor
    offset: Tensor

    def __init__(self, means: Any, variances: Any, offset: float) -> None:
        super().__init__()
        self.register_buffer("means", constant(means))
        self.register_buffer("variances", constant(variances))
        self._numbers(offset=offset)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        x = x.double()
        logs = [
            -0.5 * (torch.log(self.variances[i]) + (x - self.means[i]) ** 2
                    / self.variances[i]).sum(1)
            for i in range(2)
        ]  # fmt: skip
        return logs[1] - logs[0] + self.offset


class Cloud(nn.Module):
    """Minus the Mahalanobis distance from a mean."""

    mean: Tensor
    whiten: Tensor

    def __init__(self, mean: Any, cholesky: Any) -> None:
        super().__init__()
        whiten = np.linalg.inv(np.asarray(cholesky, dtype=np.float64))
        self.register_buffer("mean", constant(mean))
        self.register_buffer("whiten", constant(whiten.T))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        whitened = (x.double() - self.mean) @ self.whiten
        return -(whitened * whitened).sum(1).sqrt()


# --- trees ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """One tree: children as positions, a leaf leads to itself."""

    feature: Any
    threshold: Any
    left: Any
    right: Any
    value: Any
    depth: int


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


# --- neighbours ----------------------------------------------------------------------

Metric = Literal["euclidean", "cosine"]


class Nearest(nn.Module):
    """Distances and numbers of the nearest reference rows, nearest first."""

    centre: Tensor
    rows: Tensor

    def __init__(self, rows: Any, k: int, metric: Metric = "euclidean") -> None:
        super().__init__()
        held = constant(rows)
        held = Unit()(held) if metric == "cosine" else held
        self.metric, self.k = metric, k
        self.register_buffer("centre", held.mean(0))
        self.register_buffer("rows", held - self.centre)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return two tensors of k columns; cosine distances are 1 - cos."""
        x = x.double()
        x = (Unit()(x) if self.metric == "cosine" else x) - self.centre
        far = squared_distances(x, self.rows)
        index = far.topk(self.k, dim=1, largest=False).indices
        square = (self.rows[index] - x[:, None]).square().sum(-1)
        # On the sphere 1 - cos is half the squared distance.
        return (square / 2 if self.metric == "cosine" else square.sqrt()), index


class NearestDistance(nn.Module):
    """Minus the mean distance of the neighbours, or that of the farthest."""

    def __init__(self, nearest: Nearest, statistic: str) -> None:
        super().__init__()
        self.nearest, self.farthest = nearest, statistic == "kth"

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        far = self.nearest(x)[0]
        return -(far.amax(1) if self.farthest else far.mean(1))


class NearestVotes(nn.Module):
    """Share of the neighbours' values, alike or weighted by 1 / distance."""

    values: Tensor

    def __init__(self, nearest: Nearest, values: Any, weighted: bool) -> None:
        super().__init__()
        self.nearest, self.weighted = nearest, weighted
        self.register_buffer("values", constant(values))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row; copies of a row outvote all others."""
        far, index = self.nearest(x)
        weight = torch.ones_like(far)
        if self.weighted:
            same = (far == 0).double()
            any_same = same.amax(1, keepdim=True)
            safe = torch.where(far == 0, torch.ones_like(far), far)
            weight = torch.where(any_same > 0, same, 1 / safe)
        return (weight * self.values[index]).sum(1) / weight.sum(1)


class GraphValues(Part):
    """Values of the nearest rows of a graph, weighted by similarity."""

    values: Tensor
    width: Tensor
    least: Tensor

    def __init__(
        self, nearest: Nearest, values: Any, width: float, least: float
    ) -> None:
        super().__init__()
        self.nearest = nearest
        self._numbers(width=width, least=least)
        self.register_buffer("values", constant(values))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        far, index = self.nearest(x)
        if self.nearest.metric == "cosine":
            similar = 1 - far
        else:
            similar = torch.exp(-0.5 * (far / self.width) ** 2)
        weight = similar.clamp_min(self.least)
        return (weight * self.values[index]).sum(1) / weight.sum(1)


class LocalOutlierFactor(Part):
    """Minus the local outlier factor of new rows, as scikit-learn counts it."""

    reach: Tensor
    density: Tensor
    least: Tensor

    def __init__(self, nearest: Nearest, reach: Any, density: Any) -> None:
        super().__init__()
        self.nearest = nearest
        self.register_buffer("reach", constant(reach))
        self.register_buffer("density", constant(density))
        self._numbers(least=1e-10)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        far, index = self.nearest(x)
        reached = torch.maximum(far, self.reach[index]).mean(1)
        own = 1 / (reached + self.least)
        return -(self.density[index] / own[:, None]).mean(1)


class SphereDensity(Part):
    """Log of the kernel density on the sphere."""

    rows: Tensor
    kappa: Tensor
    count: Tensor

    def __init__(self, rows: Any, kappa: float) -> None:
        super().__init__()
        self.register_buffer("rows", Unit()(constant(rows)))
        self._numbers(kappa=kappa, count=float(np.log(len(rows))))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        cosine = Unit()(x.double()) @ self.rows.T
        return torch.logsumexp(self.kappa * cosine, dim=1) - self.count


class ShareAmongRows(Part):
    """#P / (#P + #U) among the nearest of both."""

    represents: Tensor

    def __init__(self, nearest: Nearest, n_positive: int, represents: float) -> None:
        super().__init__()
        self.nearest, self.n_positive = nearest, n_positive
        self._numbers(represents=represents)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        index = self.nearest(x)[1]
        labelled = (index < self.n_positive).double().sum(1)
        rest = self.nearest.k - labelled
        return labelled / (labelled + rest * self.represents)


class ShareAroundPositives(Part):
    """j / (j + #U) within the distance of the j-th nearest positive."""

    positives: Tensor
    unlabeled: Tensor
    centre: Tensor
    represents: Tensor
    slack: Tensor

    def __init__(
        self, positives: Any, unlabeled: Any, j: int, represents: float, metric: Metric
    ) -> None:
        super().__init__()
        self.j, self.metric = j, metric
        slack = 4 * torch.finfo(torch.float64).eps
        self._numbers(represents=represents, slack=slack)
        held = constant(positives), constant(unlabeled)
        centre = held[1].mean(0)
        for name, rows in zip(("positives", "unlabeled"), held, strict=True):
            rows = Unit()(rows) if metric == "cosine" else rows - centre
            self.register_buffer(name, rows)
        self.register_buffer("centre", centre)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row; of its own copies in U one is left out."""
        x = x.double()
        x = Unit()(x) if self.metric == "cosine" else x - self.centre
        near = self._similarity(x, self.positives).topk(self.j, dim=1).values
        square = (x * x).sum(1, keepdim=True)
        itself = square if self.metric == "cosine" else square / 2
        similar = self._similarity(x, self.unlabeled)
        inside = (similar >= near[:, -1:]).double().sum(1)
        bound = itself - self.slack * itself
        copies = (similar >= bound).double().sum(1)
        one_less = ((copies > 0) & (inside > 0)).double()
        return self.j / (self.j + (inside - one_less) * self.represents)

    def _similarity(self, x: Tensor, rows: Tensor) -> Tensor:
        product = x @ rows.T
        if self.metric == "cosine":
            return product
        return product - (rows * rows).sum(1) / 2


# --- from one number to another ------------------------------------------------------


class Steps(nn.Module):
    """Straight lines between given points, flat outside: a rising map."""

    x: Tensor
    y: Tensor

    def __init__(self, x: Any, y: Any) -> None:
        super().__init__()
        x, y = np.atleast_1d(x).astype(np.float64), np.atleast_1d(y).astype(np.float64)
        self.register_buffer("x", constant(np.r_[x, x[-1:]] if len(x) == 1 else x))
        self.register_buffer("y", constant(np.r_[y, y[-1:]] if len(y) == 1 else y))

    def forward(self, score: Tensor) -> Tensor:
        """Return the height of the line at each score."""
        last = len(self.x) - 2
        passed = (score[:, None] >= self.x).to(torch.int64).sum(1)
        left = (passed - 1).clamp(0, last)
        x0, x1 = self.x[left], self.x[left + 1]
        y0, y1 = self.y[left], self.y[left + 1]
        width = x1 - x0
        safe = torch.where(width > 0, width, torch.ones_like(width))
        share = ((score - x0) / safe).clamp(0, 1)
        return y0 + torch.where(width > 0, share, torch.ones_like(share)) * (y1 - y0)


class Logistic(Part):
    """The logistic function of a line."""

    slope: Tensor
    offset: Tensor

    def __init__(self, slope: float = 1.0, offset: float = 0.0) -> None:
        super().__init__()
        self._numbers(slope=slope, offset=offset)

    def forward(self, score: Tensor) -> Tensor:
        """Return probabilities."""
        return torch.sigmoid(self.slope * score.double() + self.offset)
