"""Images: files that Pillow decodes, brought to one size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._typing import FloatArray
from denspu.data._decoding import (
    ImagePlan,
    Survey,
    choose_plan,
    decode,
    quiet_decoding,
    survey,
)
from denspu.data._reading import Found, Limit, Options, Plan, lines_of
from denspu.data.kinds import Items, Kind, Pairs, nothing_left, suffix
from denspu.data.kinds.text import LIST_SUFFIXES
from denspu.exceptions import InvalidInputError

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
