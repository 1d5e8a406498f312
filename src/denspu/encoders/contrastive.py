"""Contrastive embeddings of P ∪ U on the unit sphere: density follows meaning.

Two random views of a row must find each other among all other rows of the batch (Chen
et al. 2020, SimCLR). No label is used, except that labelled positives may attract each
other. A reconstruction, as in the paper, keeps what fills the most pixels; this keeps
what tells one picture from another whatever the crop and the light.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from safetensors.torch import load_file, save_file
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
from denspu._typing import FloatArray, RandomState
from denspu._validation import validate_labels, validate_X
from denspu.augment import PRESETS, ImageAugment, ImagePreset, RowAugment
from denspu.base import Encoder
from denspu.encoders.contrastive_training import ContrastiveLoss, train_encoder
from denspu.encoders.tabular import TabularEncoder
from denspu.exceptions import DegenerateFitWarning, InvalidParameterError
from denspu.networks.backbones import (
    MLP,
    ContrastiveModel,
    OnSphere,
    Standardised,
    resnet18,
    small_resnet,
)
from denspu.networks.pixels import PixelScale, pack, unpack
from denspu.training import History, in_fixed_batches

IMAGE_NETWORKS = {"resnet18": resnet18, "small": small_resnet}
NETWORKS = (*IMAGE_NETWORKS, "mlp")


CONFIG, WEIGHTS = "config.json", "network.safetensors"

PLAIN_STATE = (
    "input_kind_",
    "image_shape_",
    "n_features_in_",
    "image_size",
    "network_name_",
    "network_input_",
    "epochs_",
    "batch_size_",
    "n_parts_",
    "mean_cosine_",
)
"""Facts of a fitted encoder of images that JSON can hold as they are."""


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
        OneOf("auto", *NETWORKS),
        doc='``"auto"``: ResNet-18 for images on a GPU, a smaller network for images\n'
        "on a CPU, a perceptron for tables.",
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
        doc="Trains fewer epochs where time is short; ``epochs_`` says how many.",
    )
    batch_size: int | Literal["auto"] = setting(
        "auto",
        OneOf("auto"),
        Whole(2),
        doc='Samples a step, each seen twice. ``"auto"``: up to 1,024, as memory\n'
        "allows. Where even the batch asked for does not fit, the step is computed in\n"
        "parts and the loss still sees it whole.",
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
        doc='Random views of images. ``"auto"``: ``"natural"`` for colour, ``"grey"``\n'
        "else.",
    )
    noise: float = setting(
        0.1, Number(0), doc="Random views of table rows: added noise."
    )
    mask: float = setting(
        0.3,
        Number(0, 1, "left"),
        doc="Random views of table rows: share of values from other rows.",
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
        doc="Let torch fuse the network's operations, which takes a while the first\n"
        'time; ``"auto"`` does so for a ResNet-18 that a GPU trains for longer than\n'
        "a minute or so.",
    )
    deterministic: bool = setting(True, OneOf(True, False))
    checkpoint: str | Path | None = setting(
        None,
        OneOf(None),
        InstanceOf(str),
        InstanceOf(Path),
        doc="Folder in which training is kept every few epochs; found there, it goes\n"
        "on.",
    )
    random_state: RandomState = setting(None)
    device: str = setting("auto")
    verbose: int = setting(0)

    # --- learning --------------------------------------------------------------------

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
            self.epochs_, self.batch_size_, self.history_ = train_encoder(
                self, model, loss, data, positive, randomness, device, deadline
            )
        self.n_parts_ = loss.parts
        self.module_ = model.body
        self._warn_if_collapsed(data)
        return self

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

    # --- answers ---------------------------------------------------------------------

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

    # --- keeping ---------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Keep an encoder of images in a folder: one training, many experiments.

        ``config.json`` holds settings and facts, ``network.safetensors`` the weights.
        """
        check_is_fitted(self)
        if self.input_kind_ != "image":
            raise InvalidParameterError(
                "save keeps encoders of images only, and this one was fitted on a "
                "table. Keep its embeddings instead: numpy.save(file, transform(X))."
            )
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        state = {k: v.contiguous() for k, v in self.module_.state_dict().items()}
        save_file(state, folder / WEIGHTS)
        facts = {name: getattr(self, name) for name in PLAIN_STATE}
        facts |= {"preset_": asdict(self.preset_), "scale_": asdict(self.scale_)}
        facts["history_"] = self.history_.rows
        (folder / CONFIG).write_text(json.dumps(facts), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> Self:
        """Return an encoder kept by :meth:`save`, ready to ``transform``."""
        folder = Path(folder)
        if not (folder / CONFIG).is_file():
            raise InvalidParameterError(
                f"folder={str(folder)!r} holds no {CONFIG}: it must be a folder "
                "written by ContrastiveEncoder.save."
            )
        kept = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        weights = load_file(folder / WEIGHTS)
        encoder = cls(device=device)
        for name in PLAIN_STATE:
            value = kept[name]
            setattr(encoder, name, tuple(value) if isinstance(value, list) else value)
        encoder.preset_ = ImagePreset(**kept["preset_"])
        encoder.views_ = ImageAugment(encoder.preset_)
        encoder.scale_ = PixelScale(**kept["scale_"])
        encoder.history_ = History(kept["history_"])
        channels, size = encoder.network_input_
        network = IMAGE_NETWORKS[encoder.network_name_](channels, size)
        encoder.module_ = Standardised(network)
        encoder.module_.mean, encoder.module_.std = weights["mean"], weights["std"]
        encoder.module_.load_state_dict(weights)
        encoder.module_.eval()
        return encoder

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
