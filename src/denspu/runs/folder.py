"""The run folder: what it holds, written whole or not at all.

==================  ==================================================================
file                content
==================  ==================================================================
``model/``          the model, and ``model/input.json``: how new files are read
``scores.csv``      every unlabelled item, highest score first; ``.parquet`` the same
``skipped.csv``     what could not be read, and why
``run.json``        all facts about the run
``report.html``     the report
==================  ==================================================================
"""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from denspu._files import as_json, new_folder, plain
from denspu._progress import Stage
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.data._reading import require_pyarrow
from denspu.data.kinds import Items
from denspu.exceptions import ModelFileError, RunFolderError
from denspu.methods._alarms import AlarmName
from denspu.methods._base import ENCODER, TRAINING
from denspu.metrics import PUReport
from denspu.persistence import load_extra, save

KEY = "key.json"
"""In the folder of work in progress: which rows and settings it belongs to."""
MODEL, RUN, REPORT, SKIPPED = "model", "run.json", "report.html", "skipped.csv"
SCORES_CSV, SCORES_PARQUET = "scores.csv", "scores.parquet"
INSIDE = {MODEL, RUN, REPORT, SKIPPED, SCORES_CSV, SCORES_PARQUET}
FULL = (errno.ENOSPC, errno.EDQUOT)

SaysWho: TypeAlias = Literal["given", "model", "scores"]
"""Who says how many are positive."""


# --- facts ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Count:
    """How many unlabelled items are positive."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Prior:
    """Share of positives inside U; without figures where it is not known."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    """How often the interval should hold the share."""
    source: SaysWho | None = None
    """Who says so; ``from`` in ``run.json``."""
    estimates: Mapping[str, float] = field(default_factory=dict)
    """By estimator."""

    @property
    def given(self) -> bool:
        """Whether the user gave it."""
        return self.source == "given"


@dataclass(frozen=True)
class Threshold:
    """Where the cut lies, and why there."""

    value: float
    rule: str
    """``own``, ``prior``, ``recall``, ``precision`` or ``top``."""
    target: float | None
    sentence: str


@dataclass(frozen=True)
class IfShare:
    """The figures if the share inside U were ``prior``."""

    prior: float
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    accuracy: float | None = None


@dataclass(frozen=True)
class Check:
    """One doubt, or its absence."""

    name: Literal["labels at random", "trivial model", "shortcut"] | AlarmName
    ok: bool | None
    """None where nothing could be seen."""
    sentence: str
    detail: str = ""
    """Numbers behind the sentence, in words."""


@dataclass(frozen=True)
class Promise:
    """A list whose errors are controlled."""

    name: str
    n: int
    level: float
    sentence: str
    """Which list, which promise, and what it assumes."""


@dataclass(frozen=True)
class Curve:
    """A training curve."""

    name: str
    label: str
    x: list[float]
    """Epochs."""
    y: list[float | None]


@dataclass(frozen=True)
class Tell:
    """A column or a word that tells positives from the rest."""

    name: str
    weight: float
    """Of a column: by how much it raised the score of items called positive, on
    average. Of a word: its mean TF-IDF weight in labelled positives, less that in U."""
    positives: str
    """Its usual value in items called positive; the share of labelled texts."""
    others: str
    """Its usual value in U; the share of texts of U."""


@dataclass(frozen=True)
class SkippedItem:
    """What could not be read."""

    item: str
    reason: str


@dataclass(frozen=True)
class Copy:
    """An unlabelled item that is a copy of a labelled positive."""

    positive: str
    unlabeled: str
    kind: Literal["exact", "near"]


@dataclass(frozen=True)
class RunFacts:
    """What ``run.json`` holds."""

    kind: str
    """image, table, text or embedding."""
    method: str
    """Registry key."""
    created: str
    """ISO time, UTC."""
    command: str
    settings: dict[str, Any]
    versions: dict[str, str]
    seconds: dict[str, float]
    """By step, and ``total``."""
    sources: dict[str, str]
    """``positive`` and ``unlabeled`` (or ``table``), as the user named them."""
    scenario: str
    n_positive: int
    """Labelled positives that were read."""
    n_held_out: int
    """Of them, those that judge the fit: kept from it, or all of them in turn."""
    n_unlabeled: int
    n_called: int
    """Unlabelled items above the threshold."""
    reading: list[str]
    """Sentences about what was read and how."""
    prior: Prior
    count: Count | None
    threshold: Threshold
    evaluation: PUReport | None
    """None without held-out positives."""
    sensitivity: list[IfShare]
    checks: list[Check]
    lists: list[Promise]
    stages: list[Stage]
    curves: list[Curve]
    warnings: list[str]
    skipped: list[SkippedItem] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    shortcuts: list[str] = field(default_factory=list)
    tells: list[Tell] = field(default_factory=list)
    """The strongest first; empty for pictures, embeddings, and methods without an
    embedding."""

    @property
    def in_turn(self) -> bool:
        """Whether every labelled positive was judged by a model without it."""
        return self.n_held_out == self.n_positive

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        found = asdict(replace(self, evaluation=None))
        found["prior"]["from"] = found["prior"].pop("source")
        found["evaluation"] = self.evaluation and self.evaluation.to_dict()
        whole: dict[str, Any] = plain(found)
        return whole


@dataclass(frozen=True, eq=False)
class RunRows:
    """The items of a run and what was found out about each; not in ``run.json``."""

    positive: Items
    unlabeled: Items
    score_positive: FloatArray
    held_out: BoolArray
    """Mask over ``positive``: who judges the fit; all of them in turn with folds."""
    score_unlabeled: FloatArray
    probability: FloatArray
    """P(y = 1) of each unlabelled item."""
    rank: IntArray
    """1 for the highest score in U."""
    decision: IntArray
    """1 or 0."""
    stage: NDArray[Any]
    """Words: what settled the item; one of ``STAGES`` in ``runs/fit.py``."""
    map_positive: FloatArray | None
    """Places on the map, n×2; None where there is no embedding."""
    map_unlabeled: FloatArray | None
    map_note: str
    """How much of the variance the map shows, in words."""
    chosen: IntArray
    """Positions in U of the reliable negatives Ñ; empty if the method has none."""
    odd_positive: IntArray
    """Positions in P of labelled positives that look mislabelled, oddest first."""
    why: Mapping[int, str] = field(default_factory=dict)
    """A sentence on some unlabelled items, by position in U."""
    near: Mapping[int, list[int]] = field(default_factory=dict)
    """Positions in P of the labelled positives that these items are nearest to."""


WriteReport = Callable[[Path, RunFacts, RunRows], object]
WriteRows = Callable[[Iterable[Any]], Any]


# --- writing -------------------------------------------------------------------------


def check_out(target: Path, overwrite: bool) -> None:
    """Refuse a place that is taken, before hours are spent."""
    if not target.exists():
        return
    if not target.is_dir():
        raise RunFolderError(f"--out {target} is a file. Choose another folder.")
    held = {path.name for path in target.iterdir()}
    if held and not overwrite:
        raise RunFolderError(
            f"--out {target} exists already. Choose another folder, or pass "
            "--overwrite to replace that run."
        )
    if held and (RUN not in held or held - INSIDE):
        strange = sorted(held - INSIDE) or sorted(held)
        raise RunFolderError(
            f"--out {target} holds more than a run ({', '.join(strange[:3])}), and "
            "--overwrite does not delete that. Choose another folder."
        )


def write_run(
    target: Path,
    model: Any,
    how_to_read: Mapping[str, Any],
    facts: RunFacts,
    rows: RunRows,
    *,
    report: WriteReport | None = None,
    overwrite: bool = False,
) -> None:
    """Write the folder; after an error nothing is left, and an older run is intact."""
    try:
        with new_folder(target, overwrite=overwrite) as work:
            save(model, work / MODEL, extra={"input": dict(how_to_read)})
            (work / RUN).write_bytes(as_json(facts.to_json()))
            with csv_file(work / SKIPPED, ("item", "reason")) as write:
                write((one.item, one.reason) for one in facts.skipped)
            _write_scores(work, rows)
            if report is not None:
                report(work / REPORT, facts, rows)
    except (OSError, ModelFileError, SafetensorError) as error:
        cause = error.__cause__ if isinstance(error, ModelFileError) else error
        if not isinstance(cause, OSError | SafetensorError):
            raise  # the model cannot be saved, and the disk is well
        raise RunFolderError(_why(target, cause)) from error


def _why(target: Path, cause: BaseException) -> str:
    cause = cause.__cause__ or cause
    full = getattr(cause, "errno", None) in FULL or "os error 28" in str(cause)
    what = "the disk is full" if full else str(cause)
    to_do = "Make room" if full else "Correct this"
    end = "Nothing was left behind; the folder, if there was one, is as before."
    work = WorkFolder(target)
    if work.useful:
        end = (
            f"{target.name}, if there was one, is as before. What the encoder learned "
            f"is kept in {work.path}, and the same command goes on from there."
        )
    return (
        f"{target} could not be written: {what}. {end} {to_do}, or choose another "
        "--out."
    )


# --- scores --------------------------------------------------------------------------


def ranks(scores: FloatArray) -> IntArray:
    """Return 1 for the highest score; of equal ones the first comes first."""
    order = np.argsort(-scores, kind="stable")
    rank = np.empty(len(scores), dtype=np.int64)
    rank[order] = np.arange(1, len(scores) + 1)
    return rank


def _write_scores(folder: Path, rows: RunRows) -> None:
    """Write the ranked list, highest score first; as Parquet if pyarrow is there."""
    order = np.argsort(rows.rank, kind="stable")
    columns = {
        "item": [rows.unlabeled.ids[i] for i in order],
        "score": rows.score_unlabeled[order].tolist(),
        "probability": rows.probability[order].tolist(),
        "rank": rows.rank[order].tolist(),
        "decision": rows.decision[order].tolist(),
        "stage": [str(rows.stage[i]) for i in order],
        "why": [rows.why.get(i, "") for i in order.tolist()],
    }
    with csv_file(folder / SCORES_CSV, list(columns)) as write:
        write(zip(*columns.values(), strict=True))
    if find_spec("pyarrow") is not None:
        with parquet_file(folder / SCORES_PARQUET, list(columns)) as write:
            write(zip(*columns.values(), strict=True))


@contextmanager
def csv_file(path: Path, header: Sequence[str]) -> Iterator[WriteRows]:
    """Open a CSV file for rows; numbers keep all their digits."""
    with open(
        path, "w", encoding="utf-8", errors="backslashreplace", newline=""
    ) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        yield writer.writerows


@contextmanager
def parquet_file(path: Path, header: Sequence[str]) -> Iterator[WriteRows]:
    """Open a Parquet file for rows of answers; each write is a row group."""
    arrow = require_pyarrow()
    kinds = dict.fromkeys(("score", "probability"), arrow.float64())
    kinds |= dict.fromkeys(("rank", "decision"), arrow.int64())
    schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in header])

    def write(rows: Iterable[Any]) -> None:
        columns = [list(column) for column in zip(*rows, strict=True)]
        names = columns[0]
        columns[0] = [n.encode("utf-8", "backslashreplace").decode() for n in names]
        file.write_table(arrow.table(columns, schema=schema))

    with arrow.parquet.ParquetWriter(path, schema) as file:
        yield write


# --- work in progress ----------------------------------------------------------------


class WorkFolder:
    """``RUN.part/``, where a run keeps what a second try can use."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f"{target.name}.part")
        self._made = [p for p in self.path.parents if not p.exists()]

    def reserve(self) -> None:
        """Make the folder, to see at once whether there is a place for the run."""
        self._refuse_strange()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(
                f"{self.path} cannot be made ({error.strerror or error}), and the run "
                "is written beside it. Choose another --out."
            ) from error

    def belongs_to(self, key: str) -> bool:
        """Tell whether it holds work on these rows and settings."""
        try:
            found = json.loads((self.path / KEY).read_text(encoding="utf-8"))
            return self.useful and str(found["key"]) == key
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def begin(self, key: str) -> None:
        """Open the folder; what another run left there is deleted."""
        if not self.belongs_to(key):
            shutil.rmtree(self.path)
            self.reserve()
            (self.path / KEY).write_text(json.dumps({"key": key}), encoding="utf-8")

    def _refuse_strange(self) -> None:
        if not self.path.exists():
            return
        held = {p.name for p in self.path.iterdir()} if self.path.is_dir() else {""}
        strange = {
            name for name in held - {KEY, TRAINING, ENCODER} if not name.startswith(".")
        }
        if strange or (held and KEY not in held):
            raise RunFolderError(
                f"{self.path} is needed for work in progress, and holds something "
                "else. Move it away, or choose another --out."
            )

    @property
    def useful(self) -> bool:
        """Tell whether a second try could go on from here."""
        folders = (self.path / TRAINING, self.path / ENCODER)
        return any(path.is_file() for top in folders for path in top.rglob("*"))

    def leave(self) -> None:
        """Delete the folder if it holds nothing that a second try could use."""
        if not self.useful:
            self.end()
            for parent in self._made:
                with suppress(OSError):
                    parent.rmdir()

    def end(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)


# --- reading it again ----------------------------------------------------------------


def read_input(model: str | os.PathLike[str]) -> dict[str, Any]:
    """Return how the items of a saved model were read; see ``docs/fit.md``.

    ``kind``, ``plan`` (for ``read_items(..., like=)``), ``options`` (further arguments
    of ``read_items``), ``threshold`` (in words), ``method``.
    """
    found = load_extra(os.fspath(model), "input")
    if not isinstance(found, dict):
        raise ModelFileError(
            f"{os.fspath(model)} holds a model without input.json: how files are to be "
            "read is not known. Use the model folder of a run of denspu fit, or load "
            "the model in Python."
        )
    return found
