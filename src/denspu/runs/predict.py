"""New files through a saved model: a table of answers, in bounded memory.

While one chunk is scored, a thread reads the next one. No more than two are in memory.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.special import expit

from denspu._files import new_file
from denspu._parameters import Whole, check
from denspu._progress import many
from denspu._typing import FloatArray
from denspu.data._reading import Source, iter_items, require_pyarrow
from denspu.data.kinds import Items, kind_of
from denspu.exceptions import (
    DensPUError,
    InvalidParameterError,
    ModelFileError,
    RunFolderError,
)
from denspu.metrics import choose_threshold
from denspu.persistence import load
from denspu.runs.folder import (
    csv_file,
    parquet_file,
    ranks,
    read_input,
)
from denspu.runs.options import (
    AS_FITTED,
    HOW_THRESHOLD,
    RULES,
    Reading,
    threshold_wish,
)
from denspu.runs.why import Watch

CHUNK = 4096
CHUNK_BYTES = 128 * 1024**2
BLOCK, IMAGE_BLOCK = 1024, 256
"""Items scored together."""
ROWS = 16_384
"""Rows written at once; those of a row group of a Parquet file."""

COLUMNS = ("item", "score", "probability", "rank", "decision", "why")
SUFFIXES = (".csv", ".parquet")
READING = ("id_column", "text_column", "vector_column", "encoding")
"""Options of a run's reading that serve new files too."""

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
        items = many(self.n_items, kind_of(self.kind).noun)
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
    tell: Tell | None = None,
) -> Prediction:
    """Score new files with the model of a run and write the answers.

    Columns: ``item``, ``score``, ``probability``, ``rank`` (1 for the highest score),
    ``decision`` (1 or 0) and ``why``, one row an item, in the order of the source. A
    reason stands beside the 200 highest of those called positive and the 100 nearest
    to the threshold, or fewer. What cannot be read goes to ``<stem>.skipped.csv``
    beside it. Both files are written whole or not at all.

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
    tell : callable, optional
        Called after each chunk with the items scored so far, and those skipped.

    Returns
    -------
    Prediction
    """
    start = time.perf_counter()
    target = Path(out)
    beside = _check(target, overwrite, chunk)
    scorer = open_model(model, device, reading)
    cut = cut_of(scorer.model, threshold)
    loaded = time.perf_counter() - start
    names = partial(  # put aside on the disk until all ranks are known
        tempfile.TemporaryFile, "w+", encoding="utf-8", dir=target.parent, newline="\n"
    )
    open_table = csv_file if target.suffix.lower() == ".csv" else parquet_file
    try:
        with new_file(target) as answers, new_file(beside) as bad, names() as file:
            watch = scorer.watch(cut.value)
            scores, n_skipped = _score(scorer, source, chunk, file, bad, tell, watch)
            value, sentence = cut.among(scores)
            why = watch.why(value)
            file.seek(0)
            with open_table(answers, COLUMNS) as write:
                names_read = map(json.loads, file)
                for rows in _answers(names_read, scores, value, scorer, why):
                    write(rows)
    except DensPUError:
        raise
    except OSError as error:
        raise RunFolderError(
            f"{target} could not be written: {error.strerror or error}. Nothing was "
            "left behind. Make room, or choose another place."
        ) from error
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


def _check(target: Path, overwrite: bool, chunk: int) -> Path:
    """Refuse before anything is read; return where skipped items are listed."""
    suffix = target.suffix.lower()
    beside = target.with_name(f"{target.stem}.skipped.csv")
    if suffix not in SUFFIXES:
        raise InvalidParameterError(
            f"out={str(target)!r} must end in {' or '.join(SUFFIXES)}."
        )
    if suffix == ".parquet":
        require_pyarrow()
    check("chunk", chunk, Whole(1))
    if not target.parent.is_dir():
        raise RunFolderError(
            f"There is no folder {target.parent} to write {target.name} in. Make it, "
            "or choose another place."
        )
    for path in (target, beside):
        if path.is_dir():
            raise RunFolderError(f"{path} is a folder. Choose another name.")
        if path.exists() and not overwrite:
            raise RunFolderError(
                f"{path} exists already. Choose another name, or pass overwrite "
                "(--overwrite) to replace it."
            )
    return beside


# --- scoring -------------------------------------------------------------------------


def _score(
    scorer: Scorer,
    source: Source,
    chunk: int,
    names: IO[str],
    bad: Path,
    tell: Tell | None,
    watch: Watch,
) -> tuple[FloatArray, int]:
    """Return the scores of all items; names and skipped items go to the disk."""
    found = array("d")
    n_skipped = 0
    with csv_file(bad, ("item", "reason")) as list_skipped:
        for items, scores in scorer.scored(source, chunk):
            names.writelines(json.dumps(name) + "\n" for name in items.ids)
            list_skipped(items.skipped)
            found.frombytes(scores.tobytes())
            watch.add(items, scores)
            n_skipped += len(items.skipped)
            if tell is not None:
                tell(len(found), n_skipped)
    return np.frombuffer(found, dtype=np.float64), n_skipped


def _answers(
    names: Iterator[str],
    scores: FloatArray,
    threshold: float,
    scorer: Scorer,
    why: Mapping[int, str],
) -> Iterator[Iterable[Any]]:
    """Yield the rows of the table of answers, a block at a time."""
    rank = ranks(scores)
    for start in range(0, len(scores), ROWS):
        part = scores[start : start + ROWS]
        columns = (
            list(islice(names, len(part))),
            part.tolist(),
            scorer.probability(part).tolist(),
            rank[start : start + ROWS].tolist(),
            (part > threshold).astype(np.int64).tolist(),
            [why.get(i, "") for i in range(start, start + len(part))],
        )
        yield zip(*columns, strict=True)


# --- a model at work -----------------------------------------------------------------


@dataclass
class Scorer:
    """A loaded model, how its files are read, and how long that took."""

    model: Any
    plan: Mapping[str, Any]
    options: Mapping[str, Any]
    label_column: str | None = None
    """The column that marked the labelled positives, if they came in one table."""
    positives: list[str] = field(default_factory=list)
    """Names of the labelled positives that the model remembers."""
    read_seconds: float = 0.0
    """Spent on reading, in the thread that reads ahead."""
    score_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    """What was noted while reading."""

    @property
    def kind(self) -> str:
        """What the items are: image, table, text or embedding."""
        return str(self.plan["kind"])

    def scored(
        self, source: Source, chunk: int, aside: tuple[str, ...] = ()
    ) -> Iterator[tuple[Items, FloatArray]]:
        """Yield the items of a source with their scores, a chunk at a time."""
        options = {**self.options, "aside": aside, "max_bytes": CHUNK_BYTES}
        chunks = iter_items(source, like=self.plan, chunk=chunk, **options)
        # so many, whatever the chunk: the last bits of a product of matrices can depend
        # on the number of rows
        blocks = _in_blocks(chunks, self._block())
        # the filters of warnings are set once, here, and not by the thread
        quiet = kind_of(self.kind).quiet()
        with quiet, ThreadPoolExecutor(1, thread_name_prefix="read") as ahead:
            waiting = ahead.submit(next, blocks, None)
            while (items := waiting.result()) is not None:
                waiting = ahead.submit(next, blocks, None)
                self.read_seconds += items.seconds
                self.notes += items.notes
                start = time.perf_counter()
                scores = np.empty(0)
                if len(items):
                    scores = np.asarray(self.model.decision_function(items.X))
                self.score_seconds += time.perf_counter() - start
                yield items, np.asarray(scores, dtype=np.float64)

    def _block(self) -> int:
        """Return how many items are scored together."""
        size = kind_of(self.kind).values_in_one(self.plan)
        if size is None:
            return BLOCK
        return max(1, min(IMAGE_BLOCK, CHUNK_BYTES // (2 * size)))

    def watch(self, threshold: float) -> Watch:
        """Return what keeps the items to explain: no more than fit into a block."""
        share = min(1.0, self._block() / IMAGE_BLOCK)
        return Watch(self.model, self.kind, self.positives, threshold, share)

    def probability(self, scores: FloatArray) -> FloatArray:
        """Return what ``predict_proba`` says of rows with these scores."""
        if hasattr(self.model, "posterior_"):
            return np.asarray(self.model.posterior_(scores), dtype=np.float64)
        return np.asarray(expit(scores), dtype=np.float64)


def _in_blocks(chunks: Iterable[Items], size: int) -> Iterator[Items]:
    """Yield the same items in blocks of one size; the last one may be smaller."""
    held: list[Items] = []
    n = 0
    for items in chunks:
        held.append(items)
        n += len(items)
        if n < size:
            continue
        whole = Items.together(held)
        for start in range(0, n - size + 1, size):
            yield whole.take(np.arange(start, start + size))
            # what was told with the first block is not told again
            whole = replace(whole, skipped=[], notes=[], seconds=0.0)
        rest = np.arange(n - n % size, n)
        held, n = [whole.take(rest)] if len(rest) else [], len(rest)
    if held:
        yield Items.together(held)


def open_model(
    model: str | os.PathLike[str],
    device: str | None,
    reading: Reading = AS_FITTED,
) -> Scorer:
    """Load a model and how its files are read; ``reading`` goes before what it kept."""
    loaded = load(os.fspath(model), device=device)
    how = read_input(model)
    plan = how.get("plan")
    if not isinstance(plan, dict) or not hasattr(loaded, "decision_function"):
        raise ModelFileError(
            f"{os.fspath(model)} does not hold a method with its way of reading. Use "
            "the model folder of a run of denspu fit."
        )
    kept = how.get("options") or {}
    options = {name: kept[name] for name in READING if kept.get(name) is not None}
    options |= reading.given
    named = how.get("positives") or []
    return Scorer(loaded, plan, options, kept.get("label_column"), named)


@dataclass(frozen=True)
class Cut:
    """Where to cut, as asked for: by the model's evidence, or among the new items."""

    value: float
    """The threshold; NaN where the scores of the new items decide."""
    sentence: str
    top: int | None = None

    def among(self, scores: FloatArray) -> tuple[float, str]:
        """Return the threshold for these scores, and what it means."""
        if self.top is None:
            return self.value, self.sentence
        wanted = min(self.top, len(scores))
        choice = choose_threshold(scores, scores, rule="top", target=wanted)
        return choice.threshold, choice.sentence.replace("unlabelled row", "item")


def cut_of(model: Any, threshold: str | float | None) -> Cut:
    """Read ``--threshold``, and move the model's own threshold where it can be known.

    ``top=200`` is about the items at hand, all other rules about the model's evidence.
    """
    if threshold is None:
        value = float(getattr(model, "threshold_", 0.0))
        choice = getattr(model, "threshold_choice_", None)
        told = f"{choice.sentence} " if choice is not None else ""
        return Cut(value, f"{told}The model's own threshold, {value:.6g}.")
    given = float("nan")
    with suppress(ValueError):
        given = float(threshold)
    if np.isfinite(given):
        model.set_threshold(given)
        return Cut(given, f"Items that score above {given:.6g} are called positive.")
    text = str(threshold)
    if text.partition("=")[0].strip() not in RULES:
        raise InvalidParameterError(
            f"threshold={text!r} must be a number, {HOW_THRESHOLD}."
        )
    wish = threshold_wish(text)
    if wish.rule == "top":
        return Cut(float("nan"), "", top=int(wish.target or 1))
    model.set_threshold(**wish.arguments)
    told = model.threshold_choice_.sentence
    value = float(model.threshold_)
    return Cut(value, f"{told} The cut is a score of {value:.4g}.")
