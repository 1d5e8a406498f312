"""The networks PU papers are compared on, by name: any rows in, one logit out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from denspu.networks.heads import OneLogit
from denspu.networks.mlp import MLP
from denspu.networks.resnet import resnet18
from denspu.networks.vgg import VGG16

MLP_WIDTH, MLP_DEPTH = 300, 4
"""The perceptron of nnPU: 507,901 weights on 784 inputs."""


class Flat(nn.Module):
    """Rows of any shape as vectors, and nothing learned."""

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.n_features = n_inputs

    def forward(self, x: Tensor) -> Tensor:
        """Return one vector a row."""
        return x.flatten(1)


class FlatMLP(MLP):
    """The perceptron on rows of any shape."""

    def forward(self, x: Tensor) -> Tensor:
        """Return one embedding a row."""
        return super().forward(x.flatten(1))


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


def _linear(shape: Sequence[int]) -> nn.Module:
    return OneLogit(Flat(_size(shape)))


def _mlp(shape: Sequence[int]) -> nn.Module:
    return OneLogit(FlatMLP(_size(shape), width=MLP_WIDTH, depth=MLP_DEPTH))


def _cnn(shape: Sequence[int]) -> nn.Module:
    return OneLogit(AllConv(*shape))


def _resnet18(shape: Sequence[int]) -> nn.Module:
    return OneLogit(resnet18(shape[0], max(shape[1:])))


def _vgg16(shape: Sequence[int]) -> nn.Module:
    return VGG16(shape[0])


VECTOR_BACKBONES: dict[str, Callable[[Sequence[int]], nn.Module]] = {
    "linear": _linear,
    "mlp": _mlp,
}
IMAGE_BACKBONES: dict[str, Callable[[Sequence[int]], nn.Module]] = {
    "cnn": _cnn,
    "resnet18": _resnet18,
    "vgg16": _vgg16,
}
BACKBONES = {**VECTOR_BACKBONES, **IMAGE_BACKBONES}

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


def _size(shape: Sequence[int]) -> int:
    size = 1
    for side in shape:
        size *= side
    return size
