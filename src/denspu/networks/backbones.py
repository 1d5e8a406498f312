"""Networks by name, and what goes around one: a scale before it, a logit after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from denspu.exceptions import InvalidParameterError


class OneLogit(nn.Module):
    """A body and one logit."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(cast(int, body.n_features), 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a row."""
        return cast(Tensor, self.head(self.body(x))).squeeze(1)


class WithMirror(nn.Module):
    """The mean logit of an image and its mirror."""

    def __init__(self, module: nn.Module, flips: bool) -> None:
        super().__init__()
        self.module = module
        self.flips = flips

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a row."""
        logits = cast(Tensor, self.module(x))
        if self.flips:
            logits = (logits + self.module(x.flip(3))) / 2
        return logits


class Standardised(nn.Module):
    """A network behind the mean and spread of its input, channel by channel."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.n_features = cast(int, network.n_features)
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("std", torch.ones(()))

    def look_at(self, rows: Tensor) -> None:
        """Learn the scale of images; rows of a table are standardised already."""
        if rows.ndim != 4:
            return
        self.mean = rows.mean((0, 2, 3))[:, None, None]
        self.std = rows.std((0, 2, 3))[:, None, None].clamp_min(1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of rows."""
        return cast(Tensor, self.network((x - self.mean) / self.std))


class Projector(nn.Module):
    """The small head on which a contrastive loss is taken; thrown away afterwards."""

    def __init__(self, n_features: int, n_outputs: int = 128) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features, n_features, bias=False),
            nn.BatchNorm1d(n_features),
            nn.ReLU(),
            nn.Linear(n_features, n_outputs),
        )

    def forward(self, z: Tensor) -> Tensor:
        """Return the projection: N×D → N×outputs."""
        return cast(Tensor, self.layers(z))


class ContrastiveModel(nn.Module):
    """Network and projection head."""

    def __init__(self, network: nn.Module, n_projection: int) -> None:
        super().__init__()
        self.body = Standardised(network)
        self.projector = Projector(self.body.n_features, n_projection)

    def forward(self, x: Tensor) -> Tensor:
        """Return projections of rows."""
        return cast(Tensor, self.projector(self.body(x)))


class OnSphere(nn.Module):
    """Features divided by their length, averaged over an image and its mirror."""

    def __init__(self, body: nn.Module, flips: bool) -> None:
        super().__init__()
        self.body = body
        self.flips = flips

    def forward(self, x: Tensor) -> Tensor:
        """Return embeddings of length 1."""
        z = self.body(x)
        if self.flips:
            z = z + self.body(x.flip(3))
        return F.normalize(z.float(), dim=1)


def keras_defaults(module: nn.Module) -> None:
    """Give layers Keras's start: Glorot uniform weights and zero biases.

    The paper was implemented in Keras and names no other initialisation.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class MLP(nn.Module):
    """Fully connected layers of one width with batch normalisation between them."""

    def __init__(self, n_inputs: int, *, width: int = 256, depth: int = 3) -> None:
        super().__init__()
        self.n_features = width
        layers: list[nn.Module] = []
        for _ in range(depth):
            layers += [
                nn.Linear(n_inputs, width, bias=False),
                nn.BatchNorm1d(width),
                nn.ReLU(),
            ]
            n_inputs = width
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Return one embedding a row, whatever its shape."""
        return cast(Tensor, self.layers(x.flatten(1)))


BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class VGG16(nn.Module):
    """Thirteen 3×3 convolutions in five pooled blocks, then a small head.

    The head is the paper's: global average pooling, 128 units with ReLU, one logit.
    There is no batch normalisation and no dropout, as in the original VGG-16 body.
    """

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for block in BLOCKS:
            for width in block:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.body = nn.Sequential(*layers)
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(channels, 128),
            nn.ReLU(),
            nn.Linear(128, 1),
        )
        keras_defaults(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit an image: N×C×H×W → N."""
        return cast(Tensor, self.head(self.body(x))).squeeze(1)


SMALL_IMAGE = 64
"""Pixels up to which the first layer keeps the resolution (He et al. section 4.2)."""

HALVED = 16
"""Pixels from which the small network's first layer halves the image."""


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions and a way around them."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.around: nn.Module = nn.Identity()
        if stride > 1 or channels != width:
            self.around = nn.Sequential(
                nn.Conv2d(channels, width, 1, stride, bias=False),
                nn.BatchNorm2d(width),
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        inner = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(inner)) + self.around(x))


class ResNet(nn.Module):
    """Residual stages that halve the image and widen, then the mean over its pixels.

    A stage has ``depth`` blocks of its width; the last width is the length of the
    embedding. In images above 64 pixels the stages see a quarter of the side;
    ``halve`` lets the first layer halve smaller ones too: a quarter of the work.
    """

    def __init__(
        self,
        channels: int = 3,
        image_size: int = 32,
        *,
        widths: Sequence[int] = (64, 128, 256, 512),
        depth: int = 2,
        halve: bool = False,
    ) -> None:
        super().__init__()
        if min(widths) < 8:
            raise InvalidParameterError(
                f"widths={tuple(widths)} must be at least 8 each: on some "
                "processors the gradient of narrower shortcuts is written beyond its "
                "memory (oneDNN, strided 1×1 convolutions)."
            )
        self.n_features = widths[-1]
        strided = image_size > SMALL_IMAGE
        self.stem = _stem(channels, widths[0], strided=strided, halve=halve)
        blocks: list[nn.Module] = []
        previous = widths[0]
        for stage, width in enumerate(widths):
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(ResidualBlock(previous, width, stride))
                previous = width
        self.stages = nn.Sequential(*blocks)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(
                    layer.weight, mode="fan_out", nonlinearity="relu"
                )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        """Return one embedding an image: N×C×H×W → N×D."""
        x = x.contiguous(memory_format=torch.channels_last)
        return cast(Tensor, self.stages(self.stem(x))).mean((2, 3))


def _stem(channels: int, width: int, *, strided: bool, halve: bool) -> nn.Module:
    kernel, stride = (7, 2) if strided else (3, 2 if halve else 1)
    layers = [
        nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
    ]
    return nn.Sequential(*layers, *([nn.MaxPool2d(3, 2, 1)] if strided else []))


def resnet18(channels: int, image_size: int) -> ResNet:
    """Return ResNet-18, 512 features, 11.2 million weights."""
    return ResNet(channels, image_size)


def small_resnet(channels: int, image_size: int) -> ResNet:
    """Return a network for a CPU: 128 features, 0.3 million weights.

    About 1/140 of ResNet-18's operations on an image of 32 pixels.
    """
    halve = image_size >= HALVED
    return ResNet(channels, image_size, widths=(16, 32, 64, 128), depth=1, halve=halve)


class Flat(nn.Module):
    """Rows of any shape as vectors, and nothing learned."""

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.n_features = n_inputs

    def forward(self, x: Tensor) -> Tensor:
        """Return one vector a row."""
        return x.flatten(1)


class NormalisedConv(nn.Conv2d):
    """A convolution before a normalisation, which subtracts what a bias would add.

    The bias is kept, for the papers count it, but stays at zero and is not added:
    its sums and their gradients would cost time and change nothing.
    """

    def __init__(self, channels: int, filters: int, kernel: int, stride: int) -> None:
        super().__init__(channels, filters, kernel, stride, kernel // 2)
        nn.init.zeros_(cast(Tensor, self.bias)).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the filters' answers."""
        if x.is_cuda:
            return self.in_eights(x)
        return self._conv_forward(x, self.weight, None)

    def in_eights(self, x: Tensor) -> Tensor:
        """Return the same, with channels and filters made up to eights by zeros.

        Tensor cores take half-precision channels in eights.
        """
        channels, filters = -self.in_channels % 8, -self.out_channels % 8
        if not channels and not filters:
            return self._conv_forward(x, self.weight, None)
        x = F.pad(x, (0, 0, 0, 0, 0, channels))
        weight = F.pad(self.weight, (0, 0, 0, 0, 0, channels, 0, filters))
        return self._conv_forward(x, weight, None)[:, : self.out_channels]


class AllConv(nn.Module):
    """The convolutional network of nnPU: nine convolutions and two wide layers.

    With one logit on top it has 3,015,255 weights on 3×32×32 images. Convolutions
    are normalised, the wide layers are not.
    """

    n_features = 1000

    def __init__(self, channels: int, height: int, width: int) -> None:
        super().__init__()
        plan = (
            *((96, 3, 1), (96, 3, 1), (96, 3, 2)),
            *((192, 3, 1), (192, 3, 1), (192, 3, 2)),
            *((192, 3, 1), (192, 1, 1), (10, 1, 1)),
        )
        layers: list[nn.Module] = []
        for filters, kernel, stride in plan:
            layers += [
                NormalisedConv(channels, filters, kernel, stride),
                nn.BatchNorm2d(filters),
                nn.ReLU(),
            ]
            channels = filters
        cells = -(-height // 4) * -(-width // 4)
        self.layers = nn.Sequential(
            *layers,
            nn.Flatten(),
            nn.Linear(channels * cells, self.n_features),
            nn.ReLU(),
            nn.Linear(self.n_features, self.n_features),
            nn.ReLU(),
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        """Return one embedding an image."""
        return cast(
            Tensor, self.layers(x.contiguous(memory_format=torch.channels_last))
        )


Build = Callable[[Sequence[int]], nn.Module]

VECTOR_BACKBONES: dict[str, Build] = {
    "linear": lambda shape: OneLogit(Flat(prod(shape))),
    "mlp": lambda shape: OneLogit(MLP(prod(shape), width=300, depth=4)),
}
IMAGE_BACKBONES: dict[str, Build] = {
    "cnn": lambda shape: OneLogit(AllConv(*shape)),
    "resnet18": lambda shape: OneLogit(resnet18(shape[0], max(shape[1:]))),
    "vgg16": lambda shape: VGG16(shape[0]),
}
BACKBONES = {**VECTOR_BACKBONES, **IMAGE_BACKBONES}
"""By name, from the shape of a row; ``mlp`` is nnPU's: 507,901 weights on 784."""

SMALLEST = {"vgg16": 32}
"""Side of the smallest image a network can take."""

LARGE_IMAGE = 64


def suitable(shape: Sequence[int]) -> str:
    """Return the network of the papers for rows of a shape (features or C×H×W).

    Colour images get the convolutional network, grey ones the perceptron, as in the
    papers; large images a residual network, whose first layers shrink them.
    """
    if len(shape) == 1:
        return "mlp"
    if max(shape[1:]) > LARGE_IMAGE:
        return "resnet18"
    return "cnn" if shape[0] > 1 else "mlp"


def build_backbone(name: str, shape: Sequence[int]) -> nn.Module:
    """Return a fresh network of one logit, Kaiming-normal weights and zero biases."""
    network = BACKBONES[name](shape)
    if name not in ("resnet18", "vgg16"):  # those have their own start
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
    return network


class GaussianBasis(nn.Module):
    """exp(-|x - c|² / 2s²) for each centre c, and a one for the intercept."""

    centres: Tensor

    def __init__(self, centres: Tensor, width: float) -> None:
        super().__init__()
        self.register_buffer("centres", centres.flatten(1))
        self.width = width
        self.n_features = len(centres) + 1

    def forward(self, x: Tensor) -> Tensor:
        """Return the basis at each row."""
        far = torch.cdist(
            x.flatten(1), self.centres, compute_mode="donot_use_mm_for_euclid_dist"
        )
        bumps = torch.exp(-far.square() / (2 * self.width**2))
        return torch.cat([bumps, torch.ones_like(bumps[:, :1])], dim=1)


class KernelModel(nn.Module):
    """One answer a row: the basis times weights."""

    weights: Tensor

    def __init__(self, basis: GaussianBasis, weights: Tensor) -> None:
        super().__init__()
        self.basis = basis
        self.register_buffer("weights", weights)

    def forward(self, x: Tensor) -> Tensor:
        """Return one answer a row."""
        return self.basis(x) @ self.weights
