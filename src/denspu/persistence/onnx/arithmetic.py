"""The arithmetic of fitted parts as torch modules, ready to become an ONNX graph.

Each module gives the numbers of the NumPy or scikit-learn code it stands for, from
the same fitted arrays, without loops over rows and without branches on values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F


def constant(values: Any, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return an array as a tensor of its own."""
    return torch.from_numpy(np.array(values)).to(dtype)


class Part(nn.Module):
    """A module whose numbers are buffers in double precision.

    The exporter writes a plain Python number in single precision.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def _hold(self, **values: Any) -> None:
        for name, value in values.items():
            self.register_buffer(name, constant(value))


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
        return torch.stack([part(x) for part in self.parts]).mean(0)


# --- rows on their way in ------------------------------------------------------------


class Pixels(Part):
    """N×H×W×C pixels as N×C×H×W floats in [0, 1].

    Parameters
    ----------
    low, high : float
        Pixel values that mean 0 and 1.
    shape : tuple
        Height, width and channels.
    size : int or None
        Side to which images are resized.
    levels : int or None
        Values are rounded to so many steps, as a network's integers are.
    channels : int or None
        One grey channel is copied to so many.
    """

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
        if size is not None and self.resizes:
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


class Affine(Part):
    """(rows - centre) / spread, in the rows' own precision."""

    def __init__(self, centre: Any, spread: Any) -> None:
        super().__init__()
        self._hold(centre=centre, spread=spread)

    def forward(self, x: Tensor) -> Tensor:
        """Return scaled rows."""
        return (x - self.centre.to(x.dtype)) / self.spread.to(x.dtype)


class Filled(Part):
    """Gaps replaced by a number of their column, then scaled; then what was missing."""

    def __init__(self, fill: Any, scaled: nn.Module, marked: Any) -> None:
        super().__init__()
        self._hold(fill=fill)
        self.register_buffer("marked", constant(marked, torch.int64))
        self.scaled = scaled

    def forward(self, x: Tensor) -> Tensor:
        """Return numbers without gaps."""
        gap = x.isnan()
        found = self.scaled(torch.where(gap, self.fill.to(x.dtype), x))
        if not len(self.marked):
            return found
        return torch.cat([found, gap[:, self.marked].to(found.dtype)], dim=1)


class Product(Part):
    """(rows - centre) times a matrix, in the rows' own precision."""

    def __init__(self, centre: Any, matrix: Any) -> None:
        super().__init__()
        self._hold(centre=centre, matrix=matrix)

    def forward(self, x: Tensor) -> Tensor:
        """Return coordinates."""
        return (x - self.centre.to(x.dtype)) @ self.matrix.to(x.dtype)


# --- kernels, neighbours, trees ------------------------------------------------------


class Bumps(Part):
    """Gaussian bumps around reference rows times weights, plus a number.

    ``gamma`` is one number, or one for each reference row.
    """

    def __init__(self, rows: Any, gamma: Any, weights: Any, offset: float) -> None:
        super().__init__()
        held = np.asarray(rows, dtype=np.float64)
        centre = held.mean(0)
        self._hold(centre=centre, rows=held - centre, gamma=gamma)
        self._hold(weights=np.ravel(weights), offset=offset)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        x = x.flatten(1).double() - self.centre
        bumps = torch.exp(-self.gamma * squared_distances(x, self.rows))
        return bumps @ self.weights + self.offset


def squared_distances(x: Tensor, rows: Tensor) -> Tensor:
    """Return |x - r|² by products; rows around 0 round least."""
    square = (x * x).sum(1, keepdim=True) + (rows * rows).sum(1)
    return (square - 2 * (x @ rows.T)).clamp_min(0)


class NearestVotes(Part):
    """Share of the neighbours' values, alike or weighted by 1 / distance."""

    def __init__(self, rows: Any, k: int, values: Any, weighted: bool) -> None:
        super().__init__()
        held = np.asarray(rows, dtype=np.float64)
        centre = held.mean(0)
        self._hold(centre=centre, rows=held - centre, values=values)
        self.k, self.weighted = k, weighted

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row; copies of a row outvote all others."""
        x = x.double() - self.centre
        near = squared_distances(x, self.rows).topk(self.k, dim=1, largest=False)
        far = (self.rows[near.indices] - x[:, None]).square().sum(-1).sqrt()
        weight = torch.ones_like(far)
        if self.weighted:
            same = (far == 0).double()
            safe = torch.where(far == 0, torch.ones_like(far), far)
            weight = torch.where(same.amax(1, keepdim=True) > 0, same, 1 / safe)
        return (weight * self.values[near.indices]).sum(1) / weight.sum(1)


class Trees(Part):
    """Mean or sum of the leaf values that rows reach; left where not above.

    All rows walk all trees at once, one level a step; a leaf leads to itself. A tree
    is (leaf, feature, threshold, left, right, value, depth).
    """

    def __init__(
        self,
        trees: Sequence[tuple[Any, ...]],
        *,
        precision: torch.dtype = torch.float64,
        mean: bool = False,
        offset: float = 0.0,
    ) -> None:
        super().__init__()
        starts = np.cumsum([0, *(len(tree[0]) for tree in trees)])[:-1]
        self.register_buffer("root", constant(starts, torch.int64))
        leaf, feature, threshold, left, right, value = (
            np.concatenate([tree[i] for tree in trees]) for i in range(6)
        )
        begin = np.repeat(starts, [len(tree[0]) for tree in trees])
        here = np.arange(len(leaf))
        for name, index in {
            "feature": np.where(leaf, 0, feature),
            "left": np.where(leaf, here, left + begin),
            "right": np.where(leaf, here, right + begin),
        }.items():
            self.register_buffer(name, constant(index.astype(np.int64), torch.int64))
        self._hold(threshold=np.where(leaf, 0.0, threshold), value=value, offset=offset)
        self.depth = max(int(tree[6]) for tree in trees)
        self.precision, self.count = precision, len(trees) if mean else 1

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        x = x.to(self.precision).double()
        node = self.root.expand(x.shape[0], -1)
        for _ in range(self.depth):
            stays_left = x.gather(1, self.feature[node]) <= self.threshold[node]
            node = torch.where(stays_left, self.left[node], self.right[node])
        return self.value[node].sum(1) / self.count + self.offset


# --- from one number a row to another ------------------------------------------------


class Line(Part):
    """A part's answer minus a cut."""

    def __init__(self, part: nn.Module, cut: float) -> None:
        super().__init__()
        self.part = part
        self._hold(cut=cut)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        return self.part(x).double() - self.cut


class LogOdds(Part):
    """Log-odds of a probability kept inside (sure, 1 - sure)."""

    def __init__(self, part: nn.Module, sure: float) -> None:
        super().__init__()
        self.part = part
        self._hold(low=sure, high=1 - sure)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        share = self.part(x).double().clamp(self.low, self.high)
        return torch.log(share) - torch.log1p(-share)


class RatioOdds(Part):
    """Log-odds of Φ / max Φ, a straight line where that is near 1 (VPU)."""

    def __init__(self, part: nn.Module, top: float, sure: float) -> None:
        super().__init__()
        self.part = part
        self._hold(top=top, sure=np.log(sure), rest=1 - sure)

    def forward(self, x: Tensor) -> Tensor:
        """Return log-odds."""
        ratio = F.logsigmoid(self.part(x).double()) - self.top
        low = torch.minimum(ratio, self.sure)
        return low - torch.log1p(-torch.exp(low)) + (ratio - low) / self.rest


class Hidden(Part):
    """P(y = 1) of rows of U by their score (:class:`denspu._scores.HiddenPositive`).

    Straight lines between the knots of a rising map, flat outside.
    """

    def __init__(self, found: Any) -> None:
        super().__init__()
        steps = found.share.steps
        x, y = np.atleast_1d(steps.X_thresholds_), np.atleast_1d(steps.y_thresholds_)
        if len(x) == 1:
            x, y = np.repeat(x, 2), np.repeat(y, 2)
        self._hold(x=x, y=y, factor=found.factor)

    def forward(self, score: Tensor) -> Tensor:
        """Return probabilities."""
        passed = (score[:, None] >= self.x).to(torch.int64).sum(1)
        left = (passed - 1).clamp(0, len(self.x) - 2)
        width = self.x[left + 1] - self.x[left]
        safe = torch.where(width > 0, width, torch.ones_like(width))
        along = ((score - self.x[left]) / safe).clamp(0, 1)
        along = torch.where(width > 0, along, torch.ones_like(along))
        share = self.y[left] + along * (self.y[left + 1] - self.y[left])
        return (self.factor * (share / (1 - share).clamp_min(1e-12))).clamp_max(1)
