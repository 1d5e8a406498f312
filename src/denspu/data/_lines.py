"""Text files, line by line: any size, and the byte that is not in the encoding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from denspu.data._walk import reason_of
from denspu.exceptions import InvalidInputError

BLOCK = 1 << 16


def open_text(path: Path, encoding: str) -> IO[str]:
    """Open a text file; a byte-order mark of UTF-8 is dropped, line ends are kept."""
    plain = encoding.lower().replace("_", "-") == "utf-8"
    try:
        return open(path, encoding="utf-8-sig" if plain else encoding, newline="")
    except PermissionError as error:
        raise no_permission(path) from error
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be opened: {reason_of(error)}."
        ) from error


def no_permission(path: Path) -> Exception:
    """Return the error for a file that may not be read."""
    return InvalidInputError(
        f"There is no permission to read {path}. Change its mode, or copy it."
    )


@contextmanager
def decoding(file: IO[str], path: Path, encoding: str) -> Iterator[None]:
    """Say which byte of the file is not in the encoding."""
    try:
        yield
    except UnicodeDecodeError as error:
        handed_out = file.buffer.tell()  # type: ignore[attr-defined]
        position = handed_out - len(error.object) + error.start
        raise _not_in(path, encoding, position) from error
    except UnicodeError as error:  # UTF-16 without a mark, or cut short
        raise InvalidInputError(
            f"{path.name} is not {encoding.upper()}: {error}. Pass encoding=."
        ) from error


def _not_in(path: Path, encoding: str, position: int) -> Exception:
    line, left = 1, position
    with open(path, "rb") as file:
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


def decode_text(path: Path, encoding: str) -> str:
    """Return the text of a file, or say which byte is not in the encoding."""
    with open_text(path, encoding) as file, decoding(file, path, encoding):
        return file.read()


def lines_of(path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of a file as ``str.splitlines`` gives them, a block at a time."""
    begun: list[str] = []  # pieces of a line whose end has not been read
    with open_text(path, encoding) as file:
        while True:
            with decoding(file, path, encoding):
                block = file.read(BLOCK)
            if not block:
                break
            if begun and begun[-1].endswith("\r"):  # the rest of a \r\n may follow
                block = begun.pop() + block
            pieces = block.splitlines(keepends=True)
            for i, piece in enumerate(pieces):
                begun.append(piece)
                if i + 1 < len(pieces) or _is_whole(piece):
                    yield "".join(begun).splitlines()[0]
                    begun.clear()
    if begun:
        yield "".join(begun).splitlines()[0]


def _is_whole(piece: str) -> bool:
    """Tell whether a line ends here, whatever follows."""
    return piece.splitlines()[0] != piece and not piece.endswith("\r")
