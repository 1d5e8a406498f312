"""From one number a row to another: lines, log-odds, rising maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from denspu.persistence.onnx.parts.basics import Part, constant


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


def log_odds(share: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the log-odds of probabilities kept inside (low, high)."""
    share = share.clamp(low, high)
    return torch.log(share) - torch.log1p(-share)


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
        return log_odds(self.part(x).double(), self.low, self.high)


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
