"""How the network refiner trains copies of the encoder's network: P against U, the PU
risk, labels."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from denspu._machine import resolve_device
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray
from denspu.base import RefinerInput
from denspu.losses import absolute_risk
from denspu.networks.backbones import OneLogit, WithMirror
from denspu.training import TensorBatches, TrainingConfig, in_fixed_batches, train
from denspu.training.loop import Batch, InParts, fits, in_parts, within

if TYPE_CHECKING:
    from denspu.refinement.network import NetworkRefiner

SCORE_ROWS = 1000

RATIO_SHARE = 0.3
"""Part of the time left that the ratio step may take."""

RISK_SHARE = 0.2
"""Part of the time then left that the risk step may take."""


class Copies:
    """The rows on the device, and networks made from the encoder's."""

    def __init__(self, settings: NetworkRefiner, start: RefinerInput) -> None:
        self.settings = settings
        self.start = start
        self.encoder = start.encoder
        self.device = resolve_device(settings.device)
        self.randomness = Randomness(settings.random_state)
        self.epochs: dict[str, int] = {}
        packed = self.encoder.packed(start.X)
        self.data = packed.to(self.device) if fits(packed, self.device) else packed
        self.as_float: Callable[[Tensor], Tensor] = self.encoder.as_float
        self.views: Callable[[Tensor], Tensor] = self.encoder.views_.milder(
            crop=settings.crop, erase=settings.erase
        )

    def score(self, module: nn.Module, chosen: BoolArray) -> FloatArray:
        """Return a network's log-odds of some of the rows."""
        return in_fixed_batches(
            WithMirror(module, self.encoder.preset_.flip),
            self._rows(chosen),
            self.as_float,
            device=self.device,
            batch_size=SCORE_ROWS,
        ).astype(np.float64)

    def train_ratio(self, rows: BoolArray, name: str, epochs: int) -> nn.Module:
        """Return a network that tells P from U, trained on some of the rows."""
        positives = self._rows(rows & self.start.positive).to(self.device)
        loss = RatioLoss(self.as_float, self.views, positives)
        batches = self._batches(self._rows(rows & self.start.unlabeled))
        share = RATIO_SHARE / self.settings.folds
        return self._train(loss, batches, self.settings.lr / 5, epochs, name, share)

    def train_risk(self, prior: float) -> nn.Module:
        """Return a network that lowers the PU risk at a prior, trained on all rows."""
        positives = self._rows(self.start.positive).to(self.device)
        loss = RiskLoss(self.as_float, self.views, positives, prior=prior)
        batches = self._batches(self._rows(self.start.unlabeled))
        lr, epochs = self.settings.lr / 5, self.settings.risk_epochs
        return self._train(loss, batches, lr, epochs, "risk", RISK_SHARE)

    def train_labels(
        self, target: FloatArray, weight: FloatArray, name: str
    ) -> nn.Module:
        """Return a network that has learned a label of every row, weighted."""
        columns = (self._tensor(c.astype(np.float32)) for c in (target, weight))
        loss = LabelLoss(self.as_float, self.views, self.settings.mixup)
        batches = self._batches(self.data, *columns)
        return self._train(
            loss, batches, self.settings.lr, self.settings.epochs, name, 1.0
        )

    def _tensor(self, values: Any) -> Tensor:
        """Return an array as a tensor beside the rows."""
        return torch.from_numpy(values).to(self.data.device)

    def _rows(self, chosen: BoolArray) -> Tensor:
        """Return some of the rows, as the encoder packs them."""
        return self.data[self._tensor(np.flatnonzero(chosen))]

    def _batches(self, *columns: Tensor) -> TensorBatches:
        return TensorBatches(
            *columns,
            batch_size=self.settings.batch_size,
            drop_last=True,
            device=self.device,
        )

    def _train(
        self,
        loss: Any,
        batches: TensorBatches,
        lr: float,
        epochs: int,
        name: str,
        share: float,
    ) -> nn.Module:
        """Train a copy of the encoder's network, within a share of the time left."""

        def configure(epochs: int) -> TrainingConfig:
            decay = self.settings.ema_decay
            if decay is not None:  # an average over no more than a fifth of the steps
                decay = min(decay, 1 - 5 / max(10, epochs * len(batches)))
            return TrainingConfig(
                epochs=epochs,
                optimizer="sgd",
                lr=lr,
                momentum=0.9,
                nesterov=True,
                weight_decay=self.settings.weight_decay,
                schedule="linear",
                warmup_epochs=min(2.0, epochs / 10),
                ema_decay=decay,
                capture=self.device.type == "cuda",
            )

        with self.randomness.torch_scope(name, self.device):
            module = OneLogit(copy.deepcopy(self.encoder.module_))
            config = within(
                self.start.deadline,
                module,
                batches,
                loss,
                configure(epochs),
                device=self.device,
                share=share,
                configure=configure,
            )
            self.epochs[name] = config.epochs
            train(
                module,
                batches,
                loss,
                config,
                device=self.device,
                generator=self.randomness.generator(
                    f"{name}/batches", self.data.device
                ),
                verbose=self.settings.verbose,
                name=name,
            )
        return module


# --- losses --------------------------------------------------------------------------


@dataclass
class _PositivesAndBatch(InParts):
    """Views of random labelled positives beside a batch of U, half as many."""

    as_float: Callable[[Tensor], Tensor]
    views: Callable[[Tensor], Tensor]
    positives: Tensor

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
