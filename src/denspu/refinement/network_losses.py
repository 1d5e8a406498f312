"""What the network refiner descends on: P against U, the PU risk, then labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from denspu.losses import absolute_risk
from denspu.training.batches import Batch
from denspu.training.budget import InParts, in_parts


@dataclass
class _PositivesAndBatch(InParts):
    """Views of random labelled positives beside a batch of U, half as many."""

    as_float: Callable[[Tensor], Tensor]
    views: Callable[[Tensor], Tensor]
    positives: Tensor
    parts: int = 1

    def logits(self, module: nn.Module, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the positives and of the batch."""
        half = max(1, len(rows) // 2)
        with torch.no_grad():
            chosen = torch.randint(
                len(self.positives), (half,), device=self.positives.device
            )
            x = self.views(self.as_float(torch.cat([self.positives[chosen], rows])))
        found = in_parts(module, x, self.parts).float()
        return found[:half], found[half:]


@dataclass
class RatioLoss(_PositivesAndBatch):
    """P against U, both sides counting the same: the log density ratio is learned."""

    def __call__(self, module: nn.Module, batch: Batch) -> Tensor:
        """Return the loss of a batch of U."""
        positive, unlabeled = self.logits(module, batch[0])
        return (F.softplus(-positive).mean() + F.softplus(unlabeled).mean()) / 2


@dataclass
class RiskLoss(_PositivesAndBatch):
    """The PU risk at a class prior: rows of U are right or wrong as a whole."""

    prior: float = 0.5

    def __call__(self, module: nn.Module, batch: Batch) -> Tensor:
        """Return twice the risk, as steep at 0 as the cross-entropy."""
        positive, unlabeled = self.logits(module, batch[0])
        return 2 * absolute_risk(positive, unlabeled, self.prior)


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
