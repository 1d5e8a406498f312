"""The training of a contrastive encoder: its loss, its batches, its epochs.

What the settings leave to ``"auto"`` follows from the rows, the device, the memory a
step takes and the time there is.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from denspu._machine import Deadline
from denspu._random import Randomness
from denspu.losses import nt_xent
from denspu.networks.backbones import ContrastiveModel
from denspu.training import Checkpoint, History, TensorBatches, TrainingConfig, train
from denspu.training.batches import Batch
from denspu.training.budget import USE, InParts, fits, free_bytes, in_parts, within

if TYPE_CHECKING:
    from denspu.encoders.contrastive import ContrastiveEncoder


class ContrastiveLoss(InParts):
    """Two views of each row, their projections, and the contrastive loss of them all.

    With ``parts`` above 1 projections are computed in that many parts, and computed
    again for the gradient: memory holds one part, the loss sees all.
    """

    def __init__(
        self,
        as_float: Callable[[Tensor], Tensor],
        views: Callable[[Tensor], Tensor],
        temperature: float,
        positive_weight: float,
    ) -> None:
        self.as_float = as_float
        self.views = views
        self.temperature = temperature
        self.positive_weight = positive_weight
        self.parts = 1

    def __call__(self, module: nn.Module, batch: Batch) -> Tensor:
        """Return the loss of one batch."""
        rows, positive = batch
        with torch.no_grad():
            rows = self.as_float(rows)
            views = torch.cat([self.views(rows), self.views(rows)])
        z = in_parts(module, views, self.parts)
        with torch.autocast(views.device.type, enabled=False):
            return nt_xent(z, self.temperature, positive, self.positive_weight)

    def bytes_a_row(
        self, module: nn.Module, data: Tensor, device: torch.device
    ) -> float:
        """Return the memory one sample's two views take in a training step."""
        rows = self.as_float(data[:32].to(device))
        with torch.random.fork_rng(devices=[device]):
            views = torch.cat([self.views(rows), self.views(rows)])
        before = torch.cuda.memory_allocated(device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            z = module(views)
        taken = torch.cuda.memory_allocated(device) - before
        del z
        # What the forward pass keeps, and half as much again on the way back.
        return 1.5 * max(taken, 1) / len(rows)


LARGE_BATCH, SMALL_BATCH = 1024, 256
"""Samples in a batch: as many as memory allows, between these."""

GPU_VIEWS = 14_000_000
"""Views of small images that one large GPU gets through in two or three minutes."""

CPU_VIEWS = 160_000
"""Views of images that two cores get through in a minute or two."""

COMPILE_PIXELS = 5_400_000_000
"""Pixels of views from which compiling a ResNet-18 pays, some 80 seconds on an H200: it
takes 20 the first time, and a third more views are seen in every one that follows."""


def train_encoder(
    encoder: ContrastiveEncoder,
    model: ContrastiveModel,
    loss: ContrastiveLoss,
    data: Tensor,
    positive: Any,
    randomness: Randomness,
    device: torch.device,
    deadline: Deadline,
) -> tuple[int, int, History]:
    """Train as the settings say, within the time; return epochs, batch and history."""
    model.to(device)
    held = device if fits(data, device) else data.device
    data = data.to(held)
    size = batch_size_for(encoder, model, loss, data, device)
    batches = TensorBatches(
        data,
        torch.from_numpy(positive).to(held),
        batch_size=size,
        drop_last=True,
        device=device,
    )
    a_pass = 2 * len(data) * data[0, 0].numel()
    configure = partial(config_for, encoder, size, device, loss, a_pass)
    kept = None
    if encoder.checkpoint:
        identity = _identity(encoder, data, positive, randomness)
        kept = Checkpoint(encoder.checkpoint, identity=identity)
    begun = kept.planned_epochs() if kept and encoder.max_seconds else None
    config = configure(begun or epochs_for(encoder, len(data), device))
    if begun is None and deadline.seconds is not None:
        affordable = partial(
            within, deadline, model, batches, loss, device=device, configure=configure
        )
        asked, config = config, affordable(replace(config, compile=False))
        if config.compile:  # worth it for so many epochs, and there may be more
            config = configure(max(config.epochs, affordable(asked).epochs))
    history = train(
        model,
        batches,
        loss,
        config,
        device=device,
        generator=randomness.generator("batches", held),
        checkpoint=kept,
        verbose=encoder.verbose,
        name="contrastive",
    )
    return config.epochs, size, history


def _identity(
    encoder: ContrastiveEncoder, data: Tensor, positive: Any, randomness: Randomness
) -> str:
    """Return a checksum of rows and labels, and what shapes the loss and its views."""
    rows = np.ascontiguousarray(data.cpu().numpy())
    sums = f"{zlib.crc32(rows.data):08x} {zlib.crc32(positive.tobytes()):08x}"
    views = encoder.preset_ if encoder.input_kind_ == "image" else encoder.views_
    loss = (encoder.temperature, encoder.positive_weight, randomness.entropy)
    return f"{sums} {loss} {views}"


def batch_size_for(
    encoder: ContrastiveEncoder,
    model: ContrastiveModel,
    loss: ContrastiveLoss,
    data: Tensor,
    device: torch.device,
) -> int:
    """Return the batch, and split the step where it would not fit."""
    asked = encoder.batch_size
    size = LARGE_BATCH if isinstance(asked, str) else asked
    size = min(size, max(2, len(data) // 2))
    if device.type != "cuda":
        return min(size, SMALL_BATCH) if isinstance(asked, str) else size
    affordable = USE * free_bytes(device) / loss.bytes_a_row(model, data, device)
    if isinstance(asked, str):
        while size > SMALL_BATCH and size > affordable:
            size //= 2
    while size / loss.parts > affordable and loss.use_less_memory():
        pass
    return size


def epochs_for(encoder: ContrastiveEncoder, n_rows: int, device: torch.device) -> int:
    """Return the epochs asked for, or as many as make a number of views."""
    if not isinstance(encoder.epochs, str):
        return encoder.epochs
    if encoder.input_kind_ != "image":
        return 100
    if device.type == "cuda":
        return int(np.clip(GPU_VIEWS // (2 * n_rows), 30, 300))
    return int(np.clip(CPU_VIEWS // (2 * n_rows), 3, 100))


def config_for(
    encoder: ContrastiveEncoder,
    batch_size: int,
    device: torch.device,
    loss: ContrastiveLoss,
    a_pass: int,
    epochs: int,
) -> TrainingConfig:
    """Return how to train for some epochs, each over so many pixels of views."""
    lr = encoder.lr
    if isinstance(lr, str):
        lr = 0.8 * batch_size / LARGE_BATCH
    return TrainingConfig(
        epochs=epochs,
        optimizer="sgd",
        lr=lr,
        momentum=0.9,
        nesterov=True,
        weight_decay=encoder.weight_decay,
        schedule="cosine",
        warmup_epochs=min(5.0, epochs / 10),
        compile=compiles(encoder, device, a_pass * epochs),
        capture=device.type == "cuda" and loss.parts == 1,
        deterministic=encoder.deterministic,
    )


def compiles(encoder: ContrastiveEncoder, device: torch.device, pixels: int) -> bool:
    """Tell whether a training on so many pixels of views is compiled."""
    if not isinstance(encoder.compile, str):
        return encoder.compile
    on_gpu = device.type == "cuda" and encoder.network_name_ == "resnet18"
    return on_gpu and pixels >= COMPILE_PIXELS
