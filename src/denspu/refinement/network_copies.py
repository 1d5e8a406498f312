"""Copies of the encoder's network: trained one by one, all on the same rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray
from denspu.base import RefinerInput
from denspu.networks.heads import OneLogit, WithMirror
from denspu.training import TensorBatches, TrainingConfig, in_fixed_batches, train
from denspu.training.budget import fits, within

SCORE_ROWS = 1000


class Copies:
    """The rows on the device, and networks made from the encoder's."""

    def __init__(
        self, start: RefinerInput, device: torch.device, randomness: Randomness
    ) -> None:
        self.encoder = start.encoder
        self.device = device
        self.randomness = randomness
        self.deadline = start.deadline
        self.epochs: dict[str, int] = {}
        packed = start.encoder.packed(start.X)
        self.data = packed.to(device) if fits(packed, device) else packed
        self.as_float: Callable[[Tensor], Tensor] = start.encoder.as_float

    def tensor(self, values: Any) -> Tensor:
        """Return an array as a tensor beside the rows."""
        return torch.from_numpy(values).to(self.data.device)

    def rows(self, chosen: BoolArray) -> Tensor:
        """Return some of the rows, as the encoder packs them."""
        return self.data[self.tensor(np.flatnonzero(chosen))]

    def train(
        self,
        loss: Any,
        batches: TensorBatches,
        configure: Callable[[int], TrainingConfig],
        epochs: int,
        name: str,
        share: float,
        verbose: int,
    ) -> nn.Module:
        """Train a copy of the encoder's network, within a share of the time left."""
        with self.randomness.torch_scope(name, self.device):
            module = OneLogit(copy.deepcopy(self.encoder.module_))
            config = within(
                self.deadline,
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
                verbose=verbose,
                name=name,
            )
        return module

    def score(self, module: nn.Module, chosen: BoolArray) -> FloatArray:
        """Return a network's log-odds of some of the rows."""
        return in_fixed_batches(
            WithMirror(module, self.encoder.preset_.flip),
            self.rows(chosen),
            self.as_float,
            device=self.device,
            batch_size=SCORE_ROWS,
        ).astype(np.float64)
