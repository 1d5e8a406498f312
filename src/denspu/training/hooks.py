"""How to train, what happened, what may look in or stop it, what is kept of it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from denspu._files import new_file
from denspu.exceptions import DensPUError, DensPUWarning


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


# --- training that can be cut off -----------------------------------------------------

FILE, BEFORE = "training.safetensors", "training.before.safetensors"

State = tuple[dict[str, Any], dict[str, Tensor]]


class Checkpoint:
    """Keep the state of a training in a folder, to go on as if it had not been cut off.

    One safetensors file holds weights, the optimiser's memory, averages, random states
    and the history as text beside them, with a sum of it all. It is written whole or
    not at all, and the one before is kept: a damaged one falls back to it. One that
    belongs to another training is refused.

    Parameters
    ----------
    folder : str or Path
    every : int
        Epochs between two writings.
    identity : str
        What else must be the same to go on: the data, the seed.
    """

    def __init__(self, folder: str | Path, every: int = 10, identity: str = "") -> None:
        self.path = Path(folder) / FILE
        self.before = Path(folder) / BEFORE
        self.every = every
        self.identity = identity

    def save(
        self,
        epoch: int,
        module: nn.Module,
        optimizers: list[torch.optim.Optimizer],
        average: list[Tensor],
        generators: dict[str, torch.Generator],
        rows: list[dict[str, float]],
        config: TrainingConfig,
    ) -> None:
        """Write the state after an epoch."""
        tensors = {f"module/{k}": v for k, v in module.state_dict().items()}
        for i, optimizer in enumerate(optimizers):
            tensors |= _memory(optimizer, f"optimizer/{i}")
        tensors |= {f"average/{i}": value for i, value in enumerate(average)}
        tensors |= {f"random/{k}": g.get_state() for k, g in generators.items()}
        facts = {
            "epoch": epoch,
            "rows": rows,
            "config": asdict(config),
            "identity": self.identity,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        plain = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
        about = {"denspu": json.dumps(facts)}
        about["sha256"] = _sum(about["denspu"], plain)
        with new_file(self.path) as work:
            save_file(plain, work, metadata=about)
            if self.path.exists():
                os.replace(self.path, self.before)

    def load(
        self,
        module: nn.Module,
        optimizers: list[torch.optim.Optimizer],
        average: list[Tensor],
        generators: dict[str, torch.Generator],
        config: TrainingConfig,
    ) -> tuple[int, list[dict[str, float]]]:
        """Restore a state; return the epochs done and their history."""
        found = self._newest()
        if found is None:
            return 0, []
        facts, tensors = found
        prefix = "module/"
        state = {
            key.removeprefix(prefix): value
            for key, value in tensors.items()
            if key.startswith(prefix)
        }
        same = (
            _shapes(state) == _shapes(module.state_dict())
            and facts["config"] == json.loads(json.dumps(asdict(config)))
            and facts["identity"] == self.identity
        )
        if not same:
            raise DensPUError(
                f"{self.path} belongs to another training (other network, settings, "
                "data or random_state). Choose another folder or delete the file."
            )
        module.load_state_dict(state)
        for i, optimizer in enumerate(optimizers):
            _remember(optimizer, tensors, f"optimizer/{i}")
        with torch.no_grad():
            for i, value in enumerate(average):
                value.copy_(tensors[f"average/{i}"])
        for name, generator in generators.items():
            generator.set_state(tensors[f"random/{name}"])
        return int(facts["epoch"]), list(facts["rows"])

    def planned_epochs(self) -> int | None:
        """Return how many epochs the training kept here was to take, if there is one.

        Epochs that came from a deadline are decided once, not again when going on.
        """
        found = self._newest()
        return None if found is None else int(found[0]["config"]["epochs"])

    def _newest(self) -> State | None:
        """Return the newest state that can be read, if there is one."""
        for path in (self.path, self.before):
            if not path.is_file():
                continue
            try:
                return _read(path)
            except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
                older = self.before if path == self.path else None
                begin = "Training begins anew"
                if older is not None and older.is_file():
                    begin = f"The one before is taken, {older.name}"
                warnings.warn(
                    f"The checkpoint {path} cannot be read ({error}). {begin}.",
                    DensPUWarning,
                    stacklevel=3,
                )
        return None

    def discard(self) -> None:
        """Delete the files: the training has ended."""
        for path in (self.path, self.before):
            path.unlink(missing_ok=True)


def _read(path: Path) -> State:
    """Return facts and tensors of a checkpoint, or raise if it is damaged."""
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    if about.get("sha256", "") not in ("", _sum(about["denspu"], tensors)):
        raise ValueError("its sum is another than when it was written")
    return json.loads(about["denspu"]), tensors


def _sum(facts: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _shapes(state: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in state.items()}


def _memory(optimizer: torch.optim.Optimizer, prefix: str) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {
        f"{prefix}/{index}/{name}": torch.as_tensor(value)
        for index, values in state.items()
        for name, value in values.items()
        if value is not None
    }


def _remember(
    optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], prefix: str
) -> None:
    whole = optimizer.state_dict()
    weights = [p for group in optimizer.param_groups for p in group["params"]]
    memory: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith(prefix + "/"):
            index, name = key.removeprefix(prefix + "/").split("/")
            like = weights[int(index)]
            if value.shape == like.shape:  # fused updates want the weights' layout
                value = torch.empty_like(like, device=value.device).copy_(value)
            memory.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({**whole, "state": memory})
