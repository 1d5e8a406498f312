"""From an N×H×W×C array of any dtype to the tensor a network takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from denspu.exceptions import InvalidParameterError


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
