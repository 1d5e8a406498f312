"""A file that is written whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from denspu.exceptions import ModelFileError


def write(proto: Any, path: Path) -> None:
    """Write a graph to the disk itself."""
    with path.open("wb") as file:
        file.write(proto.SerializeToString())
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def beside(path: Path, overwrite: bool) -> Iterator[Path]:
    """Give a name to write under, and put the file in place in the end."""
    work = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        yield work
        if overwrite:
            os.replace(work, path)
        else:
            _put_new(work, path)
    finally:
        with suppress(OSError):
            work.unlink()


def _put_new(work: Path, path: Path) -> None:
    """Name the file, but never over one that came in the meantime."""
    try:
        os.link(work, path)
    except FileExistsError:
        raise ModelFileError(f"{path} exists already.") from None
    except OSError:  # a file system without links
        os.replace(work, path)
