"""The paper's convolutional autoencoder (section 4.1)."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from denspu.networks.init import keras_defaults

FILTERS = (64, 32, 8)
POOLINGS = 2


class ConvAutoencoder(nn.Module):
    """Three convolutions (64, 32, 8), a 2×2 max-pool between them, and the mirror.

    With two poolings a 32×32 image has 8×8×8 = 512 latent values, the paper's R^512.
    The decoder mirrors the encoder with three transposed convolutions, doubles the
    size between them, and ends in a 3×3 convolution with a sigmoid.
    """

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        a, b, c = FILTERS
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, a, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(a, b, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(b, c, 3, padding=1),
            nn.ReLU(),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(c, c, 3, padding=1),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.ConvTranspose2d(c, b, 3, padding=1),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.ConvTranspose2d(b, a, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(a, channels, 3, padding=1),
            nn.Sigmoid(),
        )
        keras_defaults(self)

    def encode(self, x: Tensor) -> Tensor:
        """Return latent vectors: N×C×H×W → N×(8·H/4·W/4)."""
        return cast(Tensor, self.encoder(x)).flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        """Return reconstructions, the shape of ``x``."""
        return cast(Tensor, self.decoder(self.encoder(x)))
