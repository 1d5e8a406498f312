"""Images: files that Pillow decodes, brought to one size.

Headers come first, then decoding in threads, in order. Only a header is read before the
size of an image is known, so an image that would fill the memory is refused before a
pixel of it exists. An image that cannot be decoded is listed with the reason; it never
ends the run.
"""

from __future__ import annotations

import math
import os
import re
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._machine import in_threads, n_threads
from denspu._progress import progress
from denspu._typing import FloatArray
from denspu.data._reading import (
    MANY,
    Found,
    Limit,
    Options,
    Plan,
    Size,
    lines_of,
    reason_of,
    shown,
)
from denspu.data.kinds import Items, Kind, Pairs, Skipped, nothing_left, suffix
from denspu.data.kinds.text import LIST_SUFFIXES
from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    MissingDependencyError,
)

FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF")
"""Formats that may be decoded; others (PostScript, say) are never tried."""

PLUGINS = ("Bmp", "Gif", "Jpeg", "Mpo", "Png", "Tiff", "WebP")

SIXTEEN_BIT = ("I;16", "I;16L", "I;16B", "I;16N", "I", "F")
ORIENTATION = 0x0112
SIDEWAYS = (5, 6, 7, 8)
"""Orientations in which width and height change places."""
PER_TASK = 64

KEPT_SIDE = 256
"""Images that share one size are kept as they are up to this side."""

COMMON_SIDE = 64
"""Side of the square that images of different sizes are brought to."""

FACTS = dict.fromkeys(("width", "height", "bits", "bytes"), np.int64) | dict.fromkeys(
    ("mode", "format"), object
)
GREY = ("1", "L", "LA", "La", *SIXTEEN_BIT)
WHITE = 255

LOOKED_AT = 5
"""Lines of a text file that tell a list of images from documents."""

SMALL_IMAGE = 16 * 16
"""Pixels up to which an image is its own embedding."""
SMALL_GREY_ON_CPU = 32 * 32
"""The same for grey ones on a CPU: their pixels served better than a network trained
as long as a CPU can."""
CPU_SIZE = 64
"""Side to which larger pictures are shrunk on a CPU."""

THUMB = 16
"""Side of the thumbnails that are compared."""
CLOSEST = 0.01
"""Near copies: one minus their correlation is at most this, in all pixels, ..."""
FAR_CLOSER = 0.1
"""... and in thumbnails this part of what two different positives usually have."""
CHUNK = 4096
MAX_PAIRS = 100_000


class _Images(Kind):
    """N×H×W×C, 8 or 16 bits."""

    name = noun = thing = "image"
    input_kind = "image"
    shows = "picture"

    suffixes = frozenset(
        (".jpg", ".jpeg", ".jpe", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif")
    )
    wanted = "a folder, an image, or a .txt with one path a line"
    folder = "images (.jpg .png .webp .tif .bmp .gif)"
    file_name = "an image"
    empty = "holds no image"

    def claims(self, path: Path, options: Options) -> bool:
        """Claim images, and lists of images that exist."""
        return super().claims(path, options) or (
            suffix(path.name) in LIST_SUFFIXES and self._lists(path, options.encoding)
        )

    def _lists(self, path: Path, encoding: str) -> bool:
        try:
            with open(path, encoding=encoding) as file:
                lines = [file.readline(4096).strip() for _ in range(LOOKED_AT)]
        except (OSError, UnicodeDecodeError):
            return False
        named = [line for line in lines if line]
        return bool(named) and all(
            suffix(line) in self.suffixes and (path.parent / line).exists()
            for line in named
        )

    def files(self, path: Path, options: Options) -> tuple[Path, list[str]]:
        if super().claims(path, options):
            return path.parent, [path.name]
        names = [line.strip() for line in lines_of(path, options.encoding)]
        names = [name for name in names if name]
        if not names:
            raise InvalidInputError(
                f"{path} is empty; one image path a line is needed."
            )
        return path.parent, names

    def pieces(
        self, found: Found, options: Options, plan: Plan | None, limit: Limit
    ) -> Iterator[Survey]:
        """Yield the headers of all images, or of as many as fit once decoded."""
        rows = len(found.names)
        if plan is not None:
            rows = max(1, min(limit.rows, limit.bytes // _form(plan).bytes_for(1)))
        for start in range(0, len(found.names), rows):
            yield survey(found, found.names[start : start + rows], options)

    def plan(
        self, pieces: Sequence[Survey], options: Options, given: Plan | None
    ) -> tuple[Plan, list[str]]:
        """Choose one size and depth for all; refuse an array beyond the memory."""
        for piece in pieces:
            if not piece.images:
                n = len(piece.skipped)
                raise nothing_left(self, piece.found.source, n, piece.skipped)
        headers = [header for piece in pieces for _, header in piece.images]
        notes: list[str] = []
        if given is None:
            form, notes = choose_plan(headers, options.image_size)
        else:
            form = _form(given)
        needed = form.bytes_for(len(headers))
        if needed > options.max_bytes:
            size = "×".join(map(str, (form.width, form.height, form.channels)))
            raise InvalidInputError(
                f"{len(headers):,} images of {size} need {needed / 1024**3:.1f} GB, "
                f"more than max_bytes={options.max_bytes:,}. Pass a smaller image_size "
                "or a larger max_bytes."
            )
        return {"kind": self.name, **asdict(form)}, notes

    def items(self, piece: Survey, options: Options, plan: Plan) -> Items:
        return decode(piece, _form(plan), options)

    def values_in_one(self, plan: Mapping[str, Any]) -> int:
        return int(plan["height"] * plan["width"] * plan["channels"])

    def quiet(self) -> AbstractContextManager[None]:
        return quiet_decoding()

    def stack(self, P: Items, U: Items) -> NDArray[Any]:
        """Grey becomes colour and 8 bits become 16 where the other side has them."""
        if P.X.shape[1:3] != U.X.shape[1:3]:
            sizes = [f"{w}×{h}" for h, w in (P.X.shape[1:3], U.X.shape[1:3])]
            raise InvalidInputError(
                f"Images of {P.source} are {sizes[0]}, those of {U.source} {sizes[1]}. "
                "Read both with the same image_size, or with read_pair."
            )
        channels = max(P.X.shape[3], U.X.shape[3])
        dtype = np.result_type(P.X, U.X)
        out = np.empty((len(P) + len(U), *P.X.shape[1:3], channels), dtype=dtype)
        for part, images in ((out[: len(P)], P.X), (out[len(P) :], U.X)):
            part[:] = images
            if images.dtype != dtype:
                part *= 257
        return out

    def copies(self, P: Items, U: Items) -> tuple[Pairs, Pairs, list[str]]:
        """Add the images whose thumbnails and pixels are almost equal."""
        exact, near, notes = super().copies(P, U)
        if P.X.shape[1:] != U.X.shape[1:]:
            notes = ["P and U differ in size or colour: read them with read_pair."]
        else:
            near, full = _near(P.X, U.X)
            if full:
                notes = [
                    f"More than {MAX_PAIRS:,} near copies: the rest is not listed."
                ]
        return exact, near, notes

    def picture(self, row: Any) -> NDArray[Any]:
        return np.asarray(row)

    def default_encoder(self, X: Any, on_gpu: bool) -> Any:
        """Return none for small pictures, else one that learns by contrast."""
        from denspu.encoders import ContrastiveEncoder, IdentityEncoder

        if self.is_own_embedding(X, on_gpu):
            return IdentityEncoder()
        large = not on_gpu and max(X.shape[1:3]) > CPU_SIZE
        return ContrastiveEncoder(image_size=CPU_SIZE if large else None)

    def is_own_embedding(self, X: Any, on_gpu: bool) -> bool:
        height, width, channels = X.shape[1:]
        small = SMALL_IMAGE if on_gpu or channels > 2 else SMALL_GREY_ON_CPU
        return bool(height * width <= small)

    def plain_encoder(self, random_state: int | None = None) -> None:
        return None  # networks take pixels


KIND = _Images()


def _form(plan: Plan) -> ImagePlan:
    return ImagePlan(**{name: plan[name] for name in ImagePlan.__dataclass_fields__})


# --- headers ------------------------------------------------------------------------


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
    """Images of one source, in order, with what their headers say."""

    found: Found
    images: list[tuple[str, Header]]
    skipped: list[Skipped]


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


def survey(found: Found, names: Sequence[str], options: Options) -> Survey:
    """Read the header of every image; list those that are no image or too large."""

    def look(name: str) -> Header | str:
        return _header(found.path / name, options.max_pixels)

    piece = Survey(found, [], [])
    looked = _each(look, names, "headers", found, options)
    for name, header in zip(names, looked, strict=True):
        if isinstance(header, Header):
            piece.images.append((name, header))
        else:
            piece.skipped.append(Skipped(shown(name), header))
    return piece


@contextmanager
def quiet_decoding() -> Iterator[None]:
    """Silence Pillow's warnings: sizes are measured here, faults become reasons.

    Filters of warnings belong to the whole process, so the main thread sets them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", require_pillow().DecompressionBombWarning)
        warnings.filterwarnings("ignore", module="PIL")
        yield


def _each(
    work: Callable[[Any], Any],
    things: Sequence[Any],
    stage: str,
    found: Found,
    options: Options,
) -> list[Any]:
    """Call ``work`` on each thing in threads, several a task, keeping the order."""
    with progress(stage, len(things), options.verbose, least=MANY) as advance:

        def task(part: Sequence[Any]) -> list[Any]:
            results = [work(thing) for thing in part]
            advance(found.source, len(part))
            return results

        parts = [things[i : i + PER_TASK] for i in range(0, len(things), PER_TASK)]
        done = in_threads(task, parts, n_threads(options.workers))
    return [result for part in done for result in part]


def _header(path: Path, max_pixels: int) -> Header | str:
    pillow = require_pillow()
    try:
        with open(path, "rb") as file:
            start = file.read(12)
            if not start:
                return "the file is empty"
            with pillow.open(file, formats=FORMATS) as image:
                width, height = image.size
                if _smallest_decode(image) > max_pixels:
                    return _too_large(f"{width:,}×{height:,}", max_pixels)
                if image.format == "TIFF":  # some versions of Pillow turn it at once
                    width, height = int(image.tag_v2[256]), int(image.tag_v2[257])
                if _orientation(image) in SIDEWAYS:
                    width, height = height, width
                deep = image.mode in SIXTEEN_BIT
                return Header(
                    width=width,
                    height=height,
                    mode=image.mode,
                    bits=16 if deep else 1 if image.mode == "1" else 8,
                    format="JPEG" if image.format == "MPO" else image.format,
                    bytes=os.fstat(file.fileno()).st_size,
                )
    except pillow.UnidentifiedImageError:
        return f"not a readable image: it starts with {start!r}"
    except Exception as error:  # a broken file makes Pillow raise almost anything
        return _why(error, max_pixels)


def _smallest_decode(image: Any) -> int:
    """Return the pixels that decoding must make; a JPEG can be read at an eighth."""
    width, height = image.size
    shrink = 8 if image.format in ("JPEG", "MPO") else 1
    return -(-width // shrink) * -(-height // shrink)


def _orientation(image: Any) -> int:
    """Return the rotation the camera noted, without decoding a PNG to find it."""
    if image.format == "PNG" and "exif" not in image.info:
        return 1
    return int(image.getexif().get(ORIENTATION, 1))


def _why(error: Exception, max_pixels: int) -> str:
    """Return in words why an image cannot be read."""
    said = str(error) or type(error).__name__
    if type(error).__name__ == "DecompressionBombError":
        return _too_large(f"{int(re.findall('[0-9]+', said)[0]):,}", max_pixels)
    if isinstance(error, OSError) and error.errno is not None:
        return reason_of(error)
    if isinstance(error, MemoryError):
        return "too large for the memory"
    return f"cannot be decoded: {said}"


def _too_large(pixels: str, max_pixels: int) -> str:
    return f"{pixels} pixels, more than max_pixels={max_pixels:,}"


# --- one form for all ---------------------------------------------------------------


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
        return n * math.prod(self.shape) * np.dtype(self.dtype).itemsize


def choose_plan(
    headers: Sequence[Header], image_size: Size
) -> tuple[ImagePlan, list[str]]:
    """Return the form that suits all images, and a sentence where it was a choice."""
    channels = 1 if all(h.mode in GREY for h in headers) else 3
    dtype = "uint16" if any(h.bits == 16 for h in headers) else "uint8"
    if image_size is not None:
        return ImagePlan(*_as_size(image_size), channels, dtype), []
    sizes = {(h.height, h.width) for h in headers}
    height, width = next(iter(sizes))
    if len(sizes) == 1 and max(height, width) <= KEPT_SIDE:
        return ImagePlan(height, width, channels, dtype), []
    side = COMMON_SIDE
    found = f"of {width}×{height}" if len(sizes) == 1 else f"in {len(sizes):,} sizes"
    told = f"Images {found} are brought to {side}×{side}; image_size= sets another."
    return ImagePlan(side, side, channels, dtype), [told]


def _as_size(image_size: int | tuple[int, int]) -> tuple[int, int]:
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


def decode(piece: Survey, plan: ImagePlan, options: Options) -> Items:
    """Decode and resize all surveyed images into one array.

    Threads write straight into their rows; Pillow lets go of the interpreter while it
    decodes. Large images wait for each other, so that at most ``max_pixels`` decoded
    pixels, or one image, are in memory at a time.
    """
    found, max_pixels = piece.found, options.max_pixels
    out = np.empty((len(piece.images), *plan.shape), dtype=plan.dtype)
    room = _Room(max_pixels)

    def work(row: int) -> str | None:
        name, header = piece.images[row]
        try:
            with room.for_pixels(min(header.width * header.height, max_pixels)):
                out[row] = _pixels(found.path / name, plan, max_pixels)
        except Exception as error:  # one file must not end the run
            return _why(error, max_pixels)
        return None

    reasons = _each(work, range(len(out)), "reading", found, options)
    good, skipped = list[int](), list(piece.skipped)
    for row, reason in enumerate(reasons):
        if reason is not None:
            skipped.append(Skipped(shown(piece.images[row][0]), reason))
            continue
        if row != len(good):  # close the gaps without a second array
            out[len(good)] = out[row]
        good.append(row)
    headers = [asdict(piece.images[row][1]) for row in good]
    return Items(
        kind="image",
        X=out[: len(good)],
        ids=[shown(piece.images[row][0]) for row in good],
        source=found.source,
        plan={"kind": "image", **asdict(plan)},
        facts={
            name: np.array([header[name] for header in headers], dtype=dtype)
            for name, dtype in FACTS.items()
        },
        skipped=sorted(skipped),
    )


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


def _pixels(path: Path, plan: ImagePlan, max_pixels: int) -> Any:
    """Return one image as H×W×C numbers of the plan's type."""
    from PIL import ImageOps

    pillow = require_pillow()
    with open(path, "rb") as file, pillow.open(file, formats=FORMATS) as image:
        if _smallest_decode(image) > max_pixels:  # the file changed since the survey
            raise ValueError(f"more than max_pixels={max_pixels:,}")
        if image.format in ("JPEG", "MPO"):
            # the decoder may skip detail that the resize would drop anyway
            side = 2 * max(plan.height, plan.width)
            width, height = image.size
            size = (min(side, width), min(side, height))
            if width * height > max_pixels:
                size = (-(-width // 8), -(-height // 8))
            image.draft(None, size)
        image.load()
        upright = image
        if _orientation(image) != 1:
            upright = ImageOps.exif_transpose(image)
        if upright.mode in SIXTEEN_BIT:
            values = _deep_pixels(pillow, upright, plan)
        else:
            values = np.asarray(_plain(pillow, upright, plan))
            if plan.dtype == "uint16":
                values = values.astype(np.uint16) * 257  # 255 becomes 65,535
    return values.reshape(plan.height, plan.width, -1)


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
    top = 1 if values.dtype.kind == "f" else 65535
    if not (values.min() >= 0 and values.max() <= top):  # nor NaN
        raise ValueError(f"its pixels are outside 0 to {top:,}")
    values = values * (65535 // top)
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


# --- near copies --------------------------------------------------------------------


def _near(P: Any, U: Any) -> tuple[Pairs, bool]:
    """Return the pairs of almost equal images, and whether there were too many."""
    ours = _thumbnails(P)
    limit = CLOSEST
    if len(ours) > 2:
        limit = min(limit, FAR_CLOSER * _usual_distance(ours))
    best: dict[int, list[tuple[float, int]]] = defaultdict(list)
    n_found = 0
    for start in range(0, len(U), CHUNK):
        alike = _thumbnails(U[start : start + CHUNK]) @ ours.T
        rows, columns = np.nonzero(alike >= 1 - limit)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            best[start + row].append((float(alike[row, column]), column))
        n_found += len(rows)
        if n_found > MAX_PAIRS:
            break
    pairs = [(max(found)[1], u) for u, found in sorted(best.items())]
    return [(p, u) for p, u in pairs if _alike(P[p], U[u])], n_found > MAX_PAIRS


def _alike(one: Any, other: Any) -> bool:
    """Tell whether two images agree in all their pixels, not in thumbnails alone."""
    a, b = _standard(np.stack([one, other]).astype(np.float64).reshape(2, -1))
    return bool(a @ b >= 1 - CLOSEST)


def _usual_distance(thumbs: FloatArray) -> float:
    """Return how far the nearest other positive is, at the median."""
    nearest = np.empty(len(thumbs))
    for start in range(0, len(thumbs), CHUNK):
        alike = thumbs[start : start + CHUNK] @ thumbs.T
        rows = np.arange(len(alike))
        alike[rows, start + rows] = -1.0
        nearest[start : start + CHUNK] = alike.max(axis=1)
    return float(1 - np.median(nearest))


def _thumbnails(images: Any) -> NDArray[np.float32]:
    """Return small versions with mean 0 and length 1; a flat image becomes zeros."""
    top = np.iinfo(images.dtype).max if images.dtype.kind in "ui" else 1.0
    parts = []
    for start in range(0, len(images), CHUNK):
        part = images[start : start + CHUNK].astype(np.float32) / np.float32(top)
        for axis, after in ((1, (1, 1)), (2, (1,))):  # means over rows, then columns
            side = part.shape[axis]
            edges = np.linspace(0, side, min(THUMB, side) + 1).astype(int)
            sums = np.add.reduceat(part, edges[:-1], axis=axis)
            part = sums / np.diff(edges).reshape(-1, *after)
        parts.append(part.astype(np.float32).reshape(len(part), -1))
    return _standard(np.concatenate(parts))


def _standard(rows: NDArray[Any]) -> NDArray[Any]:
    """Give each row mean 0 and length 1, and zeros where it is flat."""
    rows -= rows.mean(axis=1, keepdims=True)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    flat = length[:, 0] < 1e-3 * np.sqrt(rows.shape[1])
    rows /= np.maximum(length, 1e-12)
    rows[flat] = 0
    return rows
