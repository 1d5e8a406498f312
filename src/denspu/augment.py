"""Random views of rows, for a whole batch at once, on the device that holds them.

All geometric changes of an image are one affine map and one interpolation; all colour
changes are one 3×3 matrix and one shift. Numbers are drawn from torch's default
generator of the device, which the caller has seeded for the block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

YIQ = torch.tensor(
    [[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]]
)
"""Luma and two colour axes; hue turns the latter (NTSC 1953)."""

RGB = torch.linalg.inv(YIQ.double()).float()
"""The way back."""


@dataclass(frozen=True)
class ImagePreset:
    """How strong each random change is; 0 switches it off."""

    crop: float = 0.2
    """Smallest part of the area that a crop keeps; 1 keeps all."""
    aspect: float = 4 / 3
    """Largest stretch of a crop's sides; 1 keeps the shape."""
    rotate: float = 0.0
    """Degrees to either side."""
    flip: bool = True
    """Left and right may be exchanged."""
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1
    """Part of a full turn."""
    colour_chance: float = 0.8
    """How often brightness, contrast, saturation and hue change at all."""
    grey_chance: float = 0.2
    erase: float = 0.0
    """Side of an erased square as a part of the image's."""


GREY = ImagePreset(flip=False, saturation=0, hue=0, grey_chance=0)

PRESETS = {
    "natural": ImagePreset(),
    "grey": GREY,
    "documents": replace(GREY, crop=0.6, aspect=1.1, rotate=5),
    "none": replace(GREY, crop=1, aspect=1, brightness=0, contrast=0),
}
"""``natural``: photographs. ``grey``: no flips and no colour, for medical images and
other grey pictures. ``documents``: mild shifts, turns and contrast. ``none``."""


class ImageAugment:
    """Draw one random view of each image of a batch."""

    def __init__(self, preset: ImagePreset) -> None:
        self.preset = preset
        self._axes: dict[torch.device, tuple[Tensor, Tensor]] = {}

    def __getstate__(self) -> dict[str, ImagePreset]:
        """Leave what lies on a device behind."""
        return {"preset": self.preset}

    def __setstate__(self, state: dict[str, ImagePreset]) -> None:
        self.preset = state["preset"]
        self._axes = {}

    def milder(self, *, crop: float, erase: float) -> ImageAugment:
        """Return the same changes with larger crops and a hole, for classification."""
        crop = max(crop, self.preset.crop)
        return ImageAugment(replace(self.preset, crop=crop, erase=erase))

    def __call__(self, images: Tensor) -> Tensor:
        """Return views of N×C×H×W images with values in [0, 1]."""
        preset = self.preset
        if preset.crop < 1 or preset.aspect > 1 or preset.rotate > 0 or preset.flip:
            images = _resample(images, preset)
        colour = (preset.brightness, preset.contrast, preset.saturation, preset.hue)
        if any(colour) or preset.grey_chance > 0:
            images = _recolour(images, preset, self._colour_axes(images.device))
        return _erased(images, preset.erase) if preset.erase else images

    def _colour_axes(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the two colour matrices, sent to the device once."""
        if device not in self._axes:
            self._axes[device] = YIQ.to(device), RGB.to(device)
        return self._axes[device]


def _uniform(images: Tensor, low: float, high: float) -> Tensor:
    return torch.empty(len(images), device=images.device).uniform_(low, high)


def _resample(images: Tensor, preset: ImagePreset) -> Tensor:
    """Crop, stretch, turn and flip by one affine map."""
    area = _uniform(images, preset.crop, 1)
    stretch = math.log(preset.aspect)
    ratio = torch.exp(_uniform(images, -stretch, stretch))
    width = (area * ratio).sqrt().clamp(max=1)
    height = (area / ratio).sqrt().clamp(max=1)
    x = _uniform(images, -1, 1) * (1 - width)
    y = _uniform(images, -1, 1) * (1 - height)
    turn = _uniform(images, -1, 1) * math.radians(preset.rotate)
    sign = torch.ones_like(x)
    if preset.flip:
        sign = torch.where(_uniform(images, 0, 1) < 0.5, -sign, sign)
    cos, sin = turn.cos(), turn.sin()
    rows = (cos * width * sign, -sin * height, x, sin * width * sign, cos * height, y)
    affine = torch.stack(rows, dim=1).view(-1, 2, 3)
    grid = F.affine_grid(affine, list(images.shape), align_corners=False)
    return F.grid_sample(
        images, grid, mode="bilinear", padding_mode="reflection", align_corners=False
    )


def _recolour(
    images: Tensor, preset: ImagePreset, axes: tuple[Tensor, Tensor]
) -> Tensor:
    """Change brightness, contrast, saturation and hue by one linear map an image."""
    chosen = _uniform(images, 0, 1) < preset.colour_chance
    brightness = 1 + _uniform(images, -1, 1) * preset.brightness * chosen
    contrast = 1 + _uniform(images, -1, 1) * preset.contrast * chosen
    mean = images.mean((1, 2, 3))
    shift = (1 - contrast) * brightness * mean
    gain = brightness * contrast
    if images.shape[1] != 3:
        changed = images * gain[:, None, None, None] + shift[:, None, None, None]
        return changed.clamp(0, 1)
    colour = gain[:, None, None] * _colour_matrix(images, preset, chosen, axes)
    flat = torch.baddbmm(shift[:, None, None], colour, images.flatten(2))
    return flat.view(images.shape).clamp(0, 1)


def _colour_matrix(
    images: Tensor, preset: ImagePreset, chosen: Tensor, axes: tuple[Tensor, Tensor]
) -> Tensor:
    """Return N 3×3 matrices of saturation, hue and greying; white stays white."""
    to_yiq, to_rgb = axes
    saturation = 1 + _uniform(images, -1, 1) * preset.saturation * chosen
    turn = _uniform(images, -1, 1) * preset.hue * 2 * math.pi * chosen
    grey = _uniform(images, 0, 1) < preset.grey_chance
    saturation = torch.where(grey, torch.zeros_like(saturation), saturation)
    cos, sin = saturation * turn.cos(), saturation * turn.sin()
    one, zero = torch.ones_like(cos), torch.zeros_like(cos)
    rows = (one, zero, zero, zero, cos, -sin, zero, sin, cos)
    in_yiq = torch.stack(rows, dim=1).view(-1, 3, 3)
    return to_rgb @ in_yiq @ to_yiq


def _erased(images: Tensor, side: float) -> Tensor:
    """Put the mean of the image into a random square."""
    height, width = images.shape[-2:]
    reach_y, reach_x = side * height / 2, side * width / 2
    y = _uniform(images, 0, height)[:, None] - torch.arange(
        height, device=images.device
    )
    x = _uniform(images, 0, width)[:, None] - torch.arange(width, device=images.device)
    hole = (y.abs() < reach_y)[:, None, :, None] & (x.abs() < reach_x)[:, None, None, :]
    return torch.where(hole, images.mean((2, 3), keepdim=True), images)


@dataclass(frozen=True)
class RowAugment:
    """Draw one random view of each row of a batch."""

    noise: float = 0.1
    """Standard deviation of Gaussian noise, for columns of variance 1."""
    mask: float = 0.3
    """Share of values that are taken from another row of the batch, so that each
    column keeps its distribution (Bahri et al. 2022, SCARF)."""

    def __call__(self, rows: Tensor) -> Tensor:
        """Return views of N×F rows."""
        if self.mask:
            source = torch.randint(len(rows), rows.shape, device=rows.device)
            others = rows.gather(0, source)
            swap = torch.rand(rows.shape, device=rows.device) < self.mask
            rows = torch.where(swap, others, rows)
        if self.noise:
            rows = rows + self.noise * torch.randn_like(rows)
        return rows
