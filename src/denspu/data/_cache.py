"""Where fetched sets live on disk: checked, written whole or not at all.

A set is a folder ``<home>/data/<name>/`` with one plain ``.npy`` file an array.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu.data._spec import PARTS, Arrays, Spec
from denspu.exceptions import DataIntegrityError


def data_home(path: str | Path | None = None) -> Path:
    """Return the folder in which denspu keeps what it fetched.

    ``path`` if given, else the environment variable ``DENSPU_HOME``, else ``denspu``
    in the user's cache folder. The folder is not created.
    """
    if path is not None:
        return Path(path).expanduser()
    if os.environ.get("DENSPU_HOME"):
        return Path(os.environ["DENSPU_HOME"]).expanduser()
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "denspu"
    if os.name == "nt" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "denspu" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "denspu"
    return Path.home() / ".cache" / "denspu"


def folder_of(spec: Spec, home: str | Path | None = None) -> Path:
    """Return the folder of one set."""
    return data_home(home) / "data" / spec.name


def is_stored(folder: Path) -> bool:
    """Tell whether all arrays of a set are in its folder."""
    return all((folder / f"{part}.npy").is_file() for part in PARTS)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Give a temporary folder beside ``folder``; it goes whatever happens."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f".{folder.name}-", dir=folder.parent, ignore_cleanup_errors=True
    ) as work:
        yield Path(work)


def store(arrays: Arrays, folder: Path, work: Path) -> None:
    """Write arrays inside ``work`` and move them to ``folder`` in one step."""
    fresh = work / "arrays"
    fresh.mkdir()
    for part in PARTS:
        np.save(fresh / f"{part}.npy", arrays[part], allow_pickle=False)
    if folder.exists() and not is_stored(folder):
        shutil.rmtree(folder)
    try:
        fresh.rename(folder)
    except OSError:
        if not is_stored(folder):  # else another process was faster, with the same
            raise


def load(spec: Spec, folder: Path) -> Arrays:
    """Read and check the arrays of a stored set."""
    try:
        arrays = {
            part: np.load(folder / f"{part}.npy", allow_pickle=False) for part in PARTS
        }
        check_arrays(arrays, spec, where=str(folder))
    except (ValueError, EOFError) as error:
        raise DataIntegrityError(
            f"{error} Delete the folder {folder} and run: denspu data get {spec.name}"
        ) from error
    return arrays


def check_arrays(arrays: Arrays, spec: Spec, where: str) -> None:
    """Compare shapes and checksums with what the set must hold."""
    for part in PARTS:
        array: NDArray[Any] = arrays[part]
        shape = spec.shapes[part]
        if array.shape != shape or array.dtype != np.uint8:
            raise DataIntegrityError(
                f"{part} of {spec.name} in {where}: expected bytes of shape {shape}, "
                f"got {array.dtype} of shape {array.shape}."
            )
        got = hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
        if got != spec.sha256[part]:
            raise DataIntegrityError(
                f"{part} of {spec.name} in {where}: expected sha256 "
                f"{spec.sha256[part]}, got {got}."
            )
