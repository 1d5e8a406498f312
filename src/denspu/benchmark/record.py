"""One measured result: fit and measure, and the files that records are kept in.

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
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from denspu import __version__
from denspu._files import plain
from denspu._share import prior_cut
from denspu._validation import take_rows
from denspu.data import Benchmark, PUDataset
from denspu.exceptions import DataIntegrityError
from denspu.metrics import oracle_metrics

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


def versions() -> dict[str, str]:
    """Return the versions that shape a result."""
    found = {"denspu": __version__, "python": platform.python_version()}
    return found | {package: version(package) for package in PACKAGES}


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
    with path.open("a+b") as file:
        file.seek(0)
        whole = _whole(file.read())
        file.truncate(len(whole))
        end = b"\n" if whole and not whole.endswith(b"\n") else b""
        file.write(end + line.encode())
        file.flush()
        os.fsync(file.fileno())


def _whole(data: bytes) -> bytes:
    """Return lines without the half one at the end that a kill may leave."""
    last = data.rpartition(b"\n")[2]
    try:
        json.loads(last)
    except ValueError:
        return data[: len(data) - len(last)]
    return data


def read_records(path: str | Path) -> list[Record]:
    """Read all records of a file; a missing file has none."""
    path = Path(path)
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(_whole(path.read_bytes()).splitlines(), 1):
        try:
            found.append(Record(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise DataIntegrityError(
                f"Line {number} of {path} is not a record: {error}. Take the line out, "
                "or the file back from version control."
            ) from None
    return found


# --- records of cells ----------------------------------------------------------------


def recorded(records: Iterable[Record]) -> dict[str, Record]:
    """Return the record of each cell: its first success, else its last failure."""
    found: dict[str, Record] = {}
    for record in records:
        cell = record.extra.get("cell")
        if cell is None or (cell in found and not failed(found[cell])):
            continue
        if "total" not in record.seconds:
            raise DataIntegrityError(
                f"The record of cell {cell} ({record.variant}, seed {record.seed}) has "
                "no total seconds. Take its line out of the file of records, or the "
                "file back from version control."
            )
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


# --- measuring ---------------------------------------------------------------------


def measure(
    model: Any,
    pu: PUDataset,
    benchmark: Benchmark,
    *,
    method: str,
    variant: str,
    seed: int,
    labels: Any = None,
    known_negative: Any = None,
    share_called: float | None = None,
) -> Record:
    """Fit ``model`` on ``pu`` and return the record of its test figures.

    The model sees ``pu.X`` and ``pu.y`` alone; the oracle is opened afterwards. A
    supervised comparison gives its own ``labels`` and ``known_negative``. With
    ``share_called`` the cut is moved so that this share of U is called positive.
    """
    given = {} if known_negative is None else {"known_negative": known_negative}
    start = time.perf_counter()
    model.fit(pu.X, pu.y if labels is None else labels, **given)
    fit_seconds = time.perf_counter() - start
    cut = 0.0
    if share_called is not None:
        of_unlabeled = model.decision_function(take_rows(pu.X, np.asarray(pu.y) == 0))
        cut = prior_cut(of_unlabeled, share_called)
    y_test = np.isin(benchmark.y_test, benchmark.positive).astype(np.int64)
    stages = getattr(model, "stages_", None)
    facts = {stage.name: stage.facts for stage in stages or ()}
    return Record(
        dataset=benchmark.name,
        method=method,
        variant=variant,
        n_labeled=pu.n_labeled,
        seed=seed,
        metrics=oracle_metrics(y_test, model.decision_function(benchmark.X_test) - cut),
        estimates=_label_free(facts),
        seconds={**(stages.seconds if stages else {}), "total": fit_seconds},
        device=device_name(getattr(model, "device_", "cpu")),
        extra={"stages": facts, "oracle": oracle_of_walk(model, pu)},
    )


def oracle_of_walk(model: Any, pu: PUDataset) -> dict[str, float]:
    """Return what true labels say of a Dens-PU walk on its own rows.

    AUC of the boundary, purity of Ñ where there is one, and the share of U whose
    refined label is right.
    """
    if not hasattr(model, "unlabeled_index_"):
        return {}
    true = pu.oracle.labels
    unlabeled = true[model.unlabeled_index_]
    found = {
        "boundary_auc": float(roc_auc_score(unlabeled, model.unlabeled_scores_)),
        "negative_share_of_unlabeled": float(np.mean(unlabeled == 0)),
    }
    if hasattr(model, "negative_index_"):
        found["purity"] = float(np.mean(true[model.negative_index_] == 0))
    if hasattr(model, "labels_"):
        called = model.labels_[model.unlabeled_index_] > 0.5
        found["unlabeled_right"] = float(np.mean(called == unlabeled))
    return found


BOUNDARY_FACTS = ("auc_held_out_vs_unlabeled", "held_out_inlier_share", "expected_loss")
REFINER_FACTS = (
    "called_positive",
    "prior_in_unlabeled",
    "prior_interval",
    "held_out_recall",
    "held_out_called",
)


def _label_free(facts: dict[str, Any]) -> dict[str, Any]:
    found = {
        name: facts[stage][name]
        for stage, names in (("boundary", BOUNDARY_FACTS), ("refine", REFINER_FACTS))
        for name in names
        if name in facts.get(stage, {})
    }
    return {**found, **quality_of_labels(found)}


def quality_of_labels(found: Mapping[str, float]) -> dict[str, float]:
    """Return estimated precision, F1 and accuracy on U of what judged held-out rows.

    With recall r on held-out positives, share q of U called positive and share π of
    positives in U: r·π are rightly called, q - r·π wrongly, (1 - r)·π missed.
    """
    if "held_out_recall" not in found:
        return {}
    recall, called = found["held_out_recall"], found["held_out_called"]
    prior = found["prior_in_unlabeled"]
    right = min(recall * prior, called)
    return {
        "estimated_precision": right / called if called else 0.0,
        "estimated_f1": 2 * right / (called + prior) if called + prior else 0.0,
        "estimated_accuracy": 1 - (called - right) - (prior - right),
    }


def device_name(device: str) -> str:
    """Return the GPU's model name, or the processor's kind with its threads."""
    import torch

    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"
