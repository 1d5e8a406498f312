"""Networks as a graph takes them, and how pixels reach them."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from denspu.classifiers import BackboneClassifier, NetworkClassifier
from denspu.networks.backbones import KernelModel
from denspu.persistence.onnx.parts.basics import Chain
from denspu.persistence.onnx.parts.kernels import Kernel
from denspu.persistence.onnx.parts.rows import Pixels


class KernelAnswer(nn.Module):
    """Gaussian bumps times weights, with distances as ONNX can write them."""

    weights: Tensor

    def __init__(self, model: KernelModel) -> None:
        super().__init__()
        centres, width = model.basis.centres.double(), model.basis.width
        self.kernel = Kernel(centres.numpy(), "rbf", 1 / (2 * width**2))
        self.register_buffer("weights", model.weights.double())

    def forward(self, x: Tensor) -> Tensor:
        """Return one answer a row."""
        return self.kernel(x.flatten(1)) @ self.weights[:-1] + self.weights[-1]


def network(module: nn.Module) -> nn.Module:
    """Return a network in evaluation mode on the CPU."""
    if isinstance(module, KernelModel):
        return KernelAnswer(module)
    return module.eval().cpu()


def pixels(part: Any, dtype: str, size: int | None = None) -> nn.Module:
    """Return how pixels reach a network, as ``networks.pixels.pack`` does it."""
    shape, eight = part.image_shape_, dtype == "uint8"
    resized = size is not None and shape[:2] != (size, size)
    low, high = (0.0, 255.0) if eight and not resized else pixel_range(part)
    levels = 255 if eight else 65535
    return Pixels(
        low,
        high,
        shape,
        size=size,
        antialias=True,
        levels=levels if resized or not eight else None,
    )


def resized_pixels(part: Any, size: int, channels: int) -> nn.Module:
    """Return pixels at one size, in floats that are not rounded."""
    return Pixels(*pixel_range(part), part.image_shape_, size=size, channels=channels)


def pixel_range(part: Any) -> tuple[float, float]:
    """Return the pixel values that mean 0 and 1."""
    return part.scale_.low, part.scale_.high


def image_classifier(classifier: NetworkClassifier, dtype: str) -> nn.Module:
    """Return a module from images to the logits of a registered network."""
    if isinstance(classifier, BackboneClassifier):
        rows = pixels(classifier, dtype)
    else:
        rows = resized_pixels(classifier, classifier.image_size, 3)
    return Chain(rows, network(classifier.module_))
