"""What a deep method learns from: rows on the device, their parts, how to train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from denspu._machine import Deadline
from denspu._random import Randomness
from denspu._typing import FloatArray, IntArray
from denspu.training import (
    Batches,
    History,
    Hook,
    PUBatches,
    Step,
    TrainingConfig,
    in_fixed_batches,
    train,
)
from denspu.training.batches import Batch
from denspu.training.budget import InParts, in_parts, within
from denspu.training.loop import Loss

Risk = Callable[[Tensor, Tensor], Tensor | Mapping[str, Tensor]]


@dataclass
class PULoss(InParts):
    """A risk of the logits of P and of the pool, as a loss for the training loop."""

    as_float: Callable[[Tensor], Tensor]
    risk: Risk
    parts: int = 1

    def __call__(
        self, module: nn.Module, batch: Batch
    ) -> Tensor | Mapping[str, Tensor]:
        """Return the risk of one batch; one pass, so that statistics are shared."""
        positive, pool = batch[:2]
        x = self.as_float(torch.cat([positive, pool]))
        logits = in_parts(module, x, self.parts).float()
        return self.risk(logits[: len(positive)], logits[len(positive) :])


@dataclass
class Task:
    """Rows on the device, who is who among them, and how networks are trained."""

    rows: Tensor
    """Packed: pixels as integers, else floats."""
    as_float: Callable[[Tensor], Tensor]
    positive: IntArray
    """Numbers of the labelled rows."""
    unlabeled: IntArray
    pool: IntArray
    """Numbers of the rows that stand for the population: U, and P too where it was
    taken out of the sample."""
    known_negative: IntArray
    groups: IntArray | None
    device: torch.device
    randomness: Randomness
    deadline: Deadline
    plan: TrainingConfig
    batch_size: int
    build: Callable[[], nn.Module]
    verbose: int = 0
    prior: float = float("nan")
    """Share of positives in the population."""
    prior_in_unlabeled: float = float("nan")
    epochs: dict[str, int] = field(default_factory=dict)
    """Epochs taken, by the name of the training."""

    def network(self, name: str = "weights") -> nn.Module:
        """Return a fresh network; the name chooses its random start."""
        with self.randomness.torch_scope(name, self.device):
            return self.build()

    def index(self, rows: IntArray) -> Tensor:
        """Return row numbers as a tensor beside the rows."""
        return torch.from_numpy(np.asarray(rows, dtype=np.int64)).to(self.rows.device)

    def batches(
        self,
        *,
        positive: IntArray | None = None,
        pool: IntArray | None = None,
        batch_size: int | None = None,
        n_positive: int | None = None,
        steps: int | None = None,
    ) -> PUBatches:
        """Return batches of P and the pool, or of other rows in their place."""
        return PUBatches(
            self.rows,
            self.index(self.positive if positive is None else positive),
            self.index(self.pool if pool is None else pool),
            batch_size=batch_size or self.batch_size,
            n_positive=n_positive,
            steps=steps,
            device=self.device,
        )

    def loss(self, risk: Risk) -> PULoss:
        """Return a risk of logits as a loss on batches."""
        return PULoss(self.as_float, risk)

    def train(
        self,
        module: nn.Module,
        loss: Loss | Sequence[Step],
        name: str,
        *,
        batches: Batches | None = None,
        share: float = 1.0,
        hooks: Sequence[Hook] = (),
        **changes: Any,
    ) -> History:
        """Train a network; ``changes`` replace settings of the plan.

        ``share`` is the part of the time left that it may take under ``max_seconds``.
        """
        batches = batches if batches is not None else self.batches()
        config = replace(self.plan, **changes)
        with self.randomness.torch_scope(f"{name}/training", self.device):
            if callable(loss):
                config = within(
                    self.deadline,
                    module,
                    batches,
                    loss,
                    config,
                    device=self.device,
                    share=share,
                )
            history = train(
                module,
                batches,
                loss,
                config,
                device=self.device,
                generator=self.randomness.generator(
                    f"{name}/batches", self.rows.device
                ),
                hooks=hooks,
                verbose=self.verbose,
                name=name,
            )
        self.epochs[name] = len(history)
        return history

    def logits(self, module: nn.Module, rows: IntArray) -> FloatArray:
        """Return a network's answers for some rows, in evaluation mode."""
        return in_fixed_batches(
            module, self.rows[self.index(rows)], self.as_float, device=self.device
        ).astype(np.float64)
