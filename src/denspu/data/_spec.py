"""The facts about a benchmark set: what it holds, where it is, how it is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = dict[str, NDArray[Any]]
"""``X_train``, ``y_train``, ``X_test``, ``y_test``."""

PARTS = ("X_train", "y_train", "X_test", "y_test")


@dataclass(frozen=True)
class RemoteFile:
    """A file of the official download."""

    name: str
    md5: str


@dataclass(frozen=True)
class Layout:
    """One way in which the set may lie in a folder."""

    title: str
    """For error messages."""
    files: tuple[str, ...]
    """Names that must all be there."""
    read: Callable[[Path], Arrays]
    """Decode the files of a folder."""
    gzipped: bool = False
    """May each file also stand with ``.gz``?"""

    def missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks."""
        endings = ("", ".gz") if self.gzipped else ("",)
        return [
            name
            for name in self.files
            if not any((folder / (name + end)).is_file() for end in endings)
        ]


@dataclass(frozen=True)
class Package:
    """A package of the system that carries the set."""

    client: Literal["apt-get", "npm"]
    name: str
    """Name (and version) the client understands."""


@dataclass(frozen=True)
class Spec:
    """Everything known about one benchmark set before it is opened."""

    name: str
    summary: str
    class_names: tuple[str, ...]
    positive: tuple[int, ...]
    """Classes that are positive by default."""
    licence: str
    homepage: str
    shapes: Mapping[str, tuple[int, ...]]
    """Shape of each array."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Checksum of the bytes of each decoded array."""
    layouts: tuple[Layout, ...] = ()
    mirrors: tuple[str, ...] = ()
    """Official addresses, tried in turn; each ends in a slash."""
    files: tuple[RemoteFile, ...] = ()
    """What to download from a mirror."""
    installed: Path | None = None
    """Where a system package puts the files."""
    package: Package | None = None
    refused: tuple[str, ...] = ()
    """File names that are known and never opened."""
    refusal: str = ""
    """Why, and what to get instead."""
    bundled: Callable[[], Path] | None = None
    """Path of a set that comes with an installed library."""
    split: Callable[[int], Arrays] | None = None
    """Make the arrays of a bundled set from a seed."""


def as_uint8(values: Any) -> NDArray[np.uint8]:
    """Return values as bytes in one block of memory."""
    return np.ascontiguousarray(values, dtype=np.uint8)
