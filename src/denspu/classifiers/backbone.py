"""The networks of the PU papers as ordinary classifiers on images."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from denspu._parameters import Number, OneOf, Whole
from denspu._typing import RandomState
from denspu.base import Rules
from denspu.classifiers.network import BALANCE_RULE, STEPS_RULE, NetworkClassifier
from denspu.networks.backbones import build_backbone, suitable
from denspu.networks.pixels import pack, unpack
from denspu.training import TrainingConfig

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
