"""The trainings of the network refiner: which rows, which loss, for how long."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
from torch import Tensor, nn

from denspu._machine import resolve_device
from denspu._typing import BoolArray, FloatArray
from denspu.base import RefinerInput
from denspu.refinement.network_copies import Copies
from denspu.refinement.network_losses import LabelLoss, RatioLoss, RiskLoss
from denspu.training import TensorBatches, TrainingConfig

if TYPE_CHECKING:
    from denspu.refinement.network import NetworkRefiner

RATIO_SHARE = 0.3
"""Part of the time left that the ratio step may take."""

RISK_SHARE = 0.2
"""Part of the time then left that the risk step may take."""


def train_ratio(
    refiner: NetworkRefiner,
    rows: BoolArray,
    start: RefinerInput,
    copies: Copies,
    name: str,
    epochs: int,
) -> nn.Module:
    """Return a network that tells P from U, trained on some of the rows."""
    positive, rest = rows & start.positive, rows & start.unlabeled
    positives = copies.rows(positive).to(copies.device)
    loss = RatioLoss(copies.as_float, _views(refiner), positives)
    batches = TensorBatches(
        copies.rows(rest),
        batch_size=refiner.batch_size,
        drop_last=True,
        device=copies.device,
    )
    configure = partial(_config, refiner, refiner.lr / 5, batches)
    share = RATIO_SHARE / refiner.folds
    return copies.train(loss, batches, configure, epochs, name, share, refiner.verbose)


def train_risk(
    refiner: NetworkRefiner, prior: float, start: RefinerInput, copies: Copies
) -> nn.Module:
    """Return a network that lowers the PU risk at a prior, trained on all rows."""
    positives = copies.rows(start.positive).to(copies.device)
    loss = RiskLoss(copies.as_float, _views(refiner), positives, prior=prior)
    batches = TensorBatches(
        copies.rows(start.unlabeled),
        batch_size=refiner.batch_size,
        drop_last=True,
        device=copies.device,
    )
    configure = partial(_config, refiner, refiner.lr / 5, batches)
    return copies.train(
        loss,
        batches,
        configure,
        refiner.risk_epochs,
        "risk",
        RISK_SHARE,
        refiner.verbose,
    )


def train_labels(
    refiner: NetworkRefiner,
    target: FloatArray,
    weight: FloatArray,
    copies: Copies,
    name: str,
) -> nn.Module:
    """Return a network that has learned a label of every row, weighted."""
    batches = TensorBatches(
        copies.data,
        copies.tensor(target.astype(np.float32)),
        copies.tensor(weight.astype(np.float32)),
        batch_size=refiner.batch_size,
        drop_last=True,
        device=copies.device,
    )
    loss = LabelLoss(copies.as_float, _views(refiner), refiner.mixup)
    configure = partial(_config, refiner, refiner.lr, batches)
    return copies.train(
        loss, batches, configure, refiner.epochs, name, 1.0, refiner.verbose
    )


def _views(refiner: NetworkRefiner) -> Callable[[Tensor], Tensor]:
    return cast(
        Callable[[Tensor], Tensor],
        refiner.encoder_.views_.milder(crop=refiner.crop, erase=refiner.erase),
    )


def _config(
    refiner: NetworkRefiner, lr: float, batches: TensorBatches, epochs: int
) -> TrainingConfig:
    decay = refiner.ema_decay
    if decay is not None:  # an average over no more than a fifth of the training
        decay = min(decay, 1 - 5 / max(10, epochs * len(batches)))
    fast = resolve_device(refiner.device).type == "cuda"
    return TrainingConfig(
        epochs=epochs,
        optimizer="sgd",
        lr=lr,
        momentum=0.9,
        nesterov=True,
        weight_decay=refiner.weight_decay,
        schedule="linear",
        warmup_epochs=min(2.0, epochs / 10),
        ema_decay=decay,
        capture=fast,
    )
