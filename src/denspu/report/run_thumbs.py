"""Small pictures for the report, as data URIs."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._typing import IntArray
from denspu.exceptions import MissingDependencyError

SIDE = 128
"""Longer side in pixels of a picture in a gallery."""
MAP_SIDE = 48
"""Side in pixels of a picture on the map."""
SHEET = 40
"""Pictures in a row of the sheet behind the map."""
SAMPLE = 200
"""Images that the brightness of 16-bit and float images is judged by."""
ENDS = 0.5, 99.5
"""Percentiles of the pixels that become black and white."""


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            "Thumbnails need Pillow: pip install 'denspu[image]'"
        ) from error
    return Image


@dataclass(frozen=True)
class Brightness:
    """What is black and what is white, for all images alike."""

    low: float
    high: float

    @classmethod
    def of(cls, *images: Any) -> Brightness:
        """Judge by some images of each array: 8 bits as they are, others by range."""
        arrays = [np.asarray(X) for X in images if len(X)]
        if all(X.dtype == np.uint8 for X in arrays):
            return cls(0.0, 255.0)
        picked = [X[_spread(len(X), SAMPLE)].astype(np.float64) for X in arrays]
        pixels = np.concatenate([p.ravel() for p in picked])
        pixels = pixels[np.isfinite(pixels)]
        if not len(pixels):
            return cls(0.0, 1.0)
        low, high = np.percentile(pixels, ENDS)
        if low == high:
            low, high = float(pixels.min()), float(pixels.max())
        return cls(float(low), float(high))

    def bytes_of(self, image: NDArray[Any]) -> NDArray[np.uint8]:
        """Return one image H×W or H×W×3 in 8 bits."""
        if image.ndim == 3 and image.shape[-1] not in (3, 4):
            image = image[..., 0]
        elif image.ndim == 3:
            image = image[..., :3]
        if image.dtype == np.uint8:
            return np.ascontiguousarray(image)
        scale = (self.high - self.low) or 1.0
        light = np.nan_to_num((image.astype(np.float64) - self.low) / scale)
        return np.round(255 * np.clip(light, 0, 1)).astype(np.uint8)


def _spread(n: int, most: int) -> IntArray:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


@dataclass(frozen=True)
class Picture:
    """A picture ready for an ``img`` element."""

    uri: str
    width: int
    height: int
    tiny: bool
    """So small that its pixels are better shown as squares."""


def picture(image: NDArray[Any], brightness: Brightness) -> Picture:
    """Return one image, made smaller where it is large."""
    made = _pillow().fromarray(brightness.bytes_of(image))
    tiny = max(made.size) < SIDE // 2
    made.thumbnail((SIDE, SIDE))
    uri = _uri(made, lossless=tiny)
    return Picture(uri, made.size[0], made.size[1], tiny)


def sheet(images: Sequence[NDArray[Any]], brightness: Brightness) -> str:
    """Return many small pictures on one sheet, ``SHEET`` in a row."""
    Image = _pillow()
    first = brightness.bytes_of(images[0])
    rows = -(-len(images) // SHEET)
    size = (MAP_SIDE * min(len(images), SHEET), MAP_SIDE * rows)
    page = Image.new("L" if first.ndim == 2 else "RGB", size)
    for i, image in enumerate(images):
        small = Image.fromarray(brightness.bytes_of(image))
        small = small.resize(_inside(small.size), Image.Resampling.BICUBIC)
        at = [
            MAP_SIDE * cell + (MAP_SIDE - side) // 2
            for cell, side in zip((i % SHEET, i // SHEET), small.size, strict=True)
        ]
        page.paste(small, tuple(at))
    return _uri(page, lossless=False)


def _inside(size: tuple[int, int]) -> tuple[int, int]:
    longer = max(size)
    return tuple(max(1, round(MAP_SIDE * s / longer)) for s in size)  # type: ignore


def _uri(image: Any, *, lossless: bool) -> str:
    """Return a data URI: PNG for tiny pictures, else WebP, or JPEG without it."""
    from PIL import features

    kind, options = "png", dict[str, Any](optimize=True)
    if not lossless:
        webp = features.check("webp") and max(image.size) < 16_000
        kind = "webp" if webp else "jpeg"
        options = dict[str, Any](quality=72)
    buffer = BytesIO()
    image.save(buffer, format=kind.upper(), **options)
    return f"data:image/{kind};base64,{b64encode(buffer.getvalue()).decode()}"
