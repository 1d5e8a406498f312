"""Step 6 of the walk: ordinary supervised classification of P_L against Ñ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import torch
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor, nn
from torch.nn import functional as F

from denspu._folds import hold_out
from denspu._machine import resolve_device
from denspu._parameters import (
    About,
    Configured,
    Number,
    OneOf,
    Whole,
    check_parameters,
    setting,
)
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu._validation import validate_groups, validate_labels, validate_X
from denspu.networks.backbones import (
    BLOCKS,
    VGG16,
    PixelScale,
    build_backbone,
    pack,
    suitable,
    to_tensor,
    unpack,
)
from denspu.training import (
    BalancedBatches,
    Batches,
    KeepBest,
    Plateau,
    TensorBatches,
    TrainingConfig,
    in_fixed_batches,
    train,
)
from denspu.training.loop import LOOK, Batch, looking


class NetworkClassifier(ClassifierMixin, Configured, ABC):
    """Positive against negative images with a network of one logit.

    A subclass gives ``_build``, ``_config`` and ``_to_tensor``. ``sample_weight``
    multiplies the loss of each row.
    """

    about = About(kind="classifier", deep=True, inputs=("image",))

    epochs: int = setting(120, Whole(1))
    batch_size: int = setting(256, Whole(2))
    lr: float = setting(5e-4, Number(0, closed="neither"))
    weight_decay: float = setting(5e-3, Number(0), doc="Coupled L2.")
    max_steps: int | None = setting(
        None,
        OneOf(None),
        Whole(1),
        doc="Whole epochs, all but one, are left out to take no more steps than this.",
    )
    balance: Literal["batches", "weights"] | None = setting(
        None,
        OneOf("batches", "weights", None),
        doc='``"batches"``: as many rows of each class in every batch, as in Dens-PU;\n'
        '``"weights"``: each class counts the same in total.',
    )
    validation: float = setting(
        0.0,
        Number(0, 0.5),
        doc="Share of each class held out to choose the epoch; 0 keeps the last one.",
    )
    patience: int | None = setting(
        10,
        OneOf(None),
        Whole(1),
        doc="Epochs without a better one after which training ends.",
    )
    random_state: RandomState = setting(None)
    device: str = setting("auto")
    verbose: int = setting(0)

    @abstractmethod
    def _build(self) -> nn.Module:
        """Return a fresh network, one logit a row."""

    @abstractmethod
    def _config(self) -> TrainingConfig:
        """Return how to train it."""

    @abstractmethod
    def _to_tensor(self, images: Any) -> Tensor:
        """Return images as the network takes them."""

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
        """Train on images with labels 1 (positive) and 0 (negative).

        No group is divided by ``validation``.
        """
        check_parameters(self)
        images = validate_X(self, X, reset=True, kind="image")
        positive = validate_labels(y, len(images))
        weight = self._weights(positive, images, sample_weight)
        self.classes_ = np.array([0, 1])
        self.scale_ = PixelScale.of(images)
        device = resolve_device(self.device)
        randomness = Randomness(self.random_state)
        groups = validate_groups(groups, len(images))
        held = np.zeros_like(positive)
        if self.validation:  # none where a class has too few
            rng = randomness.numpy("classifier/held out")
            held = hold_out(positive, groups, self.validation, rng)

        def tensors(rows: Any) -> Batch:
            labels, counts = positive[rows], torch.from_numpy(weight[rows])
            parts = self._to_tensor(images[rows]), torch.from_numpy(labels).float()
            return tuple(part.to(device) for part in (*parts, counts))

        seen = tensors(~held if held.any() else slice(None))  # which copies nothing
        batches: Batches = TensorBatches(*seen, batch_size=self.batch_size)
        ones = seen[1] > 0
        if self.balance == "batches" and 2 * int(ones.sum()) != len(ones):
            batches = BalancedBatches(*seen, positive=ones, batch_size=self.batch_size)
        hooks = []
        config = self._config()
        if self.max_steps is not None:  # whole epochs are left out
            epochs = max(1, self.max_steps // len(batches))
            config = replace(config, epochs=min(config.epochs, epochs))
        if held.any():
            hooks = [KeepBest(partial(held_out_loss, rows=tensors(held)))]
            config = replace(config, plateau=KeepBest.patience(self.patience))
        with randomness.torch_scope("weights", device):
            self.module_ = self._build()
            self.history_ = train(
                self.module_,
                batches,
                weighted_logistic_loss,
                config,
                device=device,
                generator=randomness.generator("batches"),
                hooks=hooks,
                verbose=self.verbose,
                name="classifier",
            )
        return self

    def _weights(self, positive: BoolArray, images: Any, given: Any) -> FloatArray:
        weight = _check_sample_weight(given, images, dtype=np.float32)
        if self.balance == "weights":
            weight = weight * compute_sample_weight("balanced", positive)
        return weight.astype(np.float32)

    def decision_function(self, X: Any) -> FloatArray:
        """Return logits, higher = more positive."""
        check_is_fitted(self)
        images = validate_X(self, X, reset=False, kind="image")
        device = resolve_device(self.device)
        return in_fixed_batches(self.module_, images, self._to_tensor, device=device)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return columns P(negative), P(positive)."""
        positive = expit(self.decision_function(X).astype(np.float64))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Any) -> IntArray:
        """Return 1 for positive and 0 for negative."""
        return (self.decision_function(X) > 0).astype(np.int64)

    def facts(self) -> dict[str, Any]:
        """Return the training's length, end and final loss."""
        return {
            "epochs": len(self.history_),
            "stopped": self.history_.stopped,
            "loss": self.history_.last["loss"],
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def weighted_logistic_loss(module: nn.Module, batch: Batch) -> Tensor:
    """Return the weighted mean of the binary cross-entropy."""
    pixels, target, weight = batch
    logits = module(pixels).float()
    losses = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return (weight * losses).mean()


def held_out_loss(module: nn.Module, rows: Batch) -> float:
    """Return the loss of rows that training does not see."""
    parts = zip(*(tensor.split(LOOK) for tensor in rows), strict=True)
    with looking(module):
        sums = [weighted_logistic_loss(module, part) * len(part[0]) for part in parts]
    return float(sum(sums)) / len(rows[0])


class BackboneClassifier(NetworkClassifier):
    """The networks PU methods are compared on, as a classifier of images.

    For methods around an ordinary classifier (Rank Pruning, say) that are compared
    with methods which train such a network themselves: Adam with a cosine schedule.
    Images may have any size.
    """

    about = About(key="backbone", paper="Kiryo et al. 2017, nnPU")

    network: Literal["auto", "cnn", "mlp", "resnet18", "linear"] = setting(
        "auto",
        OneOf("auto", "cnn", "mlp", "resnet18", "linear"),
        doc='``"auto"``: convolutions for colour images, a perceptron for grey ones.',
    )

    def _build(self) -> nn.Module:
        height, width, channels = self.image_shape_
        shape = (channels - (channels in (2, 4)), height, width)  # alpha is dropped
        name = suitable(shape) if self.network == "auto" else self.network
        return build_backbone(name, shape)

    def _config(self) -> TrainingConfig:
        return TrainingConfig(
            epochs=self.epochs,
            optimizer="adam",
            lr=self.lr,
            weight_decay=self.weight_decay,
            schedule="cosine",
            capture=True,
        )

    def _to_tensor(self, images: Any) -> Tensor:
        return unpack(pack(images, self.scale_))


class VGG16Classifier(NetworkClassifier):
    """VGG-16 with the paper's head, from scratch (section 4.1).

    The defaults are the paper's, and they barely move the network from its start: see
    the measured figures in the documentation before using them on your own data.
    """

    about = About(key="vgg16", paper="Simonyan and Zisserman 2015, VGG")

    epochs: int = setting(200, Whole(1))
    batch_size: int = setting(32, Whole(1))
    lr: float = setting(1e-4, Number(0, closed="neither"), doc="Of plain SGD.")
    weight_decay: float = setting(1e-3, Number(0), doc="Coupled L2.")
    momentum: float = setting(0.0, Number(0, 1, "left"))
    balance: Literal["batches", "weights"] | None = setting(
        "batches",
        OneOf("batches", "weights", None),
        doc="What to do about classes of unequal size, see BackboneClassifier.",
    )
    patience: int | None = setting(
        10,
        OneOf(None),
        Whole(1),
        doc="Epochs without a 0.1 % better training loss before stopping.",
    )
    image_size: int = setting(
        32,
        Whole(2 ** len(BLOCKS)),
        doc="Images are resized to this; five poolings halve it five times.",
    )
    precision: Literal["float32", "bf16", "auto"] = setting(
        "float32", OneOf("float32", "bf16", "auto")
    )

    def _build(self) -> nn.Module:
        return VGG16()

    def _config(self) -> TrainingConfig:
        return TrainingConfig(
            epochs=self.epochs,
            optimizer="sgd",
            lr=self.lr,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            nesterov=self.momentum > 0,
            plateau=Plateau(self.patience) if self.patience else None,
            precision=self.precision,
            capture=True,  # batches of 32: launching kernels takes most of the time
        )

    def _to_tensor(self, images: Any) -> Tensor:
        return to_tensor(images, self.scale_, self.image_size)


_ON_ROWS = About(kind="classifier", inputs=("embedding",)).completed(Configured.about)
FROM_SKLEARN: tuple[tuple[str, str, About, dict[str, Any]], ...] = (
    (
        "sklearn.linear_model:LogisticRegression",
        "Logistic regression on the embedding",
        replace(_ON_ROWS, key="logistic"),
        {"max_iter": 1000},
    ),
    (
        "sklearn.ensemble:HistGradientBoostingClassifier",
        "Boosted trees on the embedding",
        replace(_ON_ROWS, key="gradient_boosting"),
        {},
    ),
    (
        "sklearn.svm:SVC",
        "Kernel machine on the embedding, for up to some 10,000 rows",
        replace(
            _ON_ROWS, key="svm", paper="Cortes and Vapnik 1995, Support-vector networks"
        ),
        {},
    ),
)
"""Classifiers of scikit-learn with a key: target, summary, facts, defaults."""
