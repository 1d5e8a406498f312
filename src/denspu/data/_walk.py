"""The files of a folder and its sub-folders, always in the same order."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from denspu.data._items import Skipped

IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif"}
)
TEXT_SUFFIXES = frozenset({".txt", ".text", ".md"})

MANY = 1_000
"""Files whose reading takes long enough to show how far it is."""


@dataclass
class Listing:
    """Files under one folder, sorted by path; hidden ones are left out."""

    top: Path
    files: list[str] = field(default_factory=list)
    """Paths below ``top``, as the file system spells them."""
    skipped: list[Skipped] = field(default_factory=list)

    def with_suffix(self, suffixes: frozenset[str]) -> list[str]:
        """Return the files whose name ends in one of ``suffixes``."""
        return [name for name in self.files if suffix(name) in suffixes]

    def kinds(self) -> str:
        """Return how many files there are of each suffix, in words."""
        counts = Counter(suffix(name) or "no suffix" for name in self.files)
        return ", ".join(f"{n} {kind}" for kind, n in counts.most_common(5)) or "none"


def suffix(name: str) -> str:
    """Return the suffix in lower case, with its dot."""
    return os.path.splitext(name)[1].lower()


def list_folder(top: Path) -> Listing:
    """List a folder and its sub-folders.

    Links are followed, but no folder is entered twice, so a circle of links ends. A
    folder that may not be read is listed among the skipped.
    """
    listing = Listing(top)
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
            listing.skipped.append(Skipped(shown(below) + "/", reason_of(error)))
            continue
        for entry in entries:
            name = f"{below}/{entry.name}" if below else entry.name
            if _is_folder(entry):
                waiting.append(name)
            elif _is_file_or_broken(entry):
                listing.files.append(name)
    listing.files.sort(key=os.fsencode)
    return listing


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_file_or_broken(entry: os.DirEntry[str]) -> bool:
    """Tell files and broken links from pipes, sockets and devices."""
    try:
        return entry.is_file() or entry.is_symlink()
    except OSError:
        return True


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
