"""What a deep method learns from: rows on the device, batches, losses, training.

Also what methods of several networks share, and rows held out to keep the best epoch:
what is measured on those is a risk of P against U, no true label is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from denspu._folds import share_held
from denspu._machine import Deadline
from denspu._random import Randomness
from denspu._typing import FloatArray, IntArray
from denspu.training import (
    Batches,
    History,
    Hook,
    KeepBest,
    PUBatches,
    Step,
    TrainingConfig,
    in_fixed_batches,
    train,
)
from denspu.training.batches import LOOK, Batch, InParts, in_parts, looking, shuffled
from denspu.training.loop import Loss, within

Risk = Callable[..., Tensor]
"""Takes the logits of each set of rows: P, the pool and perhaps another."""

Sets = tuple[IntArray, ...]
"""Row numbers of P, of the pool and perhaps of another set."""


@dataclass
class PULoss(InParts):
    """A risk of the logits of several sets of rows, as a loss for the training loop.

    The sets take one pass, so that they share their statistics. With ``numbered`` the
    risk is also given the row numbers of each set.
    """

    as_float: Callable[[Tensor], Tensor]
    risk: Risk
    numbered: bool = False

    def __call__(self, module: nn.Module, batch: Batch) -> Tensor:
        """Return the risk of one batch: sets of rows, then the numbers of each."""
        half = len(batch) // 2
        x = self.as_float(torch.cat(batch[:half]))
        logits = in_parts(module, x, self.parts).float()
        sets = logits.split([len(rows) for rows in batch[:half]])
        return self.risk(*sets, *(batch[half:] if self.numbered else ()))


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
        positive: IntArray | None = None,
        pool: IntArray | None = None,
        beside: IntArray | None = None,
        *,
        batch_size: int | None = None,
        n_positive: int | None = None,
        steps: int | None = None,
    ) -> Batches:
        """Return batches of P and the pool, or of other rows in their place.

        With ``beside`` they hold as large a part of that set too, taken in turn.
        """
        batches = PUBatches(
            self.rows,
            self.index(self.positive if positive is None else positive),
            self.index(self.pool if pool is None else pool),
            batch_size=batch_size or self.batch_size,
            n_positive=n_positive,
            steps=steps,
            device=self.device,
        )
        if beside is None:
            return batches
        count = round(batches.batch_size / len(batches.pool) * len(beside))
        return BesideBatches(batches, self.index(beside), max(2, count))

    def loss(self, risk: Risk, *, numbered: bool = False) -> PULoss:
        """Return a risk of logits as a loss on batches."""
        return PULoss(self.as_float, risk, numbered)

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
        A loss that is a hook too looks in.
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
                hooks=[*hooks, loss] if isinstance(loss, Hook) else hooks,
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

    def look(
        self, module: nn.Module, rows: IntArray, answer: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return answers for some rows in the middle of a training."""
        with looking(module):
            found = [
                answer(self.as_float(self.rows[part].to(self.device))).float()
                for part in self.index(rows).split(LOOK)
            ]
        return torch.cat(found)

    def split_off(
        self, share: float, name: str, *others: IntArray
    ) -> tuple[Sets, Sets]:
        """Divide P, the pool and other sets: to learn from, and about a share held out.

        No group is divided. Nothing is held out, and the second is empty, where too few
        rows or groups would be left on one of the sides.
        """
        sets = (self.positive, self.pool, *others)
        if share == 0:
            return sets, ()
        labelled = np.zeros(len(self.rows), dtype=bool)
        labelled[self.positive] = True
        rng = self.randomness.numpy(f"{name}/held out")
        out = share_held(labelled, self.groups, share, rng)
        learned = tuple(rows[~out[rows]] for rows in sets)
        held = tuple(rows[out[rows]] for rows in sets)
        if len(learned[1]) < 2 or not all(map(len, (*learned, *held))):
            return sets, ()
        return learned, held

    def keep_best(self, held: Sets, measure: Risk) -> list[Hook]:
        """Return the hook that keeps the weights with the least measure of some rows.

        ``measure`` takes the logits of each of the sets; without any there is no hook.
        """

        def of(module: nn.Module) -> float:
            return float(measure(*(self.look(module, rows, module) for rows in held)))

        return [KeepBest(of)] if held else []


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


# --- a network that follows another ---------------------------------------------------


def frozen(module: nn.Module) -> nn.Module:
    """Return the network itself; no step moves it any more."""
    return module.requires_grad_(False)


def follow(average: nn.Module, source: nn.Module, decay: float) -> None:
    """Move the weights and statistics of an average towards those of its source."""
    with torch.no_grad():
        torch._foreach_lerp_(_numbers(average), _numbers(source), 1 - decay)


def _numbers(module: nn.Module) -> list[Tensor]:
    tensors = [*module.parameters(), *module.buffers()]
    return [tensor for tensor in tensors if tensor.is_floating_point()]
