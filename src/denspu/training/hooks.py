"""How to train, what happened in each epoch, what may look in, change or stop it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Plateau:
    """Stop when the monitored value has not improved for a while."""

    patience: int = 10
    min_improvement: float = 1e-3
    """Relative: 0.001 means the value must fall by 0.1 %."""
    monitor: str = "loss"


@dataclass(frozen=True)
class TrainingConfig:
    """Optimiser, schedule and stopping rule of one training run."""

    epochs: int
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    lr: float = 1e-3
    weight_decay: float = 0.0
    """Coupled L2 for adam and sgd, decoupled for adamw; on weight matrices only."""
    momentum: float = 0.0
    nesterov: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    lr_floor: float = 0.0
    """Share of the learning rate at which the cosine schedule ends."""
    warmup_epochs: float = 0.0
    clip_norm: float | None = None
    ema_decay: float | None = None
    """Train as usual, but hand back the moving average of the weights."""
    plateau: Plateau | None = None
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """``auto``: bf16 autocast on CUDA, float32 elsewhere."""
    compile: bool = False
    """Let torch fuse the network's steps; pays on a GPU from about a minute on."""
    capture: bool = False
    """Replay each step as one CUDA graph; needs a loss without branches on values."""
    deterministic: bool = True
    """``False`` lets cuDNN time its algorithms and take the fastest."""

    def build_optimizer(
        self, parameters: Iterable[nn.Parameter], *, fused: bool = False
    ) -> torch.optim.Optimizer:
        """Return the optimiser; vectors (biases, norms) get no weight decay.

        ``fused`` (on a GPU) updates all weights in one launch.
        """
        chosen = [p for p in parameters if p.requires_grad]
        matrices = [p for p in chosen if p.ndim > 1]
        vectors = [p for p in chosen if p.ndim <= 1]
        groups = [
            {"params": parameters, "weight_decay": decay}
            for parameters, decay in ((matrices, self.weight_decay), (vectors, 0.0))
            if parameters
        ]
        if self.optimizer != "sgd":
            adam = torch.optim.Adam if self.optimizer == "adam" else torch.optim.AdamW
            return adam(
                groups,
                lr=self.lr,
                betas=self.betas,
                fused=fused or None,
                capturable=fused and self.capture,
            )
        return torch.optim.SGD(
            groups,
            lr=self.lr,
            momentum=self.momentum,
            nesterov=self.nesterov,
            fused=fused or None,
        )

    def lr_factor(self, steps_per_epoch: int) -> Callable[[int], float]:
        """Return the factor on the learning rate as a function of the step."""
        warmup = round(self.warmup_epochs * steps_per_epoch)
        total = max(1, self.epochs * steps_per_epoch - warmup)

        def factor(step: int) -> float:
            if step < warmup:
                return (step + 1) / warmup
            done = min(1.0, (step - warmup) / total)
            if self.schedule == "cosine":
                fall = 0.5 * (1 + math.cos(math.pi * done))
                return self.lr_floor + (1 - self.lr_floor) * fall
            return 1 - done if self.schedule == "linear" else 1.0

        return factor


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
