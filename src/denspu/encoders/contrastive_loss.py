"""What a contrastive encoder descends on: two views of each row find each other."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from denspu.losses import nt_xent
from denspu.training.batches import Batch
from denspu.training.memory import InParts, in_parts

TRIAL_ROWS = 32
"""Rows on which the memory of a training step is tried out."""


class ContrastiveLoss(InParts):
    """Two views of each row, their projections, and the contrastive loss of them all.

    With ``parts`` above 1 projections are computed in that many parts, and computed
    again for the gradient: memory holds one part, the loss sees all.
    """

    def __init__(
        self,
        as_float: Callable[[Tensor], Tensor],
        views: Callable[[Tensor], Tensor],
        temperature: float,
        positive_weight: float,
    ) -> None:
        self.as_float = as_float
        self.views = views
        self.temperature = temperature
        self.positive_weight = positive_weight
        self.parts = 1

    def __call__(self, module: nn.Module, batch: Batch) -> Tensor:
        """Return the loss of one batch."""
        rows, positive = batch
        with torch.no_grad():
            rows = self.as_float(rows)
            views = torch.cat([self.views(rows), self.views(rows)])
        z = in_parts(module, views, self.parts)
        with torch.autocast(views.device.type, enabled=False):
            return nt_xent(z, self.temperature, positive, self.positive_weight)

    def bytes_a_row(
        self, module: nn.Module, data: Tensor, device: torch.device
    ) -> float:
        """Return the memory one sample's two views take in a training step."""
        rows = self.as_float(data[:TRIAL_ROWS].to(device))
        with torch.random.fork_rng(devices=[device]):
            views = torch.cat([self.views(rows), self.views(rows)])
        before = torch.cuda.memory_allocated(device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            z = module(views)
        taken = torch.cuda.memory_allocated(device) - before
        del z
        # What the forward pass keeps, and half as much again on the way back.
        return 1.5 * max(taken, 1) / len(rows)
