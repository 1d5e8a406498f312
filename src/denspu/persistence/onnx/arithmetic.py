"""The arithmetic of fitted parts as torch modules, ready to become an ONNX graph.

Each gives the numbers of the NumPy or scikit-learn code it stands for, from the same
fitted arrays, without loops over rows and without branches on values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Formula(nn.Module):
    """A formula of rows and of what it holds: modules, index tensors and numbers.

    Numbers are buffers in double precision: the exporter writes a plain Python number
    in single precision.
    """

    def __init__(self, formula: Callable[[Any, Tensor], Tensor], **held: Any) -> None:
        super().__init__()
        self.formula = formula
        for name, value in held.items():
            if isinstance(value, nn.Module):
                self.add_module(name, value)
            else:
                self.register_buffer(name, constant(value))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def forward(self, x: Tensor) -> Tensor:
        """Return the formula's value, row by row."""
        return self.formula(self, x)


def constant(values: Any) -> Tensor:
    """Return numbers in double precision; a tensor stays what it is."""
    if isinstance(values, Tensor):
        return values
    return torch.from_numpy(np.array(values, dtype=np.float64))


def index(values: Any) -> Tensor:
    """Return whole numbers that point at columns or nodes."""
    return torch.from_numpy(np.array(values, dtype=np.int64))


def single() -> Formula:
    """Return the same numbers in single precision."""
    return Formula(lambda held, x: x.float())


def mean(parts: Sequence[nn.Module]) -> Formula:
    """Return the mean answer of several parts."""
    return Formula(
        lambda held, x: torch.stack([part(x) for part in held.parts]).mean(0),
        parts=nn.ModuleList(parts),
    )


# --- rows on their way in ------------------------------------------------------------


class Pixels(nn.Module):
    """N×H×W×C pixels as N×C×H×W floats in [0, 1].

    ``low`` and ``high`` are the pixel values that mean 0 and 1, ``shape`` is height,
    width and channels. Images are resized to ``size``, values rounded to ``levels``
    steps, as a network's integers are, and one grey channel is copied to ``channels``.
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
        if size is not None and self.resizes:
            height, width = (resize_matrix(n, size, antialias) for n in shape[:2])
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
    lines = torch.eye(n)[None, None]
    resized = F.interpolate(lines, size=(size, n), mode="bilinear", antialias=antialias)
    return resized[0, 0]


def flat_pixels(low: float, high: float) -> Formula:
    """Return N×H×W×C pixels as vectors in [0, 1]."""
    span = high - low
    return Formula(lambda held, x: ((x.float() - low) / span).clamp(0, 1).flatten(1))


def unit() -> Formula:
    """Return rows divided by their length."""

    def formula(held: Formula, x: Tensor) -> Tensor:
        length = (x * x).sum(1, keepdim=True).sqrt()
        return x / length.clamp_min(torch.finfo(x.dtype).tiny)

    return Formula(formula)


def affine(centre: Any, spread: Any) -> Formula:
    """Return (rows - centre) / spread, in the rows' own precision."""
    return Formula(
        lambda held, x: (x - held.centre.to(x.dtype)) / held.spread.to(x.dtype),
        centre=centre,
        spread=spread,
    )


def product(centre: Any, matrix: Any) -> Formula:
    """Return (rows - centre) times a matrix, in the rows' own precision."""
    return Formula(
        lambda held, x: (x - held.centre.to(x.dtype)) @ held.matrix.to(x.dtype),
        centre=centre,
        matrix=matrix,
    )


def filled(fill: Any, scaled: nn.Module, marked: Sequence[int]) -> Formula:
    """Return numbers without gaps, scaled, and then which of them were missing."""

    def formula(held: Formula, x: Tensor) -> Tensor:
        gap = x.isnan()
        found = held.scaled(torch.where(gap, held.fill.to(x.dtype), x))
        if not len(marked):
            return found
        return torch.cat([found, gap[:, held.marked].to(found.dtype)], dim=1)

    return Formula(formula, fill=fill, scaled=scaled, marked=index(marked))


# --- kernels, neighbours, trees ------------------------------------------------------


def bumps(rows: Any, gamma: Any, weights: Any, offset: float) -> Formula:
    """Return Gaussian bumps around reference rows times weights, plus a number.

    ``gamma`` is one number, or one for each reference row.
    """

    def formula(held: Formula, x: Tensor) -> Tensor:
        x = x.flatten(1).double() - held.centre
        near = torch.exp(-held.gamma * squared_distances(x, held.rows))
        return near @ held.weights + held.offset

    numbers = {"gamma": gamma, "weights": np.ravel(weights), "offset": offset}
    return Formula(formula, **_centred(rows), **numbers)


def nearest_votes(rows: Any, k: int, values: Any, weighted: bool) -> Formula:
    """Return the share of the neighbours' values, alike or weighted by 1 / distance.

    Copies of a row outvote all others.
    """

    def formula(held: Formula, x: Tensor) -> Tensor:
        x = x.double() - held.centre
        near = squared_distances(x, held.rows).topk(k, dim=1, largest=False).indices
        far = (held.rows[near] - x[:, None]).square().sum(-1).sqrt()
        weight = torch.ones_like(far)
        if weighted:
            same = (far == 0).double()
            weight = torch.where(same.amax(1, keepdim=True) > 0, same, 1 / far)
        return (weight * held.values[near]).sum(1) / weight.sum(1)

    return Formula(formula, **_centred(rows), values=values)


def _centred(rows: Any) -> dict[str, Any]:
    """Return reference rows around 0, where products round least."""
    held = np.asarray(rows, dtype=np.float64)
    centre = held.mean(0)
    return {"centre": centre, "rows": held - centre}


def squared_distances(x: Tensor, rows: Tensor) -> Tensor:
    """Return |x - r|² by products."""
    square = (x * x).sum(1, keepdim=True) + (rows * rows).sum(1)
    return (square - 2 * (x @ rows.T)).clamp_min(0)


def walked_trees(
    trees: Sequence[tuple[Any, ...]],
    *,
    precision: torch.dtype = torch.float64,
    averaged: bool = False,
    offset: float = 0.0,
) -> Formula:
    """Return mean or sum of the leaf values that rows reach; left where not above.

    All rows walk all trees at once, one level a step; a leaf leads to itself. A tree
    is (leaf, feature, threshold, left, right, value, depth).
    """
    sizes = [len(tree[0]) for tree in trees]
    root = np.cumsum([0, *sizes])[:-1]
    leaf, feature, threshold, left, right, value = (
        np.concatenate([tree[i] for tree in trees]) for i in range(6)
    )
    begin, here = np.repeat(root, sizes), np.arange(len(leaf))
    depth = max(int(tree[6]) for tree in trees)
    divisor = len(trees) if averaged else 1

    def formula(held: Formula, x: Tensor) -> Tensor:
        x = x.to(precision).double()
        node = held.root.expand(x.shape[0], -1)
        for _ in range(depth):
            stays_left = x.gather(1, held.feature[node]) <= held.threshold[node]
            node = torch.where(stays_left, held.left[node], held.right[node])
        return held.value[node].sum(1) / divisor + held.offset

    return Formula(
        formula,
        root=index(root),
        feature=index(np.where(leaf, 0, feature)),
        left=index(np.where(leaf, here, left + begin)),
        right=index(np.where(leaf, here, right + begin)),
        threshold=np.where(leaf, 0.0, threshold),
        value=value,
        offset=offset,
    )


# --- from one number a row to another ------------------------------------------------


def minus(part: nn.Module, cut: float) -> Formula:
    """Return a part's answer minus a cut."""
    return Formula(lambda held, x: held.part(x).double() - held.cut, part=part, cut=cut)


def log_odds(part: nn.Module, sure: float) -> Formula:
    """Return log-odds of a probability kept inside (sure, 1 - sure)."""

    def formula(held: Formula, x: Tensor) -> Tensor:
        share = held.part(x).double().clamp(held.low, held.high)
        return torch.log(share) - torch.log1p(-share)

    return Formula(formula, part=part, low=sure, high=1 - sure)


def ratio_odds(part: nn.Module, top: float, sure: float) -> Formula:
    """Return log-odds of Φ / max Φ, a straight line where that is near 1 (VPU)."""

    def formula(held: Formula, x: Tensor) -> Tensor:
        ratio = F.logsigmoid(held.part(x).double()) - held.top
        low = torch.minimum(ratio, held.sure)
        return low - torch.log1p(-torch.exp(low)) + (ratio - low) / held.rest

    return Formula(formula, part=part, top=top, sure=np.log(sure), rest=1 - sure)


def hidden(found: Any) -> Formula:
    """Return P(y = 1) by score, as :class:`denspu._share.HiddenPositive` does.

    Straight lines between the knots of a rising map, flat outside.
    """
    steps = found.share.steps
    x, y = np.atleast_1d(steps.X_thresholds_), np.atleast_1d(steps.y_thresholds_)
    if len(x) == 1:
        x, y = np.repeat(x, 2), np.repeat(y, 2)

    def formula(held: Formula, score: Tensor) -> Tensor:
        passed = (score[:, None] >= held.x).to(torch.int64).sum(1)
        left = (passed - 1).clamp(0, len(held.x) - 2)
        width = held.x[left + 1] - held.x[left]
        along = ((score - held.x[left]) / width).clamp(0, 1)
        along = torch.where(width > 0, along, torch.ones_like(along))
        share = held.y[left] + along * (held.y[left + 1] - held.y[left])
        return (held.factor * (share / (1 - share).clamp_min(1e-12))).clamp_max(1)

    return Formula(formula, x=x, y=y, factor=found.factor)
