"""What the network refiner descends on: P against U, then labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from denspu.training.batches import Batch
from denspu.training.memory import InParts, in_parts


@dataclass
class RatioLoss(InParts):
    """P against U, both sides counting the same: the log density ratio is learned."""

    as_float: Callable[[Tensor], Tensor]
    views: Callable[[Tensor], Tensor]
    positives: Tensor
    parts: int = 1

    def __call__(self, module: nn.Module, batch: Batch) -> Tensor:
        """Return the loss of a batch of U and half as many random positives."""
        (rows,) = batch
        half = max(1, len(rows) // 2)
        with torch.no_grad():
            chosen = torch.randint(
                len(self.positives), (half,), device=self.positives.device
            )
            x = self.views(self.as_float(torch.cat([self.positives[chosen], rows])))
        logits = in_parts(module, x, self.parts).float()
        return (
            F.softplus(-logits[:half]).mean() + F.softplus(logits[half:]).mean()
        ) / 2


@dataclass
class LabelLoss(InParts):
    """Weighted cross-entropy on random views, mixed in pairs (mixup)."""

    as_float: Callable[[Tensor], Tensor]
    views: Callable[[Tensor], Tensor]
    mixup: bool
    parts: int = 1

    def __call__(self, module: nn.Module, batch: Batch) -> Tensor:
        """Return the loss of one batch."""
        rows, label, weight = batch
        with torch.no_grad():
            x = self.views(self.as_float(rows))
            if self.mixup:
                # The batch is in random order, so its mirror pairs rows at random.
                share = torch.rand((), device=x.device)
                x, label, weight = (
                    share * values + (1 - share) * values.flip(0)
                    for values in (x, label, weight)
                )
        logits = in_parts(module, x, self.parts).float()
        losses = F.binary_cross_entropy_with_logits(logits, label, reduction="none")
        return (weight * losses).sum() / weight.sum().clamp_min(1e-6)
