"""Real data for learning from positive and unlabelled rows: tables, texts, images.

    python benchmarks/real_data.py --list                   # every task, as read
    python benchmarks/real_data.py --list --kind table

Tasks stand in ``specs/real/``. Their sources are split by a hash of the name, before
anything was run: choices are made on development; sealed parts are run once. Packages
are fetched by name with ordinary clients and kept in a cache.
"""

from __future__ import annotations

import argparse
import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from real_sources import PARTS, fetch, part_of

SPECS = Path(__file__).parent / "specs" / "real"
FILES = {
    "table": "real-tables.toml",
    "text": "real-texts.toml",
    "image": "real-images.toml",
}
MOST_ROWS, MOST_ROWS_LARGE = 20_000, 100_000
LABELS = (20, 40, 150)
"""Numbers of labels; a task serves those of which it has twice as many positives."""


@dataclass(frozen=True)
class Task:
    """Which rows of a data set are to be found among the others."""

    name: str
    source: str
    """The data set's common name; it decides the part."""
    part: str
    """``"development"``, ``"sealed-a"`` or ``"sealed-b"``."""
    kind: str
    """``"table"``, ``"text"`` or ``"image"``."""
    package: str
    """What :func:`real_sources.fetch` is asked for."""
    reader: str
    rows: int | None = None
    positives: int | None = None
    """How many there were when the task was declared; a package may change."""
    large: bool = False
    """Whether up to 100,000 rows are kept, not 20,000."""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the reader needs to know: every other key of the spec."""


def tasks(kind: str, part: str) -> list[Task]:
    """Return the tasks of one kind in one part of the suite, as the spec orders them.

    Parameters
    ----------
    kind : {"table", "text", "image"}
    part : {"development", "sealed-a", "sealed-b"}
    """
    path = SPECS / FILES[kind]
    if not path.exists():
        return []
    spec = tomllib.loads(path.read_text(encoding="utf-8"))
    packages = spec.get("packages", {})  # short names, so that a version stands once
    found = [declared(kind, entry, packages) for entry in spec["task"]]
    return [task for task in found if task.part == part]


def declared(kind: str, entry: dict[str, Any], packages: dict[str, str]) -> Task:
    """Return the task that an entry of a spec declares."""
    entry = entry | {"package": packages.get(entry["package"], entry["package"])}
    own = ("name", "source", "package", "reader", "rows", "positives", "large")
    given = {key: entry[key] for key in own if key in entry}
    options = {key: value for key, value in entry.items() if key not in own}
    return Task(part=part_of(entry["source"]), kind=kind, options=options, **given)


def load(task: Task, cache: Path | None = None) -> tuple[Any, NDArray[np.int64]]:
    """Return the rows of a task and which of them are positive.

    Tables are frames of floats and objects, gaps being NaN or None; texts are a list;
    images are bytes N×64×64×3.
    """
    folder = fetch(task.package, cache)
    if task.kind == "table":
        from real_tables import read_table

        X, y = read_table(task, folder)
    else:
        from real_media import READERS

        X, y = READERS[task.reader](folder, task.options)
    y = np.asarray(y, dtype=np.int64)
    found = {"rows": len(y), "positives": int(y.sum())}
    for what, count in found.items():
        if getattr(task, what) not in (count, None):
            raise ValueError(
                f"{task.name} has {count} {what}, not {getattr(task, what)}: "
                f"{task.package} has changed"
            )
    rows = kept(task, len(y))
    return taken(X, rows), y[rows]


def kept(task: Task, n_rows: int) -> NDArray[np.int64]:
    """Return which rows stay: all, or as many as a task may have, drawn by its name."""
    most = MOST_ROWS_LARGE if task.large else MOST_ROWS
    if n_rows <= most:
        return np.arange(n_rows)
    digest = hashlib.sha256(task.name.encode()).digest()
    draw = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    return np.sort(draw.choice(n_rows, most, replace=False))


def taken(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of a frame, a list or an array."""
    if hasattr(X, "iloc"):
        return X.iloc[rows].reset_index(drop=True)
    return [X[row] for row in rows] if isinstance(X, list) else X[rows]


def labels_for(y: NDArray[np.int64]) -> list[int]:
    """Return the numbers of labels that a task serves."""
    return [count for count in LABELS if 2 * count <= y.sum()]


# --- the list -------------------------------------------------------------------------


def line(task: Task, cache: Path | None = None) -> str:
    """Return what a task looks like once read."""
    X, y = load(task, cache)
    width = categories = gaps = "-"
    if task.kind == "table":
        width = str(X.shape[1])
        categories = str(sum(kind.kind == "O" for kind in X.dtypes))
        gaps = str(round(100 * float(X.isna().to_numpy().mean()), 1))
    return (
        f"{task.part:12} {task.kind:6} {task.source:20} {task.name:28} {len(y):7} "
        f"{width:>5} {categories:>5} {gaps:>5} {100 * y.mean():6.2f} {y.sum():6}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="read and show every task")
    parser.add_argument("--kind", choices=list(FILES), help="only these")
    parser.add_argument("--cache", type=Path, help="where packages are kept")
    given = parser.parse_args()
    if not given.list:
        parser.error("nothing to do: pass --list")
    print(
        f"{'part':12} {'kind':6} {'source':20} {'task':28} {'rows':>7} {'cols':>5} "
        f"{'cat.':>5} {'gap %':>5} {'pos. %':>6} {'pos.':>6}"
    )
    for kind in [given.kind] if given.kind else FILES:
        for part in PARTS:
            for task in tasks(kind, part):
                print(line(task, given.cache), flush=True)


if __name__ == "__main__":
    main()
