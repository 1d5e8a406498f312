"""The paper's classifier: VGG-16 with a small head, trained from scratch."""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import nn

from denspu._parameters import Number, OneOf, Whole
from denspu._typing import RandomState
from denspu.base import Rules
from denspu.classifiers.network import BALANCE_RULE, STEPS_RULE, NetworkClassifier
from denspu.networks.vgg import BLOCKS, VGG16
from denspu.training import Plateau, TrainingConfig


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
