"""Rows kept out of training, and the weights that do best on them.

What is measured is a risk of P against U: no true label is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from denspu._folds import make_folds
from denspu._typing import IntArray
from denspu.methods._deep import Task
from denspu.methods._several import look
from denspu.training import Hook, TrainState

Measure = Callable[[Tensor, Tensor], Tensor]
COLUMN = "held_out"


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers to learn from, and those held out."""

    positive: IntArray
    pool: IntArray
    held_positive: IntArray
    held_pool: IntArray


def split_off(task: Task, share: float, name: str) -> Split | None:
    """Hold out about a share of P and of the pool; no group is divided.

    ``None`` where too few rows or groups would be left on one of the sides.
    """
    if share == 0:
        return None
    labelled = np.zeros(len(task.rows), dtype=bool)
    labelled[task.positive] = True
    rng = task.randomness.numpy(f"{name}/held out")
    folds = make_folds(labelled, task.groups, max(2, round(1 / share)), rng)
    held = folds == 0
    split = Split(
        task.positive[~held[task.positive]],
        task.pool[~held[task.pool]],
        task.positive[held[task.positive]],
        task.pool[held[task.pool]],
    )
    smallest = min(len(split.positive), len(split.held_positive), len(split.held_pool))
    return split if smallest > 0 and len(split.pool) > 1 else None


class KeepBest(Hook):
    """Measure held-out rows after each epoch; hand back the weights of the best."""

    def __init__(self, task: Task, split: Split, measure: Measure) -> None:
        self.task = task
        self.split = split
        self.measure = measure
        self.best = float("inf")
        self.kept: dict[str, Tensor] = {}

    def on_epoch_end(self, state: TrainState) -> None:
        """Write the measure beside the loss, and remember the weights if it is best."""
        held = (self.split.held_positive, self.split.held_pool)
        logits = [look(state.module, self.task, rows, state.module) for rows in held]
        value = float(self.measure(*logits))
        state.history.rows[-1][COLUMN] = value
        if not self.kept or value < self.best or self.best != self.best:  # NaN
            self.best = value
            weights = state.module.state_dict().items()
            self.kept = {name: tensor.detach().clone() for name, tensor in weights}

    def on_train_end(self, state: TrainState) -> None:
        """Put the best weights back."""
        state.module.load_state_dict(self.kept)
