"""Residual networks for images: ResNet-18 and a smaller, faster one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from denspu.exceptions import InvalidParameterError

SMALL_IMAGE = 64
"""Pixels up to which the first layer keeps the resolution (He et al. section 4.2)."""

HALVED = 16
"""Pixels from which the small network's first layer halves the image."""

NARROWEST = 8
"""Channels of a stage at least."""


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

    Parameters
    ----------
    channels : int
    image_size : int
        Above 64 pixels the first layer is strided and pooled, so that the stages see
        a quarter of the side.
    widths : sequence of int
        Channels of each stage, at least 8; the last is the length of the embedding.
    depth : int
        Blocks in a stage.
    halve : bool
        Let the first layer halve small images too: a quarter of the work.
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
        if min(widths) < NARROWEST:
            raise InvalidParameterError(
                f"widths={tuple(widths)} must be at least {NARROWEST} each: on some "
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
        _initialise(self)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        """Return one embedding an image: N×C×H×W → N×D."""
        x = x.contiguous(memory_format=torch.channels_last)
        return cast(Tensor, self.stages(self.stem(x))).mean((2, 3))


def _stem(channels: int, width: int, *, strided: bool, halve: bool) -> nn.Module:
    if not strided:
        stride = 2 if halve else 1
        return nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
    return nn.Sequential(
        nn.Conv2d(channels, width, 7, 2, 3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    )


def _initialise(network: nn.Module) -> None:
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")


def resnet18(channels: int, image_size: int) -> ResNet:
    """Return ResNet-18, 512 features, 11.2 million weights."""
    return ResNet(channels, image_size)


def small_resnet(channels: int, image_size: int) -> ResNet:
    """Return a network for a CPU: 128 features, 0.3 million weights.

    About 1/140 of ResNet-18's operations on an image of 32 pixels.
    """
    halve = image_size >= HALVED
    return ResNet(channels, image_size, widths=(16, 32, 64, 128), depth=1, halve=halve)
