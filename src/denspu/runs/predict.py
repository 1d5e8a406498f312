"""New files through a saved model: a table of answers, in bounded memory."""

from __future__ import annotations

import csv
import json
import os
import tempfile
import time
import uuid
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from denspu._parameters import Whole
from denspu._typing import FloatArray
from denspu._words import NOUNS, many
from denspu.data._find import Source
from denspu.data._tables import require_pyarrow
from denspu.exceptions import DensPUError, InvalidParameterError, RunFolderError
from denspu.runs.options import AS_FITTED, Reading
from denspu.runs.scoring import CHUNK, Scorer, cut_of, open_model

COLUMNS = ("item", "score", "probability", "rank", "decision")
SUFFIXES = (".csv", ".parquet")
BLOCK = 16_384
"""Rows written at once; those of a row group of a Parquet file."""

Tell = Callable[[int, int], None]
"""Told after each chunk: items scored so far, items skipped."""


@dataclass(frozen=True)
class Prediction:
    """What was written, and how fast."""

    out: str
    skipped_out: str
    kind: str
    n_items: int
    n_called: int
    """Items above the threshold."""
    n_skipped: int
    threshold: float
    threshold_sentence: str
    seconds: dict[str, float]
    """``load``, ``read`` (in a thread, beside ``score``), ``score``, ``total``."""
    notes: list[str] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        """Items read and scored in a second."""
        spent = self.seconds["total"] - self.seconds["load"]
        return self.n_items / spent if spent > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "per_second": self.per_second}

    def summary(self) -> str:
        """Return one line: how many, how many called positive, how fast."""
        items = many(self.n_items, NOUNS[self.kind])
        return (
            f"{items} · {self.n_called:,} called positive · "
            f"{self.n_skipped:,} skipped · {self.per_second:,.0f} a second"
        )


def predict_files(
    model: str | os.PathLike[str],
    source: Source,
    out: str | os.PathLike[str],
    *,
    chunk: int = CHUNK,
    device: str | None = None,
    threshold: str | float | None = None,
    overwrite: bool = False,
    reading: Reading = AS_FITTED,
    workers: int | None = None,
    tell: Tell | None = None,
) -> Prediction:
    """Score new files with the model of a run and write the answers.

    Columns: ``item``, ``score``, ``probability``, ``rank`` (1 for the highest score)
    and ``decision`` (1 or 0), one row an item, in the order of the source. What cannot
    be read goes to ``<stem>.skipped.csv`` beside it, with the reason. Both files are
    written whole or not at all.

    Parameters
    ----------
    model : path
        The ``model`` folder of a run of ``denspu fit``.
    source : path or list of paths
        Files of the kind the model was fitted on; see :func:`denspu.data.read_items`.
    out : path
        ``.csv`` or ``.parquet``.
    chunk : int, default=4096
        Items read at a time; the next are read while these are scored. Scored are
        1,024 together (images 256), so that no answer depends on the chunk. Of each
        item, 8 bytes stay.
    device : str, optional
        ``"cpu"``, ``"cuda"``; by default what the model was saved with.
    threshold : float or str, optional
        A score, ``"prior"``, ``"recall=0.9"``, ``"precision=0.9"`` (chosen with the
        positives that the fit held out), or ``"top=200"`` (the highest of these
        items). By default the model's own.
    overwrite : bool, default=False
        Replace an older file.
    reading : Reading, optional
        How the new files are read, where they differ from those of the fit.
    workers : int, optional
        Threads that decode; all cores by default.
    tell : callable, optional
        Called after each chunk with the items scored so far, and those skipped.

    Returns
    -------
    Prediction
    """
    start = time.perf_counter()
    target = Path(out)
    _check(target, overwrite, chunk)
    scorer = open_model(model, device, reading, workers)
    cut = cut_of(scorer.model, threshold)
    loaded = time.perf_counter() - start
    beside = skipped_beside(target)
    with ExitStack() as stack:
        answers = stack.enter_context(_in_place_of(target))
        bad = stack.enter_context(_in_place_of(beside))
        names = stack.enter_context(_Spool(target.parent))
        with _writing(target):
            scores, n_skipped = _score(scorer, source, chunk, names, bad, tell)
            value, sentence = cut.among(scores)
            _write(answers, target.suffix.lower(), names, scores, value, scorer)
    return Prediction(
        out=str(target),
        skipped_out=str(beside),
        kind=scorer.kind,
        n_items=len(scores),
        n_called=int((scores > value).sum()),
        n_skipped=n_skipped,
        threshold=value,
        threshold_sentence=sentence,
        seconds={
            "load": loaded,
            "read": scorer.read_seconds,
            "score": scorer.score_seconds,
            "total": time.perf_counter() - start,
        },
        notes=scorer.notes,
    )


def skipped_beside(target: Path) -> Path:
    """Return the file that lists what was skipped."""
    return target.with_name(f"{target.stem}.skipped.csv")


def _check(target: Path, overwrite: bool, chunk: int) -> None:
    """Refuse before anything is read."""
    if target.suffix.lower() not in SUFFIXES:
        raise InvalidParameterError(
            f"out={str(target)!r} must end in {' or '.join(SUFFIXES)}."
        )
    if target.suffix.lower() == ".parquet":
        require_pyarrow()
    if not Whole(1).allows(chunk):
        raise InvalidParameterError(f"chunk={chunk!r} must be {Whole(1)}.")
    if not target.parent.is_dir():
        raise RunFolderError(
            f"There is no folder {target.parent} to write {target.name} in. Make it, "
            "or choose another place."
        )
    for path in (target, skipped_beside(target)):
        if path.is_dir():
            raise RunFolderError(f"{path} is a folder. Choose another name.")
        if path.exists() and not overwrite:
            raise RunFolderError(
                f"{path} exists already. Choose another name, or pass overwrite "
                "(--overwrite) to replace it."
            )


# --- scoring -------------------------------------------------------------------------


class _Spool:
    """Names put aside on the disk until all scores, and so all ranks, are known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> _Spool:
        try:
            self.file: IO[str] = tempfile.TemporaryFile(
                "w+", encoding="utf-8", dir=self.folder, prefix=".denspu.", newline="\n"
            )
        except OSError as error:
            raise _not_written(self.folder, error) from error
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a full disk was told before
            self.file.close()

    def add(self, names: list[str]) -> None:
        self.file.writelines(json.dumps(name) + "\n" for name in names)

    def __iter__(self) -> Iterator[str]:
        self.file.seek(0)
        return (json.loads(line) for line in self.file)


def _score(
    scorer: Scorer,
    source: Source,
    chunk: int,
    names: _Spool,
    bad: Path,
    tell: Tell | None,
) -> tuple[FloatArray, int]:
    """Return the scores of all items; names and skipped items go to the disk."""
    found = array("d")
    n_skipped = 0
    with _csv_file(bad, ("item", "reason")) as rows:
        for items, scores in scorer.scored(source, chunk):
            names.add(items.ids)
            rows.writerows(items.skipped)
            found.frombytes(scores.tobytes())
            n_skipped += len(items.skipped)
            if tell is not None:
                tell(len(found), n_skipped)
    return np.frombuffer(found, dtype=np.float64), n_skipped


def ranks(scores: FloatArray) -> Any:
    """Return 1 for the highest score; of equal ones the first comes first."""
    order = np.argsort(-scores, kind="stable")
    rank = np.empty(len(scores), dtype=np.int64)
    rank[order] = np.arange(1, len(scores) + 1)
    return rank


# --- writing -------------------------------------------------------------------------


class _Rows(Protocol):
    def writerows(self, rows: Any, /) -> Any: ...


def _write(
    path: Path,
    suffix: str,
    names: _Spool,
    scores: FloatArray,
    threshold: float,
    scorer: Scorer,
) -> None:
    """Write the answers, a block of rows at a time."""
    rank = ranks(scores)
    waiting = iter(names)
    make = _csv_file if suffix == ".csv" else _parquet_file
    with make(path, COLUMNS) as out:
        for start in range(0, len(scores), BLOCK):
            part = scores[start : start + BLOCK]
            columns = (
                list(islice(waiting, len(part))),
                part.tolist(),
                scorer.probability(part).tolist(),
                rank[start : start + BLOCK].tolist(),
                (part > threshold).astype(np.int64).tolist(),
            )
            out.writerows(zip(*columns, strict=True))


@contextmanager
def _csv_file(path: Path, header: tuple[str, ...]) -> Iterator[_Rows]:
    with open(
        path, "w", encoding="utf-8", errors="backslashreplace", newline=""
    ) as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(header)
        yield rows


@contextmanager
def _parquet_file(path: Path, header: tuple[str, ...]) -> Iterator[_Rows]:
    arrow = require_pyarrow()
    number, whole = arrow.float64(), arrow.int64()
    kinds = (arrow.string(), number, number, whole, whole)
    schema = arrow.schema(list(zip(header, kinds, strict=True)))

    with arrow.parquet.ParquetWriter(path, schema) as file:

        class Rows:
            def writerows(self, rows: Any, /) -> None:
                columns = [list(column) for column in zip(*rows, strict=True)]
                file.write_table(arrow.table(columns, schema=schema))

        yield Rows()


@contextmanager
def _in_place_of(target: Path) -> Iterator[Path]:
    """Give a name to write to; it becomes the target if nothing goes wrong."""
    work = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        yield work
        with _writing(target):
            with open(work, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(work, target)
    finally:
        with suppress(OSError):
            work.unlink()


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Say what went wrong with the disk."""
    try:
        yield
    except DensPUError:
        raise
    except OSError as error:
        raise _not_written(target, error) from error


def _not_written(target: Path, error: OSError) -> RunFolderError:
    return RunFolderError(
        f"{target} could not be written: {error.strerror or error}. Nothing was left "
        "behind. Make room, or choose another place."
    )
