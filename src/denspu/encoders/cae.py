"""The paper's encoder: a convolutional autoencoder trained on the positives."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn import functional as F

from denspu._machine import resolve_device
from denspu._parameters import About, Number, OneOf, Whole, check_parameters, setting
from denspu._random import Randomness
from denspu._typing import FloatArray, RandomState
from denspu._validation import validate_labels, validate_X
from denspu.base import Encoder
from denspu.networks.backbones import PixelScale, keras_defaults, to_tensor
from denspu.training import TensorBatches, TrainingConfig, in_fixed_batches, train
from denspu.training.loop import Batch

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
        return self.encoder(x).flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        """Return reconstructions, the shape of ``x``."""
        return self.decoder(self.encoder(x))


class CAEEncoder(Encoder):
    """Convolutional autoencoder trained on the positives, 512 values.

    The latent space of section 3.2 of the paper, trained with Adam on the mean squared
    error.
    """

    about = About(
        key="cae", paper="Sevetlidis et al. 2023, Dens-PU", deep=True, inputs=("image",)
    )

    fit_on: Literal["positive", "all"] = setting(
        "positive",
        OneOf("positive", "all"),
        doc="Which rows it learns from; the paper takes labelled positives alone.",
    )
    epochs: int = setting(50, Whole(1))
    batch_size: int = setting(64, Whole(1))
    lr: float = setting(1e-4, Number(0, closed="neither"))
    weight_decay: float = setting(1e-3, Number(0), doc="Coupled L2.")
    image_size: int = setting(
        32,
        Whole(2**POOLINGS, multiple_of=2**POOLINGS),
        doc="Images are resized to this; 32 gives 512 latent values.",
    )
    channels: int = setting(
        3, Whole(1, 3), doc="A grey channel is copied to this many."
    )
    random_state: RandomState = setting(None)
    device: str = setting("auto")
    verbose: int = setting(0)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the autoencoder; ``y`` are PU labels (all rows count if missing)."""
        check_parameters(self)
        images = validate_X(self, X, reset=True, kind="image")
        self.scale_ = PixelScale.of(images)  # of all: U may be brighter than P
        if y is not None and self.fit_on == "positive":
            images = images[validate_labels(y, len(images))]
        self.n_trained_on_ = len(images)
        device = resolve_device(self.device)
        randomness = Randomness(self.random_state)
        config = TrainingConfig(
            epochs=self.epochs,
            optimizer="adam",
            lr=self.lr,
            weight_decay=self.weight_decay,
            precision="float32",
        )
        with randomness.torch_scope("weights", device):
            self.module_ = ConvAutoencoder(self.channels)
            pixels = self._to_tensor(images).to(device)
            self.history_ = train(
                self.module_,
                TensorBatches(pixels, batch_size=self.batch_size),
                reconstruction_loss,
                config,
                device=device,
                generator=randomness.generator("batches"),
                verbose=self.verbose,
                name="autoencoder",
            )
        return self

    def _to_tensor(self, images: Any) -> Tensor:
        return to_tensor(images, self.scale_, self.image_size, self.channels)

    def _apply(self, module: nn.Module, X: Any) -> FloatArray:
        check_is_fitted(self)
        images = validate_X(self, X, reset=False, kind="image")
        device = resolve_device(self.device)
        return in_fixed_batches(module, images, self._to_tensor, device=device)

    def transform(self, X: Any) -> FloatArray:
        """Return the latent vectors of images."""
        check_is_fitted(self)
        return self._apply(nn.Sequential(self.module_.encoder, nn.Flatten()), X)

    def reconstruct(self, X: Any) -> FloatArray:
        """Return the images as the autoencoder redraws them, N×C×size×size."""
        check_is_fitted(self)
        return self._apply(self.module_, X)

    def psnr(self, X: Any) -> FloatArray:
        """Return the peak signal-to-noise ratio of each reconstruction, in dB."""
        redrawn = self.reconstruct(X)
        images = validate_X(self, X, reset=False, kind="image")
        error = np.empty(len(images), np.float32)
        for start in range(0, len(images), 256):
            rows = slice(start, start + 256)
            difference = self._to_tensor(images[rows]).numpy() - redrawn[rows]
            error[rows] = (difference**2).reshape(len(difference), -1).mean(1)
        return -10 * np.log10(np.maximum(error, 1e-12))

    def facts(self) -> dict[str, Any]:
        """Return the training's size and final loss."""
        return {
            "trained_on": self.n_trained_on_,
            "epochs": len(self.history_),
            "loss": self.history_.last["loss"],
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def reconstruction_loss(module: nn.Module, batch: Batch) -> Tensor:
    """Return the mean squared error of the reconstruction."""
    (pixels,) = batch
    return F.mse_loss(module(pixels), pixels)
