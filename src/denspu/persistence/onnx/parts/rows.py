"""Rows on their way in: pixels, gaps, lengths, scales, other axes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from denspu.persistence.onnx.parts.basics import constant


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
