"""Readers of the files that benchmark sets come in; strict, and never a pickle.

Each reader returns plain ``uint8`` arrays, or raises
:class:`~denspu.exceptions.DataIntegrityError` saying what is wrong with which file.
"""

from __future__ import annotations

import gzip
import json
import math
import struct
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from denspu.data._spec import as_uint8
from denspu.exceptions import DataIntegrityError, MissingDependencyError

IDX_UINT8 = 0x08
CIFAR_SIDE = 32
CIFAR_PIXELS = CIFAR_SIDE * CIFAR_SIDE
CIFAR_RECORD = 1 + 3 * CIFAR_PIXELS


# --- IDX (MNIST family) -------------------------------------------------------------


def read_idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes with ``ndim`` dimensions.

    The header is two zero bytes, the type (8), the number of dimensions and, for
    each, a big-endian 32-bit length. ``path.gz`` is read where ``path`` is absent.
    """
    raw = _read_maybe_gzipped(path)
    magic = bytes([0, 0, IDX_UINT8, ndim])
    header = 4 + 4 * ndim
    if raw[:4] != magic:
        raise DataIntegrityError(
            f"{path.name} starts with {raw[:4].hex() or 'nothing'}; an IDX file of "
            f"bytes with {ndim} dimension(s) starts with {magic.hex()}."
        )
    if len(raw) < header:
        raise DataIntegrityError(f"{path.name} ends within its IDX header.")
    shape = struct.unpack(f">{ndim}I", raw[4:header])
    expected = header + math.prod(shape)
    if len(raw) != expected:
        raise DataIntegrityError(
            f"{path.name} should be {expected} bytes by its header {shape}, got "
            f"{len(raw)}."
        )
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape)


def _read_maybe_gzipped(path: Path) -> bytes:
    if path.is_file():
        return path.read_bytes()
    zipped = path.with_name(path.name + ".gz")
    try:
        with gzip.open(zipped) as file:
            return file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataIntegrityError(
            f"{zipped.name} cannot be unpacked: {error}"
        ) from error


# --- CIFAR binary -------------------------------------------------------------------


def read_cifar_batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read a binary batch: images N×32×32×3 and labels N."""
    return parse_cifar_batch(path.read_bytes(), path.name)


def parse_cifar_batch(
    raw: bytes, name: str
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Decode records of one label byte and 3×32×32 pixel bytes, channels first."""
    if not raw or len(raw) % CIFAR_RECORD:
        raise DataIntegrityError(
            f"{name} should be a whole number of {CIFAR_RECORD}-byte records, got "
            f"{len(raw)} bytes."
        )
    records = np.frombuffer(raw, np.uint8).reshape(-1, CIFAR_RECORD)
    labels = records[:, 0]
    if labels.max() > 9:
        raise DataIntegrityError(
            f"{name} holds the label {labels.max()}; CIFAR-10 labels are 0 to 9."
        )
    images = records[:, 1:].reshape(-1, 3, CIFAR_SIDE, CIFAR_SIDE)
    return as_uint8(np.moveaxis(images, 1, -1)), as_uint8(labels)


@contextmanager
def open_tar(path: Path) -> Iterator[dict[str, IO[bytes]]]:
    """Give the plain files of a tar archive by base name, nothing extracted."""
    try:
        with tarfile.open(path) as tar:
            members = [m for m in tar.getmembers() if m.isfile()]
            files = {Path(m.name).name: tar.extractfile(m) for m in members}
            yield {name: file for name, file in files.items() if file is not None}
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataIntegrityError(f"{path.name} cannot be unpacked: {error}") from error


# --- CIFAR sheets (one image a pixel row) -------------------------------------------


def read_sheet(path: Path) -> NDArray[np.uint8]:
    """Read a PNG of width 1024, each pixel row one 32×32 RGB image."""
    image_module = require_pillow()
    try:
        with image_module.open(path) as image:
            mode, width = image.mode, image.width
            pixels = as_uint8(image)
    except (OSError, SyntaxError) as error:  # Pillow's words for a broken PNG
        raise DataIntegrityError(f"{path.name} cannot be decoded: {error}") from error
    if (mode, width) != ("RGB", CIFAR_PIXELS):
        raise DataIntegrityError(
            f"{path.name} should be an RGB sheet {CIFAR_PIXELS} pixels wide, got "
            f"{mode} and {width}."
        )
    return pixels.reshape(-1, CIFAR_SIDE, CIFAR_SIDE, 3)


def read_label_list(path: Path) -> NDArray[np.uint8]:
    """Read a JSON list of class numbers."""
    try:
        labels = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataIntegrityError(f"{path.name} is not JSON: {error}") from error
    if not isinstance(labels, list) or not all(x in range(10) for x in labels):
        raise DataIntegrityError(f"{path.name} is not a list of classes 0 to 9.")
    return as_uint8(labels)


def require_pillow() -> Any:
    """Return Pillow's Image module, or say how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            "Reading CIFAR-10 from PNG sheets needs Pillow: pip install 'denspu[data]'"
        ) from error
    return Image
