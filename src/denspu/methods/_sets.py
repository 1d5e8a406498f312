"""Batches of three sets of rows: P, a pool, and another set beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from denspu._typing import IntArray
from denspu.methods._task import Task
from denspu.training import PUBatches
from denspu.training.batches import Batch, shuffled
from denspu.training.budget import InParts, in_parts

SetsRisk = Callable[..., Tensor]
"""Takes the logits of each set, then the row numbers of each."""


class BesideBatches:
    """Batches of P and the pool, with rows of one more set taken in turn.

    Batches are ``(rows of P, pool, the set, their numbers in P, the pool, the set)``.
    """

    def __init__(self, batches: PUBatches, beside: Tensor, count: int) -> None:
        self.batches = batches
        self.beside = beside
        self.count = count

    @property
    def streams(self) -> bool:
        """Tell whether batches travel from the computer's memory to the device."""
        return self.batches.streams

    def __len__(self) -> int:
        return len(self.batches)

    def epoch(self, generator: torch.Generator) -> Iterator[Batch]:
        """Yield the batches of one epoch."""
        turns = -(-len(self) * self.count // len(self.beside))
        orders = [shuffled(self.beside, generator) for _ in range(turns)]
        in_turn = self.beside[torch.cat(orders)].split(self.count)
        for (p, u, of_p, of_u), chosen in zip(
            self.batches.epoch(generator), in_turn, strict=False
        ):
            rows, number = self.batches.rows[chosen], chosen
            if self.streams:
                rows, number = rows.to(p.device), number.to(p.device)
            yield p, u, rows, of_p, of_u, number


def three_sets(
    task: Task,
    beside: IntArray,
    size: int,
    *,
    positive: IntArray | None = None,
    pool: IntArray | None = None,
) -> BesideBatches:
    """Return batches of P, ``size`` rows of the pool, and as large a part of a set."""
    batches = task.batches(positive=positive, pool=pool, batch_size=size)
    share = batches.batch_size / len(batches.pool)
    count = max(2, round(share * len(beside)))
    return BesideBatches(batches, task.index(beside), count)


@dataclass
class SetsLoss(InParts):
    """A risk of the logits of two or three sets, taken in one pass."""

    as_float: Callable[[Tensor], Tensor]
    risk: SetsRisk
    parts: int = 1

    def __call__(self, module: nn.Module, batch: Batch) -> Tensor:
        """Return the risk of one batch."""
        half = len(batch) // 2
        x = self.as_float(torch.cat(batch[:half]))
        logits = in_parts(module, x, self.parts).float()
        sets = logits.split([len(rows) for rows in batch[:half]])
        return self.risk(*sets, *batch[half:])
