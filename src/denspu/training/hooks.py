"""What happened in each epoch, and what may look into a training, change or stop it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from denspu.training.config import Plateau, TrainingConfig


@dataclass
class History:
    """One row an epoch: ``epoch``, ``loss``, further terms, ``lr``, ``seconds``."""

    rows: list[dict[str, float]] = field(default_factory=list)
    stopped: str = "all epochs done"

    def add(self, **row: float) -> None:
        """Append one epoch."""
        self.rows.append(row)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[float]:
        """Return one quantity over the epochs."""
        return [row[name] for row in self.rows]

    @property
    def last(self) -> Mapping[str, float]:
        """Return the last epoch's row."""
        return self.rows[-1]


@dataclass
class TrainState:
    """What hooks can see and change."""

    module: nn.Module
    config: TrainingConfig
    history: History = field(default_factory=History)
    epoch: int = 0
    step: int = 0
    stop: str | None = None
    """Set to a reason to end training after the current epoch."""


class Hook:
    """Override what you need."""

    def on_train_start(self, state: TrainState) -> None:
        """Run before the first epoch."""

    def on_epoch_start(self, state: TrainState) -> None:
        """Run before each epoch."""

    def on_step_end(self, state: TrainState) -> None:
        """Run after each batch."""

    def on_epoch_end(self, state: TrainState) -> None:
        """Run after each epoch; ``state.history`` holds its row."""

    def on_train_end(self, state: TrainState) -> None:
        """Run after the last epoch."""


class PlateauStop(Hook):
    """Ask to stop when the monitored value no longer improves."""

    def __init__(self, plateau: Plateau) -> None:
        self.plateau = plateau
        self.best = float("inf")
        self.waited = 0
        self.seen = 0

    def on_epoch_end(self, state: TrainState) -> None:
        """Compare the epoch, and those of an earlier run, with the best so far."""
        for row in state.history.rows[self.seen :]:
            value = row[self.plateau.monitor]
            least_gain = abs(self.best) * self.plateau.min_improvement
            if self.best == float("inf") or value < self.best - least_gain:
                self.best, self.waited = value, 0
            else:
                self.waited += 1
        self.seen = len(state.history)
        if self.waited >= self.plateau.patience:
            state.stop = f"plateau of {self.waited} epochs"


class EmaWeights(Hook):
    """Keep a moving average of the weights and hand it over at the end.

    ``update`` is one fused operation, so that it can be part of a captured step.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay

    def on_train_start(self, state: TrainState) -> None:
        """Start the average at the initial weights."""
        tensors = [*state.module.parameters(), *state.module.buffers()]
        self.current = [t for t in tensors if t.is_floating_point()]
        self.average = [t.detach().clone() for t in self.current]

    def update(self) -> None:
        """Move the average towards the current weights."""
        with torch.no_grad():
            torch._foreach_lerp_(self.average, self.current, 1 - self.decay)

    def on_train_end(self, state: TrainState) -> None:
        """Replace the weights by their average."""
        with torch.no_grad():
            torch._foreach_copy_(self.current, self.average)


COLUMN = "held_out"
"""Name of the measure beside the loss in the history."""


class KeepBest(Hook):
    """Measure a network after each epoch, and hand back the weights of the best.

    ``measure`` looks at rows held out, less being better; no true label of U is known
    to it.
    """

    def __init__(self, measure: Callable[[nn.Module], float]) -> None:
        self.measure = measure
        self.best = float("inf")
        self.kept: dict[str, Tensor] = {}

    @staticmethod
    def patience(epochs: int | None) -> Plateau | None:
        """Return the rule that ends training after epochs without a better one."""
        return None if epochs is None else Plateau(epochs, 0.0, COLUMN)

    def on_epoch_end(self, state: TrainState) -> None:
        """Write the measure beside the loss, and remember the weights if it is best."""
        value = self.measure(state.module)
        state.history.rows[-1][COLUMN] = value
        if not self.kept or value < self.best or self.best != self.best:  # NaN
            self.best = value
            weights = state.module.state_dict().items()
            self.kept = {name: tensor.detach().clone() for name, tensor in weights}

    def on_train_end(self, state: TrainState) -> None:
        """Put the best weights back."""
        state.module.load_state_dict(self.kept)
