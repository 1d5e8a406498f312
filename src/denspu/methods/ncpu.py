"""NcPU: rows of one class drawn together, and labels of U that follow slowly.

NcPU, ICLR 2026: non-contrastive representations for PU learning without a prior.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from denspu._parameters import About, Number, OneOf, Whole, setting
from denspu.augment import PRESETS, ImageAugment, RowAugment
from denspu.exceptions import InvalidParameterError
from denspu.losses import class_alignment
from denspu.methods._deep import Auto, DeepPU, Task, follow, frozen
from denspu.methods._evidence import DECAY
from denspu.training import Hook, TrainState
from denspu.training.loop import Batch

Views = Callable[[Tensor], Tensor]


class NcPU(DeepPU):
    """Rows of a class drawn together; labels of U follow prototypes slowly.

    Learn a space in which classes are tight, and let it label U little by little.

    One network has a classifier and a projection; a second follows it slowly. The
    classifier sees mild views, P as positive and U with its labels; two strong views
    of a row, and rows that the classifier puts into one class, are drawn together.
    U starts as negative. After the warm-up its labels move towards the class whose
    prototype is nearer. No class prior is used.

    Attributes
    ----------
    labels_ : array
        Soft labels of the training rows in the end.
    """

    about = About(key="ncpu", paper="NcPU, ICLR 2026")

    warmup: float = setting(0.3, Number(0, 1), doc="Share of epochs with U negative.")
    representation_weight: float = setting(50.0, Number(0), doc="Of its loss.")
    class_level: bool = setting(
        True, OneOf(True, False), doc="Draw whole classes together, not only views."
    )
    label_decay: float = setting(0.9, Number(0, 1), doc="How slowly labels follow.")
    prototype_decay: float = setting(0.99, DECAY, doc="How slowly prototypes follow.")
    target_decay: float = setting(
        0.99, Number(0, 1), doc="How slowly the second network follows."
    )
    confidence: float | None = setting(
        0.9,
        OneOf(None),
        Number(0.5, 1),
        doc="A row of U that is negative with this probability is taught as negative.",
    )
    n_projection: int = setting(64, Whole(2), doc="Length of projections.")
    augment: Literal["auto", "natural", "grey", "documents", "none"] = setting(
        "auto",
        OneOf("auto", *PRESETS),
        doc='Views of images. ``"auto"``: natural for colour, else documents.',
    )
    noise: float = setting(
        0.2, Number(0), doc="Noise on strong views of other rows; mild ones: a quarter."
    )
    mask: float = setting(
        0.2, Number(0, 1), doc="Share of values from other rows in strong views."
    )
    epochs: int | Auto = setting(120)
    batch_size: int | Auto = setting(256)
    lr: float | Auto = setting(5e-4)
    weight_decay: float = setting(1e-3)

    def _learn(self, task: Task) -> None:
        network = task.network()
        with task.randomness.torch_scope("projection", task.device):
            pair = OnlineAndTarget(network, self.n_projection, len(task.rows))
        pair.labels[torch.from_numpy(task.positive)] = 1.0
        pair.pinned[torch.from_numpy(task.known_negative)] = 1.0
        self.history_ = task.train(
            pair, NcLoss(self, task), "ncpu", batches=task.batches(pool=task.unlabeled)
        )
        self.module_ = pair.online.network
        self.labels_ = pair.labels.numpy().astype(float)

    def _views(self, rows: Tensor) -> tuple[Views, Views]:
        """Return how mild and how strong views are drawn."""
        if rows.ndim != 4:
            return RowAugment(self.noise / 4, 0.0), RowAugment(self.noise, self.mask)
        colour = rows.shape[1] == 3
        name = "natural" if colour else "documents"
        strong = ImageAugment(PRESETS[name if self.augment == "auto" else self.augment])
        return strong.milder(crop=0.8, erase=0.0), strong


class Projected(nn.Module):
    """A network of one logit, and a projection of what its last layer sees."""

    def __init__(self, network: nn.Module, n_projection: int) -> None:
        super().__init__()
        self.network = network
        n_features = _last_layer(network).in_features
        self.projector = _two_layers(n_features, n_projection)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits and projections."""
        seen: list[Tensor] = []
        handle = _last_layer(self.network).register_forward_pre_hook(
            lambda _, inputs: seen.append(inputs[0])
        )
        try:
            logits = self.network(x)
        finally:
            handle.remove()
        return logits.float(), self.projector(seen[-1]).float()


def _last_layer(network: nn.Module) -> nn.Linear:
    linear = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    if not linear:
        raise InvalidParameterError(
            f"network={type(network).__name__} has no nn.Linear layer, and what the "
            "last one sees is the representation. Pass a module that ends in one, or "
            "network='auto'."
        )
    return linear[-1]


def _two_layers(n_inputs: int, n_outputs: int) -> nn.Sequential:
    width = max(n_inputs, n_outputs)
    return nn.Sequential(
        nn.Linear(n_inputs, width, bias=False),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Linear(width, n_outputs),
    )


class OnlineAndTarget(nn.Module):
    """The network that learns, the one that follows, prototypes and labels of rows."""

    def __init__(self, network: nn.Module, n_projection: int, n_rows: int) -> None:
        super().__init__()
        self.online = Projected(network, n_projection)
        self.predictor = _two_layers(n_projection, n_projection)
        self.target = frozen(copy.deepcopy(self.online))
        self.prototypes = nn.Buffer(torch.zeros(2, n_projection))
        self.labels = nn.Buffer(torch.zeros(n_rows))
        self.pinned = nn.Buffer(torch.zeros(n_rows))
        self.labelling = nn.Buffer(torch.zeros(()))

    def move_prototypes(self, z: Tensor, positive: Tensor, decay: float) -> None:
        """Move each prototype towards the mean direction of its class."""
        for number, members in enumerate((1 - positive, positive)):
            mean = (members[:, None] * z).sum(0) / members.sum().clamp_min(1.0)
            moved = decay * self.prototypes[number] + (1 - decay) * mean
            self.prototypes[number] = torch.where(
                members.sum() > 0, F.normalize(moved, dim=0), self.prototypes[number]
            )

    def move_labels(self, rows: Tensor, z: Tensor, decay: float) -> Tensor:
        """Move labels towards the nearer prototype, and return them."""
        nearer = (z @ self.prototypes[1] > z @ self.prototypes[0]).float()
        held = self.labels[rows]
        step = (1 - decay) * self.labelling * (1 - self.pinned[rows])
        self.labels[rows] = held + step * (nearer - held)
        return self.labels[rows]


class NcLoss(Hook):
    """Cross-entropy of mild views and the representation loss of strong ones."""

    def __init__(self, method: NcPU, task: Task) -> None:
        self.method, self.as_float = method, task.as_float
        self.weak, self.strong = method._views(task.rows)

    def on_epoch_start(self, state: TrainState) -> None:
        """Let labels move once the warm-up is over."""
        if state.epoch >= self.method.warmup * state.config.epochs:
            cast(OnlineAndTarget, state.module).labelling.fill_(1.0)

    def on_step_end(self, state: TrainState) -> None:
        """Let the second network follow."""
        pair = cast(OnlineAndTarget, state.module)
        follow(pair.target, pair.online, self.method.target_decay)

    def __call__(self, module: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Return the loss of one batch and its terms."""
        pair = cast(OnlineAndTarget, module)
        positive, pool, _, numbers = batch
        n = len(positive)
        with torch.no_grad():
            x = self.as_float(torch.cat([positive, pool]))
            strong = torch.cat([self.strong(x), self.strong(x)])
            projected = pair.target(strong)[1]
        predicted = pair.predictor(pair.online(strong)[1]).float()
        logits, z = pair.online(self.weak(x))
        with torch.autocast(x.device.type, enabled=False):  # cosines near 1 need it
            chance, label = self._labels(pair, logits.detach(), z.detach(), numbers)
            alignment = self._alignment(predicted, projected, chance)
            entropy = F.softplus(-logits[:n]).mean()
            entropy = entropy + F.binary_cross_entropy_with_logits(logits[n:], label)
        return {
            "loss": entropy + self.method.representation_weight * alignment,
            "entropy": entropy,
            "alignment": alignment,
            "positive": label.mean(),
        }

    def _labels(
        self, pair: OnlineAndTarget, logits: Tensor, z: Tensor, numbers: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return chances of being positive, and labels of U for this step."""
        n = len(logits) - len(numbers)
        chance = torch.sigmoid(logits)
        chance = torch.cat([torch.ones_like(chance[:n]), chance[n:]])
        z = F.normalize(z, dim=1)
        pair.move_prototypes(z, (chance > 0.5).float(), self.method.prototype_decay)
        label = pair.move_labels(numbers, z[n:], self.method.label_decay)
        if self.method.confidence is None:
            return chance, label
        sure = chance[n:] <= 1 - self.method.confidence
        return chance, torch.where(sure, torch.zeros_like(label), label)

    def _alignment(
        self, predicted: Tensor, projected: Tensor, chance: Tensor
    ) -> Tensor:
        """Return the representation loss, each view drawn to the other."""
        weight = float(self.method.class_level)
        pairs = zip(predicted.chunk(2), reversed(projected.chunk(2)), strict=True)
        one, two = (
            class_alignment(own, other, chance, class_weight=weight)
            for own, other in pairs
        )
        return (one + two) / 2
