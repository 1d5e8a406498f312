"""Step 6 of the walk: ordinary supervised classification of P_L against Ñ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor, nn
from torch.nn import functional as F

from denspu._folds import hold_out
from denspu._machine import resolve_device
from denspu._parameters import About, Configured, Number, OneOf, Whole, check_parameters
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu._validation import validate_groups, validate_labels, validate_X
from denspu.base import Rules
from denspu.networks.backbones import BLOCKS, VGG16, build_backbone, suitable
from denspu.networks.pixels import PixelScale, pack, to_tensor, unpack
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
from denspu.training.batches import Batch
from denspu.training.inference import LOOK, looking

BALANCE_RULE = (OneOf("batches", "weights", None),)
STEPS_RULE = (OneOf(None), Whole(1))


class NetworkClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Positive against negative images with a network of one logit.

    A subclass gives ``_build`` and ``_config``. Classes of unequal size are handled as
    ``balance`` says: ``"batches"`` (each batch half positive, the larger class
    sub-sampled afresh every epoch, as the paper does), ``"weights"`` (the weighted
    loss of the paper's future work: each class counts the same in total), or ``None``.
    ``sample_weight`` multiplies the loss of each row. ``max_steps`` bounds the training
    whatever the number of rows: epochs are left out, at least one is taken. With a
    ``validation`` share of each class held out, the epoch with the least loss on it is
    kept, and training ends ``patience`` epochs after it.
    """

    inputs: ClassVar[tuple[str, ...]] = ("image",)
    _rules: ClassVar[Rules] = {}

    batch_size: int
    balance: str | None
    max_steps: int | None = None
    validation: float = 0.0
    patience: int | None = None
    image_size: int
    image_shape_: tuple[int, int, int]
    random_state: RandomState
    device: str
    verbose: int

    @abstractmethod
    def _build(self) -> nn.Module:
        """Return a fresh network for three-channel images, one logit a row."""

    @abstractmethod
    def _config(self) -> TrainingConfig:
        """Return how to train it."""

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
        held = self._held_out(positive, groups, randomness)
        seen = ~held if held.any() else slice(None)  # which copies nothing
        batches = self._batches(images[seen], positive[seen], weight[seen], device)
        hooks = []
        config = self._within_steps(len(batches))
        if held.any():
            kept_out = self._tensors(images[held], positive[held], weight[held], device)
            hooks = [KeepBest(partial(held_out_loss, rows=kept_out))]
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

    def _within_steps(self, steps_per_epoch: int) -> TrainingConfig:
        """Return how to train, with whole epochs left out to keep ``max_steps``."""
        config = self._config()
        if self.max_steps is None:
            return config
        epochs = max(1, self.max_steps // steps_per_epoch)
        return replace(config, epochs=min(config.epochs, epochs))

    def _held_out(
        self, positive: BoolArray, groups: IntArray | None, randomness: Randomness
    ) -> BoolArray:
        """Return which rows training does not see: none where a class has too few."""
        if self.validation == 0:
            return np.zeros_like(positive)
        rng = randomness.numpy("classifier/held out")
        return hold_out(positive, groups, self.validation, rng)

    def _weights(self, positive: BoolArray, images: Any, given: Any) -> FloatArray:
        weight = _check_sample_weight(given, images, dtype=np.float32)
        if self.balance == "weights":
            weight = weight * compute_sample_weight("balanced", positive)
        return weight.astype(np.float32)

    def _batches(
        self,
        images: Any,
        positive: BoolArray,
        weight: FloatArray,
        device: torch.device,
    ) -> Batches:
        tensors = self._tensors(images, positive, weight, device)
        if self.balance == "batches" and 2 * positive.sum() != len(positive):
            return BalancedBatches(
                *tensors, positive=tensors[1] > 0, batch_size=self.batch_size
            )
        return TensorBatches(*tensors, batch_size=self.batch_size)

    def _tensors(
        self,
        images: Any,
        positive: BoolArray,
        weight: FloatArray,
        device: torch.device,
    ) -> Batch:
        tensors = (torch.from_numpy(positive).float(), torch.from_numpy(weight))
        return tuple(t.to(device) for t in (self._to_tensor(images), *tensors))

    def _to_tensor(self, images: Any) -> Tensor:
        return to_tensor(images, self.scale_, self.image_size)

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


NETWORKS = ("cnn", "mlp", "resnet18", "linear")


class BackboneClassifier(NetworkClassifier):
    """Images of any size and their classes, with the network of the PU papers.

    For methods around an ordinary classifier (Rank Pruning, say) that are compared
    with methods which train such a network themselves.

    Parameters
    ----------
    network : {"auto", "cnn", "mlp", "resnet18", "linear"}, default="auto"
        ``"auto"``: convolutions for colour images, a perceptron for grey ones.
    epochs, batch_size, lr, weight_decay
        120, 256, 5e-4 and 5e-3 (coupled L2), Adam with a cosine schedule, as the
        methods are compared.
    max_steps : int or None, default=None
        Epochs are left out so that no more steps are taken.
    balance : {"batches", "weights", None}, default=None
        What to do about classes of unequal size, see :class:`NetworkClassifier`.
    validation : float, default=0.0
        Share of each class held out; the epoch with the least loss on it is kept.
        0 keeps the last one.
    patience : int or None, default=10
        Epochs without a better one after which training ends.
    random_state, device, verbose
        As everywhere.
    """

    _rules: ClassVar[Rules] = {
        "network": (OneOf("auto", *NETWORKS),),
        "epochs": (Whole(1),),
        "batch_size": (Whole(2),),
        "lr": (Number(0, closed="neither"),),
        "weight_decay": (Number(0),),
        "max_steps": STEPS_RULE,
        "balance": BALANCE_RULE,
        "validation": (Number(0, 0.5),),
        "patience": (OneOf(None), Whole(1)),
    }

    def __init__(
        self,
        *,
        network: Literal["auto", "cnn", "mlp", "resnet18", "linear"] = "auto",
        epochs: int = 120,
        batch_size: int = 256,
        lr: float = 5e-4,
        weight_decay: float = 5e-3,
        max_steps: int | None = None,
        balance: Literal["batches", "weights"] | None = None,
        validation: float = 0.0,
        patience: int | None = 10,
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.network = network
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.max_steps = max_steps
        self.balance = balance
        self.validation = validation
        self.patience = patience
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

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
    """VGG-16 on P_L against Ñ (section 4.1 of the paper).

    The defaults are the paper's, and they barely move the network from its start: see
    the measured figures in the documentation before using them on your own data.

    Parameters
    ----------
    epochs, batch_size, lr, weight_decay
        The paper's: 200, 32, 1e-4 and 1e-3 (coupled L2), with plain SGD.
    momentum : float, default=0.0
    patience : int or None, default=10
        Epochs without a 0.1 % better training loss before stopping.
    max_steps : int or None, default=None
        Epochs are left out so that no more steps are taken, 12,600 being the paper's
        at 1,000 positives.
    balance : {"batches", "weights", None}, default="batches"
        What to do about classes of unequal size, see :class:`NetworkClassifier`.
    image_size : int, default=32
        At least 32: five poolings halve it five times.
    precision : {"float32", "bf16", "auto"}, default="float32"
    random_state, device, verbose
        As everywhere.
    """

    _rules: ClassVar[Rules] = {
        "epochs": (Whole(1),),
        "batch_size": (Whole(1),),
        "lr": (Number(0, closed="neither"),),
        "weight_decay": (Number(0),),
        "momentum": (Number(0, 1, "left"),),
        "patience": (OneOf(None), Whole(1)),
        "max_steps": STEPS_RULE,
        "balance": BALANCE_RULE,
        "image_size": (Whole(2 ** len(BLOCKS)),),
        "precision": (OneOf("float32", "bf16", "auto"),),
    }

    def __init__(
        self,
        *,
        epochs: int = 200,
        batch_size: int = 32,
        lr: float = 1e-4,
        weight_decay: float = 1e-3,
        momentum: float = 0.0,
        patience: int | None = 10,
        max_steps: int | None = None,
        balance: Literal["batches", "weights"] | None = "batches",
        image_size: int = 32,
        precision: Literal["float32", "bf16", "auto"] = "float32",
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.patience = patience
        self.max_steps = max_steps
        self.balance = balance
        self.image_size = image_size
        self.precision = precision
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

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
