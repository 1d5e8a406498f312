"""Folders and text files: names in order, lines of any length, reasons in words."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias

from denspu.exceptions import InvalidInputError

MANY = 1_000
"""Files whose reading takes long enough to show how far it is."""
BLOCK = 1 << 16

Opener: TypeAlias = Callable[[Path], IO[bytes]]
"""Opens a file for reading; another one may reach where ``open`` does not."""


def open_binary(path: Path) -> IO[bytes]:
    """Open a file of this machine."""
    return open(path, "rb")


class Limit(NamedTuple):
    """How large a piece of a source may be; without arguments, no limit."""

    rows: int = sys.maxsize
    bytes: int = sys.maxsize


class Skipped(NamedTuple):
    """One item that could not be used."""

    item: str
    reason: str


# --- folders ------------------------------------------------------------------------


def list_folder(top: Path) -> tuple[list[str], list[Skipped]]:
    """Return the paths of the files below a folder, and the folders not readable.

    Paths are sorted and spelled as the file system does; hidden ones are left out.
    Links are followed, but no folder is entered twice, so a circle of links ends.
    """
    files: list[str] = []
    skipped: list[Skipped] = []
    seen: set[tuple[int, int]] = set()
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            status = os.stat(top / below)
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(top / below) as found:
                entries = [e for e in found if not e.name.startswith(".")]
        except OSError as error:
            skipped.append(Skipped(shown(below) + "/", reason_of(error)))
            continue
        for entry in entries:
            name = f"{below}/{entry.name}" if below else entry.name
            try:
                is_folder, is_file = entry.is_dir(), entry.is_file()
            except OSError:  # whoever reads it says why it cannot be read
                is_folder, is_file = False, True
            if is_folder:
                waiting.append(name)
            elif is_file or entry.is_symlink():  # a broken link; no pipe, no device
                files.append(name)
    return sorted(files, key=os.fsencode), skipped


def suffix(name: str) -> str:
    """Return the suffix in lower case, with its dot."""
    return os.path.splitext(name)[1].lower()


def shown(name: str) -> str:
    """Return a path that any file can hold: bytes that are not UTF-8 become ``\\xNN``.

    Control characters stay as they are; whoever prints them escapes them.
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def reason_of(error: OSError) -> str:
    """Return what the system says about a file that cannot be opened."""
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if isinstance(error, FileNotFoundError):
        return "not there (a broken link, or removed meanwhile)"
    return error.strerror or str(error) or type(error).__name__


def no_permission(path: Path) -> Exception:
    """Return the error for a file that may not be read."""
    return InvalidInputError(
        f"There is no permission to read {path}. Change its mode, or copy it."
    )


# --- text files ---------------------------------------------------------------------


@contextmanager
def open_text(
    path: Path, encoding: str, opener: Opener = open_binary
) -> Iterator[IO[str]]:
    """Open a text file; a byte-order mark of UTF-8 is dropped, line ends are kept.

    A byte that is not in the encoding becomes an error that says where it stands.
    """
    plain = encoding.lower().replace("_", "-") == "utf-8"
    try:
        raw = opener(path)
    except PermissionError as error:
        raise no_permission(path) from error
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be opened: {reason_of(error)}."
        ) from error
    with TextIOWrapper(raw, "utf-8-sig" if plain else encoding, newline="") as file:
        try:
            yield file
        except UnicodeDecodeError as error:
            position = raw.tell() - len(error.object) + error.start
            raise _not_in(path, encoding, position, opener) from error
        except UnicodeError as error:  # UTF-16 without a mark, or cut short
            raise InvalidInputError(
                f"{path.name} is not {encoding.upper()}: {error}. Pass encoding=."
            ) from error


def _not_in(path: Path, encoding: str, position: int, opener: Opener) -> Exception:
    line, left = 1, position
    with opener(path) as file:
        start = file.read(2)
        file.seek(0)
        while left:
            block = file.read(min(left, BLOCK))
            line += block.count(b"\n")
            left -= len(block)
        byte = file.read(1)
    hint = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
    return InvalidInputError(
        f"{path.name} is not {encoding.upper()}: byte 0x{byte.hex()} at position "
        f"{position} (line {line}). Save it as UTF-8, or pass encoding={hint!r} if "
        "that is what it is."
    )


def lines_of(path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of a file as ``str.splitlines`` gives them."""
    with open_text(path, encoding) as file:
        for line in file:  # up to \n, \r or both; it may hold other ends of lines
            yield from line.splitlines()
