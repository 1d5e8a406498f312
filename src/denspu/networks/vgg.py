"""VGG-16 with the paper's head (section 4.1)."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from denspu.networks.init import keras_defaults

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
