"""What a training run needs to know, as one frozen value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from denspu.exceptions import InvalidParameterError, did_you_mean

OPTIMIZERS = ("adam", "adamw", "sgd")


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
        if self.optimizer in ("adam", "adamw"):
            adam = torch.optim.Adam if self.optimizer == "adam" else torch.optim.AdamW
            return adam(
                groups,
                lr=self.lr,
                betas=self.betas,
                fused=fused or None,
                capturable=fused and self.capture,
            )
        if self.optimizer == "sgd":
            return torch.optim.SGD(
                groups,
                lr=self.lr,
                momentum=self.momentum,
                nesterov=self.nesterov,
                fused=fused or None,
            )
        raise InvalidParameterError(
            f"optimizer={self.optimizer!r} must be one of {', '.join(OPTIMIZERS)}."
            f"{did_you_mean(self.optimizer, OPTIMIZERS)}"
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
