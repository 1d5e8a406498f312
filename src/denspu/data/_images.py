"""Image files → one array: a form for all, then decoding in threads, in order.

An image that cannot be decoded is listed with the reason; it never ends the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from denspu._machine import n_threads
from denspu._progress import progress
from denspu.data._image_headers import (
    FORMATS,
    SIXTEEN_BIT,
    Header,
    Survey,
    orientation,
    quiet_decoding,
    require_pillow,
    smallest_decode,
    spread,
    why,
)
from denspu.data._items import Items, Skipped
from denspu.data._walk import MANY, shown
from denspu.exceptions import InvalidInputError, InvalidParameterError

MAX_BYTES = 2 * 1024**3
"""Size of the array of all images."""

KEPT_SIDE = 256
"""Images that share one size are kept as they are up to this side."""

COMMON_SIDE = 64
"""Side of the square that images of different sizes are brought to."""

GREY = ("1", "L", "LA", "La", *SIXTEEN_BIT)
WHITE = 255

Size: TypeAlias = int | tuple[int, int] | None


@dataclass(frozen=True)
class ImagePlan:
    """The form all images are brought to."""

    height: int
    width: int
    channels: int
    dtype: str

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return self.height, self.width, self.channels

    def bytes_for(self, n: int) -> int:
        """Return the size of ``n`` images in memory."""
        one = self.height * self.width * self.channels
        return n * one * np.dtype(self.dtype).itemsize


def choose_plan(
    headers: Sequence[Header], image_size: Size
) -> tuple[ImagePlan, list[str]]:
    """Return the form that suits all images, and a sentence where it was a choice."""
    grey = all(h.mode in GREY for h in headers)
    deep = any(h.bits == 16 for h in headers)
    sizes = {(h.height, h.width) for h in headers}
    notes = []
    if image_size is not None:
        height, width = _as_size(image_size)
    else:
        height, width = next(iter(sizes))
        if len(sizes) > 1 or max(height, width) > KEPT_SIDE:
            notes.append(
                f"Images come in {len(sizes):,} sizes"
                if len(sizes) > 1
                else f"Images are {width}×{height}"
            )
            height = width = COMMON_SIDE
            notes[-1] += (
                f" and are brought to {width}×{height}; image_size= sets another size."
            )
    plan = ImagePlan(height, width, 1 if grey else 3, "uint16" if deep else "uint8")
    return plan, notes


def check_memory(plan: ImagePlan, n: int, max_bytes: int) -> None:
    """Refuse an array that would be larger than allowed."""
    needed = plan.bytes_for(n)
    if needed > max_bytes:
        raise InvalidInputError(
            f"{n:,} images of {plan.width}×{plan.height}×{plan.channels} need "
            f"{needed / 1024**3:.1f} GB, more than max_bytes={max_bytes:,}. Pass a "
            "smaller image_size or a larger max_bytes."
        )


def _as_size(image_size: Size) -> tuple[int, int]:
    sides = (image_size, image_size) if isinstance(image_size, int) else image_size
    if (
        not isinstance(sides, tuple | list)
        or len(sides) != 2
        or not all(type(side) is int and 1 <= side <= 8192 for side in sides)
    ):
        raise InvalidParameterError(
            f"image_size={image_size!r} must be a side in pixels from 1 to 8192, or "
            "(height, width)."
        )
    return sides[0], sides[1]


def decode(
    found: Survey,
    plan: ImagePlan,
    workers: int | None,
    max_pixels: int,
    verbose: int = 0,
) -> Items:
    """Decode and resize all surveyed images into one array.

    Threads write straight into their rows; Pillow lets go of the interpreter while it
    decodes. Large images wait for each other, so that at most ``max_pixels`` decoded
    pixels, or one image, are in memory at a time.
    """
    pillow = require_pillow()
    start = time.perf_counter()
    out = np.empty((len(found.names), *plan.shape), dtype=plan.dtype)
    room = _Room(max_pixels)

    def work(row: int) -> str | None:
        path = found.top / found.names[row]
        header = found.headers[row]
        try:
            with room.for_pixels(min(header.width * header.height, max_pixels)):
                out[row] = _pixels(pillow, path, plan, max_pixels)
        except Exception as error:  # one file must not end the run
            return why(pillow, error, path, max_pixels)
        return None

    shown_as = progress("reading", len(out), verbose, least=MANY)
    with quiet_decoding, shown_as as advance:
        reasons = spread(
            work, range(len(out)), n_threads(workers), partial(advance, found.source)
        )
    good = [row for row, reason in enumerate(reasons) if reason is None]
    bad = [
        Skipped(shown(found.names[row]), reason)
        for row, reason in enumerate(reasons)
        if reason is not None
    ]
    skipped = sorted([*found.skipped, *bad])
    for to, row in enumerate(good):  # close the gaps without a second array
        if to != row:
            out[to] = out[row]
    return Items(
        kind="image",
        X=out[: len(good)],
        ids=[shown(found.names[row]) for row in good],
        source=found.source,
        plan={"kind": "image", **asdict(plan)},
        facts=_facts([found.headers[row] for row in good]),
        skipped=skipped,
        notes=found.notes,
        seconds=found.seconds + time.perf_counter() - start,
    )


def _facts(headers: Sequence[Header]) -> Mapping[str, NDArray[Any]]:
    numbers = ("width", "height", "bits", "bytes")
    words = ("mode", "format")
    return {
        **{
            n: np.array([getattr(h, n) for h in headers], dtype=np.int64)
            for n in numbers
        },
        **{w: np.array([getattr(h, w) for h in headers], dtype=object) for w in words},
    }


class _Room:
    """So many decoded pixels at a time; an image alone may always enter."""

    def __init__(self, pixels: int) -> None:
        self.free = self.total = pixels
        self.changed = threading.Condition()

    @contextmanager
    def for_pixels(self, pixels: int) -> Iterator[None]:
        """Wait until so many pixels fit."""
        pixels = min(pixels, self.total)
        with self.changed:
            self.changed.wait_for(lambda: self.free >= pixels)
            self.free -= pixels
        try:
            yield
        finally:
            with self.changed:
                self.free += pixels
                self.changed.notify_all()


def _pixels(pillow: Any, path: Path, plan: ImagePlan, max_pixels: int) -> Any:
    """Return one image as H×W×C numbers of the plan's type."""
    from PIL import ImageOps

    with open(path, "rb") as file, pillow.open(file, formats=FORMATS) as image:
        if smallest_decode(image) > max_pixels:  # the file changed since the survey
            raise ValueError(f"more than max_pixels={max_pixels:,}")
        if image.format in ("JPEG", "MPO"):
            _shrink_while_reading(image, plan, max_pixels)
        image.load()
        upright = image
        if orientation(image) != 1:
            upright = ImageOps.exif_transpose(image)
        if upright.mode in SIXTEEN_BIT:
            values = _deep_pixels(pillow, upright, plan)
        else:
            values = np.asarray(_plain(pillow, upright, plan))
            if plan.dtype == "uint16":
                values = values.astype(np.uint16) * 257  # 255 becomes 65,535
    return values.reshape(plan.height, plan.width, -1)


def _shrink_while_reading(image: Any, plan: ImagePlan, max_pixels: int) -> None:
    """Let the JPEG decoder skip detail that the resize would drop anyway."""
    side = 2 * max(plan.height, plan.width)
    width, height = image.size
    size = (min(side, width), min(side, height))
    if width * height > max_pixels:
        size = (-(-width // 8), -(-height // 8))
    image.draft(None, size)


def _plain(pillow: Any, image: Any, plan: ImagePlan) -> Any:
    """Return an 8-bit image in grey or colour; what shines through is white."""
    target = "L" if plan.channels == 1 else "RGB"
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = pillow.new("RGBA", image.size, (WHITE, WHITE, WHITE, WHITE))
        image = pillow.alpha_composite(ground, image)
    if image.mode == "P":
        image = image.convert("RGB")
    if image.mode != target:
        image = image.convert(target)
    if image.size != (plan.width, plan.height):
        image = image.resize(
            (plan.width, plan.height), pillow.Resampling.BILINEAR, reducing_gap=3.0
        )
    return image


def _deep_pixels(pillow: Any, image: Any, plan: ImagePlan) -> Any:
    """Return a 16-bit grey image, resized as floats so that no bit is lost."""
    values = np.asarray(image)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
            raise ValueError("its pixels are floats outside 0 to 1")
        values = values * 65535
    elif values.min() < 0 or values.max() > 65535:
        raise ValueError("its pixels are integers outside 0 to 65,535")
    if values.shape != (plan.height, plan.width):
        values = np.asarray(
            pillow.fromarray(values.astype(np.float32)).resize(
                (plan.width, plan.height), pillow.Resampling.BILINEAR
            )
        )
    sixteen = np.rint(values).clip(0, 65535).astype(np.uint16)
    if plan.dtype == "uint8":  # new files that are deeper than those of the plan
        sixteen = (sixteen // 257).astype(np.uint8)
    return np.repeat(sixteen[..., None], plan.channels, axis=2)
