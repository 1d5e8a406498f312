"""The run folder: written whole or not at all.

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
import io
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from denspu._files import as_json, new_folder
from denspu.exceptions import ModelFileError, RunFolderError
from denspu.methods._base import ENCODER, TRAINING
from denspu.persistence import load_extra, save, size_of
from denspu.runs.facts import RunFacts, RunRows

KEY = "key.json"
"""In the folder of work in progress: which rows and settings it belongs to."""
MODEL, RUN, REPORT, SKIPPED = "model", "run.json", "report.html", "skipped.csv"
SCORES_CSV, SCORES_PARQUET = "scores.csv", "scores.parquet"
INSIDE = {MODEL, RUN, REPORT, SKIPPED, SCORES_CSV, SCORES_PARQUET}

FULL = (errno.ENOSPC, errno.EDQUOT)
WriteReport = Callable[[Path, RunFacts, RunRows], object]


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
    columns = score_columns(rows)
    lists = [np.asarray(column).tolist() for column in columns.values()]
    texts = {
        SCORES_CSV: _csv(columns, zip(*lists, strict=True)),
        SKIPPED: _csv(("item", "reason"), [(s.item, s.reason) for s in facts.skipped]),
        RUN: as_json(facts.to_json()),
    }
    try:
        with new_folder(target, overwrite=overwrite) as work:
            save(model, work / MODEL, extra={"input": dict(how_to_read)})
            for name, content in texts.items():
                (work / name).write_bytes(content)
            write_parquet(work / SCORES_PARQUET, columns)
            if report is not None:
                report(work / REPORT, facts, rows)
    except (OSError, ModelFileError, SafetensorError) as error:
        cause = error.__cause__ if isinstance(error, ModelFileError) else error
        if not isinstance(cause, OSError | SafetensorError):
            raise  # the model cannot be saved, and the disk is well
        raise RunFolderError(_why(target, cause, model, texts)) from error


def _why(
    target: Path, cause: BaseException, model: Any, texts: Mapping[str, bytes]
) -> str:
    cause = cause.__cause__ or cause
    full = getattr(cause, "errno", None) in FULL or "os error 28" in str(cause)
    start = f"{target} could not be written: "
    end = "Nothing was left behind; the folder, if there was one, is as before."
    work = WorkFolder(target)
    if work.useful:
        end = (
            f"{target.name}, if there was one, is as before. What the encoder learned "
            f"is kept in {work.path}, and the same command goes on from there."
        )
    if not full:
        return f"{start}{cause}. {end} Correct this, or choose another --out."
    place = next(p for p in (target, *target.parents) if p.exists())
    free = shutil.disk_usage(place).free
    needed = size_of(model) + sum(map(len, texts.values())) + len(texts[SCORES_CSV])
    sizes = [
        f"{n / 1e6:,.1f} MB" if n >= 1e5 else f"{n / 1e3:,.1f} kB"
        for n in (needed, free)
    ]
    return (
        f"{start}the disk is full. At least {sizes[0]} are needed, more with the "
        f"report, and {sizes[1]} are free. {end} Make room, or choose another --out."
    )


# --- scores --------------------------------------------------------------------------


def score_columns(rows: RunRows) -> dict[str, Any]:
    """Return the columns of the ranked list, highest score first."""
    order = np.argsort(rows.rank, kind="stable")
    return {
        "item": [rows.unlabeled.ids[i] for i in order],
        "score": rows.score_unlabeled[order],
        "probability": rows.probability[order],
        "rank": rows.rank[order],
        "decision": rows.decision[order],
        "stage": [str(rows.stage[i]) for i in order],
    }


def _csv(header: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> bytes:
    """Return a table as CSV; numbers keep all their digits."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def write_parquet(path: Path, columns: Mapping[str, Any]) -> None:
    """Write the ranked list as Parquet, where pyarrow is installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return
    clean = [
        name.encode("utf-8", "backslashreplace").decode() for name in columns["item"]
    ]
    pq.write_table(pa.table({**columns, "item": clean}), path)


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
