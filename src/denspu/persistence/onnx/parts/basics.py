"""What other modules are made of: constants, chains, means, precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


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
