"""Rows kept out of training, and the weights that do best on them.

What is measured is a risk of P against U: no true label is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from denspu._folds import share_held
from denspu._typing import BoolArray, IntArray
from denspu.methods._several import look
from denspu.methods._task import Task
from denspu.training import KeepBest

Measure = Callable[..., Tensor]


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers to learn from, and those held out."""

    held: BoolArray
    """Of all rows."""
    positive: IntArray
    pool: IntArray
    held_positive: IntArray
    held_pool: IntArray

    def part(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return those of some rows to learn from, and those held out."""
        return rows[~self.held[rows]], rows[self.held[rows]]


def split_off(task: Task, share: float, name: str) -> Split | None:
    """Hold out about a share of P and of the pool; no group is divided.

    ``None`` where too few rows or groups would be left on one of the sides.
    """
    if share == 0:
        return None
    labelled = np.zeros(len(task.rows), dtype=bool)
    labelled[task.positive] = True
    rng = task.randomness.numpy(f"{name}/held out")
    held = share_held(labelled, task.groups, share, rng)
    split = Split(
        held,
        task.positive[~held[task.positive]],
        task.pool[~held[task.pool]],
        task.positive[held[task.positive]],
        task.pool[held[task.pool]],
    )
    smallest = min(len(split.positive), len(split.held_positive), len(split.held_pool))
    return split if smallest > 0 and len(split.pool) > 1 else None


def keep_best(task: Task, held: Sequence[IntArray], measure: Measure) -> KeepBest:
    """Return the hook that keeps the weights with the least measure of held-out rows.

    ``measure`` takes the logits of each of the sets.
    """

    def of(module: nn.Module) -> float:
        return float(measure(*(look(module, task, rows, module) for rows in held)))

    return KeepBest(of)
