"""One measured result, and the files it is kept in.

Every figure in the README or the docs comes from such a record. A file holds one JSON
object a line; a line is appended with one write and flushed. What a killed process may
leave behind, half a line at the end, is not read, and is cut off by the next write.
"""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from denspu._version import __version__
from denspu.exceptions import DataIntegrityError

PACKAGE = Path(__file__).parent.parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")


@dataclass(frozen=True)
class Record:
    """One run of one method on one data set with one seed."""

    dataset: str
    method: str
    variant: str
    n_labeled: int
    seed: int
    metrics: Mapping[str, float]
    """From true labels, on test data, in 0-1."""
    estimates: Mapping[str, Any]
    """Label-free figures."""
    seconds: Mapping[str, float]
    """By stage, and ``total``."""
    device: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else is worth keeping: purity of Ñ, boundary AUC, sizes."""
    versions: Mapping[str, str] = field(default_factory=lambda: versions())
    commit: str = field(default_factory=lambda: commit())
    command: str = field(default_factory=lambda: command())

    @property
    def ran_on_gpu(self) -> bool:
        """Whether it is of a run on a GPU."""
        return not self.device.startswith("cpu")


def versions() -> dict[str, str]:
    """Return the versions that shape a result."""
    found = {"denspu": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # pragma: no cover - core packages exist
            found[package] = "absent"
    return found


def commit() -> str:
    """Return the source's commit: ``DENSPU_COMMIT``, else what git says.

    It is ``-dirty`` where files of the package differ from it. Others do not count:
    the records themselves change while they are written.
    """
    if given := os.environ.get("DENSPU_COMMIT"):
        return given
    try:
        if not _git("ls-files", "--", "benchmark"):
            return "unknown"  # installed inside a repository of something else
        name = _git("describe", "--always", "--abbrev=12")
        changed = _git("status", "--porcelain", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{name}-dirty" if changed else name


def _git(*words: str) -> str:
    answer = subprocess.run(
        ["git", *words],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return answer.stdout.strip()


def command() -> str:
    """Return the command line without the folders of the machine it ran on."""
    program, *words = [Path(w).name if Path(w).is_absolute() else w for w in sys.argv]
    if Path(program).name in ("denspu", "__main__.py"):
        return shlex.join(["denspu", *words])
    return shlex.join(["python", program, *words])


def write_record(record: Record, path: str | Path) -> None:
    """Append one record to a ``.jsonl`` file."""
    path = Path(path)
    for name, value in record.metrics.items():
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}, which is no figure and no JSON.")
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(plain(asdict(record)), sort_keys=True, allow_nan=False) + "\n"
    with path.open("ab") as file:
        _mend_end(path)
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


def plain(value: Any) -> Any:
    """Return a value as JSON knows it: NumPy's become Python's, NaN and inf null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def _mend_end(path: Path) -> None:
    """Cut off half a line at the end of a file; end a whole one."""
    data = path.read_bytes()
    if not data or data.endswith(b"\n"):
        return
    start = data.rfind(b"\n") + 1
    with path.open("r+b") as file:
        if _is_json(data[start:]):
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
        else:
            file.truncate(start)


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def read_records(path: str | Path) -> list[Record]:
    """Read all records of a file; a missing file has none."""
    path = Path(path)
    if not path.exists():
        return []
    data = path.read_bytes()
    lines = data.splitlines()
    if lines and not data.endswith(b"\n") and not _is_json(lines[-1]):
        lines.pop()
    return [_parsed(line, path, i + 1) for i, line in enumerate(lines)]


def _parsed(line: bytes, path: Path, number: int) -> Record:
    try:
        return Record(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise DataIntegrityError(
            f"Line {number} of {path} is not a record: {error}. Take the line out, or "
            "the file back from version control."
        ) from None


# --- records of cells ----------------------------------------------------------------


def recorded(records: Iterable[Record]) -> dict[str, Record]:
    """Return the record of each cell: its first success, else its last failure."""
    found: dict[str, Record] = {}
    for record in records:
        cell = record.extra.get("cell")
        if cell is None:
            continue
        if "total" not in record.seconds:
            raise DataIntegrityError(
                f"The record of cell {cell} ({record.variant}, seed {record.seed}) has "
                "no total seconds. Take its line out of the file of records, or the "
                "file back from version control."
            )
        if cell in found and not failed(found[cell]):
            continue
        found[cell] = record
    return found


def failed(record: Record) -> bool:
    """Tell whether a record is of a run that raised."""
    return "error" in record.extra


def summarize(records: Iterable[Record], metric: str) -> tuple[float, float, int]:
    """Return mean, standard deviation over seeds, and the number of seeds."""
    values = np.array([record.metrics[metric] for record in records])
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return float(values.mean()), spread, len(values)
