"""Contrastive embeddings of P ∪ U on the unit sphere: density follows meaning.

Two random views of a row must find each other among all other rows of the batch (Chen
et al. 2020, SimCLR). No label is used, except that labelled positives may attract each
other. A reconstruction, as in the paper, keeps what fills the most pixels; this keeps
what tells one picture from another whatever the crop and the light.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from denspu._machine import Deadline, resolve_device
from denspu._parameters import (
    About,
    InstanceOf,
    Number,
    OneOf,
    Whole,
    check_parameters,
    setting,
)
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, RandomState
from denspu._validation import validate_labels, validate_X
from denspu.augment import PRESETS, ImageAugment, ImagePreset, RowAugment
from denspu.base import Encoder
from denspu.encoders.tabular import TabularEncoder
from denspu.exceptions import DegenerateFitWarning, InvalidParameterError
from denspu.losses import nt_xent
from denspu.networks.backbones import (
    MLP,
    ContrastiveModel,
    OnSphere,
    PixelScale,
    pack,
    resnet18,
    small_resnet,
    unpack,
)
from denspu.training import (
    Checkpoint,
    TensorBatches,
    TrainingConfig,
    in_fixed_batches,
    train,
)
from denspu.training.loop import USE, Batch, InParts, fits, free_bytes, in_parts, within

IMAGE_NETWORKS = {"resnet18": resnet18, "small": small_resnet}

LARGE_BATCH, SMALL_BATCH = 1024, 256
"""Samples in a batch: as many as memory allows, between these."""

GPU_VIEWS = 14_000_000
"""Views of small images that one large GPU gets through in two or three minutes."""

CPU_VIEWS = 160_000
"""Views of images that two cores get through in a minute or two."""

COMPILE_PIXELS = 5_400_000_000
"""Pixels of views from which compiling a ResNet-18 pays, some 80 seconds on an H200: it
takes 20 the first time, and a third more views are seen in every one that follows."""


@dataclass
class ContrastiveLoss(InParts):
    """Two views of each row, their projections, and the contrastive loss of them all.

    With ``parts`` above 1 projections are computed in that many parts, and computed
    again for the gradient: memory holds one part, the loss sees all.
    """

    as_float: Callable[[Tensor], Tensor]
    views: Callable[[Tensor], Tensor]
    temperature: float
    positive_weight: float

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


class ContrastiveEncoder(Encoder):
    """Rows told apart from each other on the unit sphere, P and U together.

    Attributes
    ----------
    module_ : nn.Module
        The network without its projection head, on the CPU.
    history_ : History
    epochs_, batch_size_, augment_, network_name_
        What ``"auto"`` came to.
    """

    about = About(
        key="contrastive",
        paper="Chen et al. 2020, SimCLR",
        deep=True,
        inputs=("image", "table"),
    )

    network: Literal["auto", "resnet18", "small", "mlp"] = setting(
        "auto",
        OneOf("auto", *IMAGE_NETWORKS, "mlp"),
        doc='``"auto"``: ResNet-18 on a GPU, a smaller one on a CPU; else a perceptron',
    )
    epochs: int | Literal["auto"] = setting(
        "auto",
        OneOf("auto"),
        Whole(1),
        doc='``"auto"``: for images as many as make some 14 million views on a GPU,\n'
        "from 30 to 300, or 160,000 on a CPU, from 3 to 100; 100 for tables.",
    )
    max_seconds: float | None = setting(
        None,
        OneOf(None),
        Number(0, closed="neither"),
        doc="Trains fewer epochs where time is short; see ``epochs_``.",
    )
    batch_size: int | Literal["auto"] = setting(
        "auto",
        OneOf("auto"),
        Whole(2),
        doc='Samples a step, each seen twice; ``"auto"``: up to 1,024, as memory\n'
        "allows. A larger one is computed in parts, and the loss sees it whole.",
    )
    lr: float | Literal["auto"] = setting(
        "auto",
        OneOf("auto"),
        Number(0, closed="neither"),
        doc='``"auto"``: 0.8 for 1,024 samples, in proportion to the batch.',
    )
    temperature: float = setting(0.2, Number(0, closed="neither"))
    weight_decay: float = setting(1e-4, Number(0))
    positive_weight: float = setting(
        0.5,
        Number(0),
        doc="Weight of the attraction among labelled positives; 0 uses no label.",
    )
    augment: str | ImagePreset = setting(
        "auto",
        OneOf("auto", *PRESETS),
        InstanceOf(ImagePreset),
        doc='Views of images; ``"auto"``: ``"natural"`` for colour, else ``"grey"``.',
    )
    noise: float = setting(0.1, Number(0), doc="Views of table rows: added noise.")
    mask: float = setting(
        0.3,
        Number(0, 1, "left"),
        doc="Views of table rows: share of values from other rows.",
    )
    image_size: int | None = setting(
        None,
        OneOf(None),
        Whole(8),
        doc="Images are resized to this; None keeps their size.",
    )
    n_projection: int = setting(128, Whole(2))
    compile: bool | Literal["auto"] = setting(
        "auto",
        OneOf("auto", True, False),
        doc='Fuse operations; ``"auto"``: where a GPU trains a ResNet-18 for minutes.',
    )
    deterministic: bool = setting(True, OneOf(True, False))
    checkpoint: str | Path | None = setting(
        None,
        OneOf(None),
        InstanceOf(str),
        InstanceOf(Path),
        doc="Folder in which training is kept; found there, it goes on.",
    )
    random_state: RandomState = setting(None)
    device: str = setting("auto")
    verbose: int = setting(0)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on all rows of ``X``; ``y`` are PU labels, and may be missing.

        With ``positive_weight=0`` labels are not looked at.
        """
        check_parameters(self)
        X = validate_X(self, X, reset=True)
        deadline = Deadline(self.max_seconds)
        device = resolve_device(self.device)
        randomness = Randomness(self.random_state)
        positive = np.zeros(len(X), dtype=bool)
        if y is not None and self.positive_weight:
            positive = validate_labels(y, len(X))
        data = self._prepare(X)
        with randomness.torch_scope("weights", device):
            model = ContrastiveModel(self._network(data, device), self.n_projection)
            # The mean and spread of the pixels are those of some 2,000 rows.
            model.body.look_at(self.as_float(data[:: -(-len(data) // 2000)]))
            loss = ContrastiveLoss(
                self.as_float, self.views_, self.temperature, self.positive_weight
            )
            self._train(model, loss, data, positive, randomness, deadline)
        self.n_parts_ = loss.parts
        self.module_ = model.body
        self._warn_if_collapsed(data)
        return self

    def _train(
        self,
        model: ContrastiveModel,
        loss: ContrastiveLoss,
        data: Tensor,
        positive: BoolArray,
        randomness: Randomness,
        deadline: Deadline,
    ) -> None:
        """Train as the settings say, within the time."""
        device = resolve_device(self.device)
        model.to(device)
        held = device if fits(data, device) else data.device
        data = data.to(held)
        self.batch_size_ = self._batch_size(model, loss, data, device)
        batches = TensorBatches(
            data,
            torch.from_numpy(positive).to(held),
            batch_size=self.batch_size_,
            drop_last=True,
            device=device,
        )
        a_pass = 2 * len(data) * data[0, 0].numel()
        configure = partial(self._config, self.batch_size_, device, loss, a_pass)
        kept = None
        if self.checkpoint:
            rows = np.ascontiguousarray(data.cpu().numpy())
            sums = f"{zlib.crc32(rows.data):08x} {zlib.crc32(positive.tobytes()):08x}"
            shape = (self.temperature, self.positive_weight, randomness.entropy)
            views = self.preset_ if self.input_kind_ == "image" else self.views_
            kept = Checkpoint(self.checkpoint, identity=f"{sums} {shape} {views}")
        begun = kept.planned_epochs() if kept and self.max_seconds else None
        config = configure(begun or self._epochs(len(data), device))
        if begun is None and deadline.seconds is not None:
            affordable = partial(
                within,
                deadline,
                model,
                batches,
                loss,
                device=device,
                configure=configure,
            )
            asked, config = config, affordable(replace(config, compile=False))
            if config.compile:  # worth it for so many epochs, and there may be more
                config = configure(max(config.epochs, affordable(asked).epochs))
        self.epochs_ = config.epochs
        self.history_ = train(
            model,
            batches,
            loss,
            config,
            device=device,
            generator=randomness.generator("batches", held),
            checkpoint=kept,
            verbose=self.verbose,
            name="contrastive",
        )

    def _batch_size(
        self,
        model: ContrastiveModel,
        loss: ContrastiveLoss,
        data: Tensor,
        device: torch.device,
    ) -> int:
        """Return the batch, and split the step where it would not fit."""
        asked = self.batch_size
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

    def _epochs(self, n_rows: int, device: torch.device) -> int:
        if not isinstance(self.epochs, str):
            return self.epochs
        if self.input_kind_ != "image":
            return 100
        if device.type == "cuda":
            return int(np.clip(GPU_VIEWS // (2 * n_rows), 30, 300))
        return int(np.clip(CPU_VIEWS // (2 * n_rows), 3, 100))

    def _config(
        self,
        batch_size: int,
        device: torch.device,
        loss: ContrastiveLoss,
        a_pass: int,
        epochs: int,
    ) -> TrainingConfig:
        """Return how to train for some epochs, each over so many pixels of views."""
        lr = self.lr
        if isinstance(lr, str):
            lr = 0.8 * batch_size / LARGE_BATCH
        return TrainingConfig(
            epochs=epochs,
            optimizer="sgd",
            lr=lr,
            momentum=0.9,
            nesterov=True,
            weight_decay=self.weight_decay,
            schedule="cosine",
            warmup_epochs=min(5.0, epochs / 10),
            compile=self._compiles(device, a_pass * epochs),
            capture=device.type == "cuda" and loss.parts == 1,
            deterministic=self.deterministic,
        )

    def _compiles(self, device: torch.device, pixels: int) -> bool:
        if not isinstance(self.compile, str):
            return self.compile
        on_gpu = device.type == "cuda" and self.network_name_ == "resnet18"
        return on_gpu and pixels >= COMPILE_PIXELS

    def _warn_if_collapsed(self, data: Tensor) -> None:
        """Warn when all rows have come to lie at one point of the sphere."""
        Z = in_fixed_batches(
            OnSphere(self.module_, False),
            data[:: max(1, len(data) // 1000)],
            self.as_float,
            device=resolve_device(self.device),
        )
        # The mean cosine of two random rows: near 1 an embedding says nothing.
        self.mean_cosine_ = float((np.linalg.norm(Z.mean(axis=0))) ** 2)
        if self.mean_cosine_ > 0.98:
            warnings.warn(
                "The embedding has collapsed: two random rows have a cosine of "
                f"{self.mean_cosine_:.3f} on average, and nothing can be told apart. "
                "Are the rows copies of one another? Else lower lr, train longer, or "
                "choose views (augment=) that suit the data.",
                DegenerateFitWarning,
                stacklevel=3,
            )

    def _prepare(self, X: Any) -> Tensor:
        """Return the rows as compact tensors, and learn how to draw views of them."""
        self.views_: ImageAugment | RowAugment
        if self.input_kind_ == "image":
            self.scale_ = PixelScale.of(X)
            kind = "natural" if X.shape[-1] >= 3 else "grey"
            named = kind if self.augment == "auto" else self.augment
            self.preset_ = PRESETS[named] if isinstance(named, str) else named
            self.views_ = ImageAugment(self.preset_)
        else:
            self.table_ = TabularEncoder().fit(X)
            self.views_ = RowAugment(self.noise, self.mask)
        return self.packed(X)

    def packed(self, X: Any) -> Tensor:
        """Return checked rows as compact tensors, images as integers."""
        if self.input_kind_ == "image":
            return pack(X, self.scale_, self.image_size)
        return torch.from_numpy(np.asarray(self.table_.transform(X), np.float32))

    def as_float(self, rows: Tensor) -> Tensor:
        """Return packed rows as a network takes them."""
        return unpack(rows) if self.input_kind_ == "image" else rows

    def _network(self, data: Tensor, device: torch.device) -> nn.Module:
        name: str = self.network
        if name == "auto":
            on_gpu = "resnet18" if device.type == "cuda" else "small"
            name = on_gpu if self.input_kind_ == "image" else "mlp"
        self.network_name_ = name
        suits = ("mlp",) if self.input_kind_ == "table" else tuple(IMAGE_NETWORKS)
        if name not in suits:
            raise InvalidParameterError(
                f"network={name!r} does not take {self.input_kind_} input. Pass "
                f"network='auto' or {' or '.join(map(repr, suits))}."
            )
        if name == "mlp":
            return MLP(data[0].numel())
        self.network_input_ = (data.shape[1], max(data.shape[2:]))
        return IMAGE_NETWORKS[name](*self.network_input_)

    def transform(self, X: Any) -> FloatArray:
        """Return embeddings of length 1."""
        check_is_fitted(self)
        X = validate_X(self, X, reset=False)
        flips = self.input_kind_ == "image" and self.preset_.flip
        return in_fixed_batches(
            OnSphere(self.module_, flips),
            X,
            lambda rows: self.as_float(self.packed(rows)),
            device=resolve_device(self.device),
            batch_size=512,
        )

    def facts(self) -> dict[str, Any]:
        """Return the network, the training's size and its final loss."""
        return {
            "network": self.network_name_,
            "epochs": self.epochs_,
            "batch_size": self.batch_size_,
            "loss": self.history_.last["loss"],
            "mean_cosine": self.mean_cosine_,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
