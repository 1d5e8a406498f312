"""Image files, looked at before any is decoded: size, mode, format, or a reason.

Only a header is read before the size of an image is known, so an image that would fill
the memory is refused before a pixel of it exists.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from denspu._machine import in_threads, n_threads
from denspu._progress import progress
from denspu.data._items import Skipped
from denspu.data._walk import MANY, reason_of, shown
from denspu.exceptions import MissingDependencyError

FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF")
"""Formats that may be decoded; others (PostScript, say) are never tried."""

PLUGINS = ("Bmp", "Gif", "Jpeg", "Mpo", "Png", "Tiff", "WebP")

MAX_PIXELS = 50_000_000
"""Pixels of one decoded image. Larger ones are refused; a JPEG is shrunk instead."""

SIXTEEN_BIT = ("I;16", "I;16L", "I;16B", "I;16N", "I", "F")
ORIENTATION = 0x0112
SIDEWAYS = (5, 6, 7, 8)
"""Orientations in which width and height change places."""
PER_TASK = 64


@dataclass(frozen=True)
class Header:
    """What the first bytes of an image file say."""

    width: int
    """As shown, after the rotation the camera noted."""
    height: int
    mode: str
    bits: int
    format: str
    bytes: int


@dataclass(frozen=True, eq=False)
class Survey:
    """The headers of the images of one source, in order."""

    source: str
    top: Path
    names: list[str]
    headers: list[Header]
    skipped: list[Skipped]
    notes: list[str]
    seconds: float


def require_pillow() -> Any:
    """Return Pillow's Image module, or say how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            "Reading images needs Pillow: pip install 'denspu[image]'"
        ) from error
    for plugin in PLUGINS:  # Pillow imports a reader when it first needs one
        import_module(f"PIL.{plugin}ImagePlugin")
    return Image


def survey(
    top: Path,
    names: Sequence[str],
    *,
    source: str,
    max_pixels: int = MAX_PIXELS,
    workers: int | None = None,
    verbose: int = 0,
    skipped: Sequence[Skipped] = (),
    notes: Sequence[str] = (),
) -> Survey:
    """Read the header of every image; list those that are no image or too large."""
    pillow = require_pillow()
    start = time.perf_counter()

    def look(name: str) -> Header | str:
        return _header(pillow, top / name, max_pixels)

    shown_as = progress("headers", len(names), verbose, least=MANY)
    with quiet_decoding, shown_as as advance:
        found = spread(look, names, n_threads(workers), partial(advance, source))
    good = [(n, h) for n, h in zip(names, found, strict=True) if isinstance(h, Header)]
    bad = [
        Skipped(shown(n), h)
        for n, h in zip(names, found, strict=True)
        if isinstance(h, str)
    ]
    return Survey(
        source=source,
        top=top,
        names=[name for name, _ in good],
        headers=[header for _, header in good],
        skipped=[*skipped, *bad],
        notes=list(notes),
        seconds=time.perf_counter() - start,
    )


class _Quiet:
    """Silence Pillow's warnings: sizes are measured here, faults become reasons.

    Filters of warnings belong to the whole process. So the first thread that enters
    sets them and the last one that leaves puts back what was.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        pillow = require_pillow()
        with self.lock:
            self.inside += 1
            if self.inside == 1:
                self.filters = warnings.catch_warnings()
                self.filters.__enter__()
                warnings.simplefilter("ignore", pillow.DecompressionBombWarning)
                warnings.filterwarnings("ignore", module="PIL")

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.filters.__exit__(None, None, None)


quiet_decoding = _Quiet()


def spread(
    work: Callable[[Any], Any],
    items: Sequence[Any],
    threads: int,
    advance: Callable[[int], None],
) -> list[Any]:
    """Call ``work`` on each item, several a task, keeping the order."""

    def task(part: Sequence[Any]) -> list[Any]:
        results = [work(item) for item in part]
        advance(len(part))
        return results

    parts = [items[i : i + PER_TASK] for i in range(0, len(items), PER_TASK)]
    done = in_threads(task, parts, threads)
    return [result for part in done for result in part]


def _header(pillow: Any, path: Path, max_pixels: int) -> Header | str:
    try:
        n_bytes = os.stat(path).st_size
        if n_bytes == 0:
            return "the file is empty"
        with open(path, "rb") as file, pillow.open(file, formats=FORMATS) as image:
            width, height = image.size
            if smallest_decode(image) > max_pixels:
                return (
                    f"{width:,}×{height:,} pixels, more than max_pixels={max_pixels:,}"
                )
            if image.format == "TIFF":  # some versions of Pillow turn it at once
                width, height = int(image.tag_v2[256]), int(image.tag_v2[257])
            if orientation(image) in SIDEWAYS:
                width, height = height, width
            sixteen = image.mode in SIXTEEN_BIT
            return Header(
                width=width,
                height=height,
                mode=image.mode,
                bits=16 if sixteen else 1 if image.mode == "1" else 8,
                format="JPEG" if image.format == "MPO" else image.format,
                bytes=n_bytes,
            )
    except Exception as error:  # a broken file makes Pillow raise almost anything
        return why(pillow, error, path, max_pixels)


def smallest_decode(image: Any) -> int:
    """Return the pixels that decoding must make; a JPEG can be read at an eighth."""
    width, height = image.size
    shrink = 8 if image.format in ("JPEG", "MPO") else 1
    return -(-width // shrink) * -(-height // shrink)


def orientation(image: Any) -> int:
    """Return the rotation the camera noted, without decoding a PNG to find it."""
    if image.format == "PNG" and "exif" not in image.info:
        return 1
    return int(image.getexif().get(ORIENTATION, 1))


def why(pillow: Any, error: Exception, path: Path, max_pixels: int) -> str:
    if isinstance(error, pillow.DecompressionBombError):
        pixels = "".join(c for c in str(error).split("pixels")[0] if c.isdigit())
        said = f"{int(pixels):,} pixels" if pixels else "far too many pixels"
        return f"{said}, more than max_pixels={max_pixels:,}"
    if type(error).__name__ == "UnidentifiedImageError":
        return f"not a readable image: {_starts_with(path)}"
    if isinstance(error, OSError) and error.errno is not None:
        return reason_of(error)
    if isinstance(error, MemoryError):
        return "too large for the memory"
    return f"cannot be decoded: {str(error) or type(error).__name__}"


def _starts_with(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return f"it starts with {file.read(12)!r}"
    except OSError as error:  # pragma: no cover - it was readable a moment ago
        return reason_of(error)
