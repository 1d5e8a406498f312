"""Networks by name, what goes around one, and images as networks take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Self, cast

import numpy as np
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
        return self.head(self.body(x)).squeeze(1)


class WithMirror(nn.Module):
    """The mean logit of an image and its mirror."""

    def __init__(self, module: nn.Module, flips: bool) -> None:
        super().__init__()
        self.module = module
        self.flips = flips

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a row."""
        logits = self.module(x)
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
        return self.network((x - self.mean) / self.std)


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
        return self.layers(z)


class ContrastiveModel(nn.Module):
    """Network and projection head."""

    def __init__(self, network: nn.Module, n_projection: int) -> None:
        super().__init__()
        self.body = Standardised(network)
        self.projector = Projector(self.body.n_features, n_projection)

    def forward(self, x: Tensor) -> Tensor:
        """Return projections of rows."""
        return self.projector(self.body(x))


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
        return self.layers(x.flatten(1))


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
        return self.head(self.body(x)).squeeze(1)


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
                nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width)
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
        return self.stages(self.stem(x)).mean((2, 3))


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
        return self.layers(x.contiguous(memory_format=torch.channels_last))


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


# --- from an N×H×W×C array of any dtype to the tensor a network takes -----------------


@dataclass(frozen=True)
class PixelScale:
    """The pixel values that mean black (0) and white (1)."""

    low: float
    high: float

    @classmethod
    def of(cls, images: Any) -> Self:
        """Take the range of an unsigned integer type, else learn it from the data.

        Floats inside [0, 1] are taken as they are.
        """
        if images.dtype == bool:
            return cls(0.0, 1.0)
        if images.dtype in (np.uint8, np.uint16):
            return cls(0.0, float(np.iinfo(images.dtype).max))
        low, high = float(images.min()), float(images.max())
        if low >= 0 and high <= 1:
            return cls(0.0, 1.0)
        return cls(min(0.0, low), high if high > low else low + 1.0)

    def apply(self, images: Any) -> Any:
        """Return float32 values, 0 for ``low`` and 1 for ``high``, clipped."""
        span = self.high - self.low
        values = (images.astype(np.float32) - self.low) / span
        return np.clip(values, 0.0, 1.0).astype(np.float32)


HALF_RANGE = 1 << 15
"""Sixteen-bit pixels are held as signed integers, shifted by this."""


def pack(images: Any, scale: PixelScale, size: int | None = None) -> Tensor:
    """Return N×C×H×W pixels as compact integers: 8 bits kept as 8, others as 16.

    Images are resized to ``size`` where it is given; an alpha channel is dropped.
    """
    if images.ndim == 3:
        images = images[..., None]
    if images.shape[-1] in (2, 4):
        images = images[..., :-1]
    eight = images.dtype == np.uint8
    if size is None or images.shape[1:3] == (size, size):
        if eight:
            pixels = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
            return torch.from_numpy(pixels if pixels.flags.writeable else pixels.copy())
        size = images.shape[1] if images.shape[1] == images.shape[2] else None
    parts = [
        _packed(images[i : i + PACK_ROWS], scale, size, eight)
        for i in range(0, len(images), PACK_ROWS)
    ]
    return torch.cat(parts)


PACK_ROWS = 1024


def _packed(images: Any, scale: PixelScale, size: int | None, eight: bool) -> Tensor:
    values = torch.from_numpy(scale.apply(images)).permute(0, 3, 1, 2)
    if size is not None and values.shape[-2:] != (size, size):
        values = F.interpolate(
            values, size=(size, size), mode="bilinear", antialias=True
        ).clamp(0, 1)
    if eight:
        return (values * 255).round().to(torch.uint8)
    return ((values * 65535).round() - HALF_RANGE).to(torch.int16)


def unpack(pixels: Tensor) -> Tensor:
    """Return packed pixels as float32 in [0, 1]."""
    if pixels.dtype == torch.uint8:
        return pixels.float() / 255
    return (pixels.float() + HALF_RANGE) / 65535


def to_tensor(images: Any, scale: PixelScale, size: int, channels: int = 3) -> Tensor:
    """Return N×C×size×size float32 in [0, 1], resized bilinearly where needed.

    One grey channel is copied to all ``channels``; an alpha channel is dropped.
    """
    values = torch.from_numpy(np.ascontiguousarray(scale.apply(images)))
    values = values.permute(0, 3, 1, 2)  # N×H×W×C → N×C×H×W
    if values.shape[1] in (2, 4):
        values = values[:, :-1]
    if values.shape[1] == 1 and channels > 1:
        values = values.expand(-1, channels, -1, -1)
    if values.shape[1] != channels:
        raise InvalidParameterError(
            f"channels={channels}, but the images have {values.shape[1]} colour "
            f"channels. Pass channels={values.shape[1]} or grey images."
        )
    if values.shape[-2:] != (size, size):
        values = F.interpolate(
            values.contiguous(), size=(size, size), mode="bilinear", align_corners=False
        )
    return values.contiguous()
