"""Where a set may come from: a folder, the official download, a system package.

Each source ends as a folder of files, and one function decodes and checks any of
them. A source that cannot serve raises :class:`Unavailable` with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

from denspu.data._cache import check_arrays
from denspu.data._formats import require_pillow
from denspu.data._spec import Arrays, Package, Spec
from denspu.exceptions import DataIntegrityError

MAX_DEPTH = 8
CONNECT_SECONDS = 5
READ_SECONDS = 30
CLIENT_SECONDS = 600


class Unavailable(Exception):
    """A source cannot serve the set; the text says why."""


# --- folders ------------------------------------------------------------------------


def read_folder(spec: Spec, folder: Path) -> Arrays:
    """Decode and check the set from a folder or one of its sub-folders.

    Every folder that holds all files of a layout is tried, because MNIST and
    Fashion-MNIST share their file names.
    """
    if not folder.is_dir():
        raise Unavailable(f"{folder} is not a folder")
    faults = []
    nearest: list[str] = []
    for place in _folders(folder):
        for layout in spec.layouts:
            missing = layout.missing(place)
            if not missing:
                try:
                    arrays = layout.read(place)
                    check_arrays(arrays, spec, where=str(place))
                    return arrays
                except DataIntegrityError as error:
                    faults.append(error)
            elif len(missing) < len(layout.files):
                nearest.append(f"{place} lacks {', '.join(missing)}")
    if faults:
        raise faults[0]
    if nearest:
        raise Unavailable("; ".join(nearest[:3]))
    if any(_holds(place, spec.refused) for place in _folders(folder)):
        raise Unavailable(spec.refusal)
    raise Unavailable(
        f"no {spec.name} files in {folder} or its sub-folders ({MAX_DEPTH} deep)"
    )


def _folders(top: Path) -> Iterator[Path]:
    """Give a folder and its sub-folders, the shallow ones first."""
    level = [top]
    for _ in range(MAX_DEPTH + 1):
        yield from level
        level = [
            Path(entry.path)
            for folder in level
            for entry in sorted(_entries(folder), key=lambda entry: entry.name)
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        ]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        return []


def _holds(folder: Path, names: tuple[str, ...]) -> bool:
    return any((folder / name).is_file() for name in names)


# --- official download --------------------------------------------------------------


def download(spec: Spec, work: Path) -> Path:
    """Download the official files into ``work``, from the first mirror that answers."""
    try:
        import pooch
    except ImportError as error:
        raise Unavailable(
            "pooch is not installed: pip install 'denspu[data]'"
        ) from error
    downloader = pooch.HTTPDownloader(timeout=(CONNECT_SECONDS, READ_SECONDS))
    reasons = []
    for mirror in spec.mirrors:
        try:
            for file in spec.files:
                pooch.retrieve(
                    mirror + file.name,
                    known_hash=f"md5:{file.md5}",
                    fname=file.name,
                    path=work,
                    downloader=downloader,
                )
            return work
        except OSError as error:  # every error of requests is one
            reasons.append(f"nothing from {mirror} ({_short(error)})")
        except ValueError as error:  # pooch's word for a wrong checksum
            raise DataIntegrityError(f"{mirror}{file.name}: {error}") from error
    raise Unavailable("; ".join(reasons))


def _short(error: Exception) -> str:
    """Return the kind of a network error, and the text of any other."""
    kind = type(error).__name__
    if "Connect" in kind or "Timeout" in kind:
        return kind
    return f"{kind}: {str(error)[:100]}"


# --- packages of the system ---------------------------------------------------------


def from_package(package: Package, work: Path) -> Path:
    """Fetch and unpack a system package into ``work``, installing nothing."""
    if package.client == "apt-get":
        _run(["apt-get", "download", package.name], work)
        _run(["dpkg", "-x", str(_only(work, "*.deb")), str(work)], work)
        return work
    if shutil.which("npm"):
        require_pillow()  # before a long download, not after
    _run(["npm", "pack", "--ignore-scripts", package.name], work)
    archive = _only(work, "*.tgz")
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise Unavailable(f"{archive.name} cannot be unpacked: {error}") from error
    return work


def _run(command: list[str], work: Path) -> None:
    """Run a package client in ``work``, quietly and not for ever."""
    client = command[0]
    if shutil.which(client) is None:
        raise Unavailable(f"{client} is not installed")
    try:
        done = subprocess.run(
            command,
            cwd=work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CLIENT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{client} took over {CLIENT_SECONDS} seconds") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no message"]
        raise Unavailable(f"{' '.join(command[:2])} failed: {said[-1]}")


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise Unavailable(f"the package client left no {pattern} file")
    return found[0]
