"""What fits on a device."""

from __future__ import annotations

import torch

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
