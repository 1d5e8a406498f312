"""Rounds of ordinary training on images, each row judged by networks that did not see it."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from denspu._device import resolve_device
from denspu._parameters import Number, OneOf, Whole, check_parameters
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu.base import Refiner, RefinerInput, Rules
from denspu.refinement.posterior import posterior
from denspu.training import TensorBatches, TrainingConfig, in_fixed_batches, train
from denspu.training.batches import Batch


class Classifier(nn.Module):
    """A body and one logit."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(cast(int, body.n_features), 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a row."""
        return cast(Tensor, self.head(self.body(x))).squeeze(1)


class WithMirror(nn.Module):
    """The mean logit of an image and its mirror."""

    def __init__(self, module: nn.Module, flips: bool) -> None:
        super().__init__()
        self.module = module
        self.flips = flips

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a row."""
        logit = self.module(x)
        return (logit + self.module(x.flip(3))) / 2 if self.flips else logit


class SoftLabelLoss:
    """Cross-entropy on random views and soft labels, mixed in pairs (mixup)."""

    def __init__(self, as_float: Any, views: Any, mixup: bool) -> None:
        self.as_float = as_float
        self.views = views
        self.mixup = mixup

    def __call__(self, module: nn.Module, batch: Batch) -> Tensor:
        """Return the loss of one batch."""
        rows, label, weight = batch
        with torch.no_grad():
            x = self.views(self.as_float(rows))
            if self.mixup:
                # The batch is in random order, so its mirror pairs rows at random.
                share = torch.rand((), device=x.device)
                x = share * x + (1 - share) * x.flip(0)
                label = share * label + (1 - share) * label.flip(0)
                weight = share * weight + (1 - share) * weight.flip(0)
        logit = module(x).float()
        losses = F.binary_cross_entropy_with_logits(logit, label, reduction="none")
        return (weight * losses).sum() / weight.sum().clamp_min(1e-6)
