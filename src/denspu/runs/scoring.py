"""A saved model at work: files in, scores out, a chunk at a time.

While one chunk is scored, a thread reads the next one. No more than two are in memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit

from denspu._frame import Frame
from denspu._typing import FloatArray
from denspu.data import Items, iter_items
from denspu.data._find import Source
from denspu.data._image_headers import quiet_decoding
from denspu.exceptions import InvalidParameterError, ModelFileError
from denspu.metrics import choose_threshold
from denspu.persistence import load
from denspu.runs.folder import read_input
from denspu.runs.options import AS_FITTED, RULES, Reading, threshold_wish

CHUNK = 4096
CHUNK_BYTES = 128 * 1024**2
BLOCK, IMAGE_BLOCK = 1024, 256
READING = ("id_column", "text_column", "vector_column", "encoding")
"""Options of a run's reading that serve new files too."""

HOW_THRESHOLD = "a number, prior, recall=0.9, precision=0.9 or top=200"


@dataclass
class Scorer:
    """A loaded model, how its files are read, and how long that took."""

    model: Any
    plan: Mapping[str, Any]
    options: Mapping[str, Any]
    label_column: str | None = None
    """The column that marked the labelled positives, if they came in one table."""
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
        blocks = in_blocks(chunks, self.block)
        # the filters of warnings are set once, here, and not by the thread
        quiet = quiet_decoding if self.kind == "image" else nullcontext()
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

    @property
    def block(self) -> int:
        """Items scored together, whatever the chunk: an answer may not depend on it.

        The last bits of a product of matrices can depend on the number of rows.
        """
        if self.kind != "image":
            return BLOCK
        size = self.plan["height"] * self.plan["width"] * self.plan["channels"]
        return max(1, min(IMAGE_BLOCK, CHUNK_BYTES // (2 * size)))

    def probability(self, scores: FloatArray) -> FloatArray:
        """Return what ``predict_proba`` says of rows with these scores."""
        if hasattr(self.model, "posterior_"):
            return np.asarray(self.model.posterior_(scores), dtype=np.float64)
        return np.asarray(expit(scores), dtype=np.float64)


def in_blocks(chunks: Iterable[Items], size: int) -> Iterator[Items]:
    """Yield the same items in blocks of one size; the last one may be smaller."""
    held: list[Items] = []
    n = 0
    for items in chunks:
        held.append(items)
        n += len(items)
        if n < size:
            continue
        whole = joined(held)
        for start in range(0, n - size + 1, size):
            part = whole.take(np.arange(start, start + size))
            yield part if start == 0 else _bare(part)
        rest = np.arange(n - n % size, n)
        held, n = [_bare(whole.take(rest))] if len(rest) else [], len(rest)
    if held:
        yield joined(held)


def joined(parts: Sequence[Items]) -> Items:
    """Put chunks of one source together."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    rows = [part.X for part in parts]
    X: Any
    if isinstance(first.X, Frame):
        X = Frame.stacked(rows)
    elif isinstance(first.X, list):
        X = [text for texts in rows for text in texts]
    else:
        X = np.concatenate(rows)
    return replace(
        first,
        X=X,
        ids=[name for part in parts for name in part.ids],
        facts={},
        aside={
            name: np.concatenate([part.aside[name] for part in parts])
            for name in first.aside
        },
        skipped=[one for part in parts for one in part.skipped],
        notes=[note for part in parts for note in part.notes],
        seconds=sum(part.seconds for part in parts),
    )


def _bare(items: Items) -> Items:
    """Return items without what was told with the block before."""
    return replace(items, skipped=[], notes=[], seconds=0.0)


def open_model(
    model: str | os.PathLike[str],
    device: str | None,
    reading: Reading = AS_FITTED,
    workers: int | None = None,
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
    if workers is not None:
        options["workers"] = workers
    return Scorer(loaded, plan, options, kept.get("label_column"))


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
    given = _number(threshold)
    if given is not None:
        model.set_threshold(given)
        return Cut(given, f"Items that score above {given:.6g} are called positive.")
    text = str(threshold)
    if text.partition("=")[0].strip() not in RULES:
        raise InvalidParameterError(f"threshold={text!r} must be {HOW_THRESHOLD}.")
    wish = threshold_wish(text)
    if wish.rule == "top":
        return Cut(float("nan"), "", top=int(wish.target or 1))
    model.set_threshold(**wish.arguments)
    value = float(model.threshold_)
    told = f"{model.threshold_choice_.sentence} The cut is a score of {value:.4g}."
    return Cut(value, told)


def _number(threshold: str | float) -> float | None:
    try:
        value = float(threshold)
    except ValueError:
        return None
    if not np.isfinite(value):
        raise InvalidParameterError(f"threshold={threshold!r} must be {HOW_THRESHOLD}.")
    return value
