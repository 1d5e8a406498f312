"""The one way denspu writes: whole or not at all, and seen onto the disk.

What is written lies beside its target under a name of its own, is flushed, and takes
the target's place in one step. After a crash or a power cut the target is what it was
or what it should be. An ``OSError`` is the caller's to explain.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np


def write_text(path: Path, text: str, *, errors: str = "strict") -> None:
    """Put a UTF-8 file in place; line ends stay as they are."""
    with new_file(path) as work:
        work.write_bytes(text.encode("utf-8", errors))


def as_json(content: Any) -> bytes:
    """Return plain data as denspu writes JSON."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def plain(value: Any) -> Any:
    """Return data as JSON knows it: NumPy's become Python's, NaN and inf null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


@contextmanager
def new_file(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Give a name to write under; the file takes the target's place in the end.

    Without ``overwrite`` a target that is there, also since a moment ago, raises
    ``FileExistsError``.
    """
    work = _beside(path)
    try:
        yield work
        flush(work)
        if overwrite:
            os.replace(work, path)
        else:
            _link_or_move(work, path)
    finally:
        with suppress(OSError):
            work.unlink()
    _flush_names(path.parent)


@contextmanager
def new_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a folder to write in; it takes the target's place in the end.

    The folders above are made. Whatever goes wrong, the target is as it was and
    nothing else is left.
    """
    made = [p for p in reversed(target.parents) if not p.exists()]
    work = _beside(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work.mkdir()
        yield work
        for path in (*work.rglob("*"), work):
            flush(path)
        _put_folder(work, target, overwrite)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        for parent in reversed(made):
            with suppress(OSError):
                parent.rmdir()
        raise
    for parent in (target.parent, *(p.parent for p in made)):
        _flush_names(parent)


def flush(path: Path) -> None:
    """See a file, or the names in a folder, onto the disk."""
    windows = os.name == "nt"
    if windows and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _flush_names(folder: Path) -> None:
    """Flush a folder whose new name is in place; some file systems cannot."""
    with suppress(OSError):
        flush(folder)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.part")


def _link_or_move(work: Path, path: Path) -> None:
    """Name a file, but never over one that came in the meantime."""
    try:
        os.link(work, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(f"{path} exists already") from None
        os.replace(work, path)


def _put_folder(work: Path, target: Path, overwrite: bool) -> None:
    """Move a finished folder into place, in one step where the system can."""
    if not (overwrite and target.is_dir()):
        os.rename(work, target)
        return
    old = work
    if not _exchange(work, target):
        old = work.with_suffix(".old")
        os.rename(target, old)
        try:
            os.rename(work, target)
        except OSError:
            os.rename(old, target)
            raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step, if the system knows how (Linux does)."""
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    first, second = os.fsencode(one), os.fsencode(other)
    return bool(
        swap(here, ctypes.c_char_p(first), here, ctypes.c_char_p(second), exchange) == 0
    )
