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
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from denspu._machine import Deadline, resolve_device
from denspu._parameters import InstanceOf, Number, OneOf, Whole, check_parameters
from denspu._random import Randomness
from denspu._typing import FloatArray, RandomState
from denspu._validation import validate_labels, validate_X
from denspu.augment import PRESETS, ImageAugment, ImagePreset, RowAugment
from denspu.base import Encoder, Rules
from denspu.encoders.contrastive_training import ContrastiveLoss, train_encoder
from denspu.encoders.tabular import TabularEncoder
from denspu.exceptions import DegenerateFitWarning, InvalidParameterError
from denspu.networks.backbones import MLP, resnet18, small_resnet
from denspu.networks.heads import ContrastiveModel, OnSphere, Standardised
from denspu.networks.pixels import PixelScale, pack, unpack
from denspu.training import History, in_fixed_batches

IMAGE_NETWORKS = {"resnet18": resnet18, "small": small_resnet}
NETWORKS = (*IMAGE_NETWORKS, "mlp")

SCALE_ROWS = 2000
"""Rows from which the mean and spread of the pixels are taken."""

COLLAPSE_SAMPLE = 1000
COLLAPSED = 0.98
"""Mean cosine of two random rows above which an embedding says nothing."""


class ContrastiveEncoder(Encoder):
    """Embeddings on the sphere, learned from P ∪ U by telling rows apart.

    Parameters
    ----------
    network : {"auto", "resnet18", "small", "mlp"}, default="auto"
        ``"auto"``: ResNet-18 for images on a GPU, a smaller network for images on a
        CPU, a perceptron for tables.
    epochs : int or "auto", default="auto"
        ``"auto"``: for images as many as make some 14 million views on a GPU, from 30
        to 300, or 160,000 on a CPU, from 3 to 100; 100 for tables.
    max_seconds : float or None, default=None
        Trains fewer epochs where time is short; ``epochs_`` says how many.
    batch_size : int or "auto", default="auto"
        Samples a step, each seen twice. ``"auto"``: up to 1,024, as memory allows.
        Where even the batch asked for does not fit, the step is computed in parts and
        the loss still sees it whole.
    lr : float or "auto", default="auto"
        ``"auto"``: 0.8 for 1,024 samples, in proportion to the batch.
    temperature : float, default=0.2
    weight_decay : float, default=1e-4
    positive_weight : float, default=0.5
        Weight of the attraction among labelled positives; 0 uses no label.
    augment : {"auto", "natural", "grey", "documents", "none"} or ImagePreset
        Random views of images. ``"auto"``: ``"natural"`` for colour, ``"grey"`` else.
    noise, mask : float, default=0.1, 0.3
        Random views of table rows: added noise, share of values from other rows.
    image_size : int or None, default=None
        Images are resized to this; ``None`` keeps their size.
    n_projection : int, default=128
    compile : bool or "auto", default="auto"
        Let torch fuse the network's operations. It takes a while the first time;
        ``"auto"`` does so for a ResNet-18 that a GPU trains for longer than a minute
        or so.
    deterministic : bool, default=True
    checkpoint : str, Path or None, default=None
        Folder in which training is kept every few epochs; found there, it goes on.
    random_state, device, verbose
        As everywhere.

    Attributes
    ----------
    module_ : nn.Module
        The network without its projection head, on the CPU.
    history_ : History
    epochs_, batch_size_, augment_, network_name_
        What ``"auto"`` came to.
    """

    inputs: ClassVar[tuple[str, ...]] = ("image", "table")
    _rules: ClassVar[Rules] = {
        "network": (OneOf("auto", *NETWORKS),),
        "epochs": (OneOf("auto"), Whole(1)),
        "max_seconds": (OneOf(None), Number(0, closed="neither")),
        "batch_size": (OneOf("auto"), Whole(2)),
        "lr": (OneOf("auto"), Number(0, closed="neither")),
        "temperature": (Number(0, closed="neither"),),
        "weight_decay": (Number(0),),
        "positive_weight": (Number(0),),
        "augment": (OneOf("auto", *PRESETS), InstanceOf(ImagePreset)),
        "noise": (Number(0),),
        "mask": (Number(0, 1, "left"),),
        "image_size": (OneOf(None), Whole(8)),
        "n_projection": (Whole(2),),
        "compile": (OneOf("auto", True, False),),
        "deterministic": (OneOf(True, False),),
        "checkpoint": (OneOf(None), InstanceOf(str), InstanceOf(Path)),
    }

    def __init__(
        self,
        *,
        network: Literal["auto", "resnet18", "small", "mlp"] = "auto",
        epochs: int | Literal["auto"] = "auto",
        max_seconds: float | None = None,
        batch_size: int | Literal["auto"] = "auto",
        lr: float | Literal["auto"] = "auto",
        temperature: float = 0.2,
        weight_decay: float = 1e-4,
        positive_weight: float = 0.5,
        augment: str | ImagePreset = "auto",
        noise: float = 0.1,
        mask: float = 0.3,
        image_size: int | None = None,
        n_projection: int = 128,
        compile: bool | Literal["auto"] = "auto",
        deterministic: bool = True,
        checkpoint: str | Path | None = None,
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.network = network
        self.epochs = epochs
        self.max_seconds = max_seconds
        self.batch_size = batch_size
        self.lr = lr
        self.temperature = temperature
        self.weight_decay = weight_decay
        self.positive_weight = positive_weight
        self.augment = augment
        self.noise = noise
        self.mask = mask
        self.image_size = image_size
        self.n_projection = n_projection
        self.compile = compile
        self.deterministic = deterministic
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

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
            model.look_at(self.as_float(data[:: -(-len(data) // SCALE_ROWS)]))
            loss = ContrastiveLoss(
                self.as_float, self.views_, self.temperature, self.positive_weight
            )
            trained = train_encoder(
                self, model, loss, data, positive, randomness, device, deadline
            )
        self.epochs_, self.batch_size_ = trained.epochs, trained.batch_size
        self.history_, self.n_parts_ = trained.history, loss.parts
        self.module_ = model.without_projector()
        self._warn_if_collapsed(data)
        return self

    def _warn_if_collapsed(self, data: Tensor) -> None:
        """Warn when all rows have come to lie at one point of the sphere."""
        sample = data[:: max(1, len(data) // COLLAPSE_SAMPLE)]
        Z = in_fixed_batches(
            OnSphere(self.module_, False),
            sample,
            self.as_float,
            device=resolve_device(self.device),
        )
        self.mean_cosine_ = float((np.linalg.norm(Z.mean(axis=0))) ** 2)
        if self.mean_cosine_ > COLLAPSED:
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
            self.preset_ = self._preset(X)
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

    def _preset(self, images: Any) -> ImagePreset:
        if isinstance(self.augment, ImagePreset):
            return self.augment
        if self.augment != "auto":
            return PRESETS[self.augment]
        return PRESETS["natural" if images.shape[-1] >= 3 else "grey"]

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
        write(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> Self:
        """Return an encoder kept by :meth:`save`, ready to ``transform``."""
        facts, weights = read(Path(folder))
        encoder = cls(device=device)
        for name, value in facts.items():
            setattr(encoder, name, value)
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


def write(encoder: ContrastiveEncoder, folder: Path) -> None:
    """Keep a fitted encoder of images."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {k: v.contiguous() for k, v in encoder.module_.state_dict().items()}
    save_file(state, folder / WEIGHTS)
    facts = {name: getattr(encoder, name) for name in PLAIN_STATE}
    facts |= {"preset_": asdict(encoder.preset_), "scale_": asdict(encoder.scale_)}
    facts["history_"] = encoder.history_.rows
    (folder / CONFIG).write_text(json.dumps(facts), encoding="utf-8")


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the attributes of a kept encoder by name, and its network's weights."""
    if not (folder / CONFIG).is_file():
        raise InvalidParameterError(
            f"folder={str(folder)!r} holds no {CONFIG}: it must be a folder "
            "written by ContrastiveEncoder.save."
        )
    kept = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    facts: dict[str, Any] = {}
    for name in PLAIN_STATE:
        value = kept[name]
        facts[name] = tuple(value) if isinstance(value, list) else value
    facts["preset_"] = ImagePreset(**kept["preset_"])
    facts["views_"] = ImageAugment(facts["preset_"])
    facts["scale_"] = PixelScale(**kept["scale_"])
    facts["history_"] = History(kept["history_"])
    return facts, load_file(folder / WEIGHTS)
