"""What fits on a device."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

HOLD = 0.4
"""Share of a GPU's free memory that a data set may take."""

USE = 0.8
"""Share of a GPU's free memory that a training step may take."""


def free_bytes(device: torch.device) -> float:
    """Return the memory this process may still take; infinite off a GPU."""
    if device.type != "cuda":
        return float("inf")
    free, total = torch.cuda.mem_get_info(device)
    share = _fraction(device)
    reserved = torch.cuda.memory_reserved(device)
    unused = reserved - torch.cuda.memory_allocated(device)
    return float(min(free, share * total - reserved) + unused)


def _fraction(device: torch.device) -> float:
    """Return the share of the GPU this process was limited to."""
    ask = getattr(torch.cuda, "get_per_process_memory_fraction", None)
    return float(ask(device)) if ask is not None else 1.0


def fits(tensor: torch.Tensor, device: torch.device) -> bool:
    """Tell whether a data set may lie on the device for good."""
    return tensor.numel() * tensor.element_size() <= HOLD * free_bytes(device)


MOST_PARTS = 64


def in_parts(module: nn.Module, x: Tensor, parts: int) -> Tensor:
    """Apply a network to a batch, in parts whose insides are computed twice.

    Memory holds the insides of one part, and the gradient is that of the whole batch
    (but for batch statistics, which are then those of a part).
    """
    if parts == 1:
        return cast(Tensor, module(x))
    done = [checkpoint(module, part, use_reentrant=False) for part in x.chunk(parts)]
    return torch.cat(done)


class InParts:
    """A loss that can be computed in more parts, for less memory."""

    parts: int

    def use_less_memory(self) -> bool:
        """Take twice as many parts."""
        if self.parts >= MOST_PARTS:
            return False
        self.parts *= 2
        return True
