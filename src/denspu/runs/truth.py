"""True labels: read from a file or a column, and matched with scored items."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from denspu._typing import FloatArray, IntArray
from denspu._words import many
from denspu.data._reading import Source
from denspu.data._tables import (
    POSITIVE,
    TABLE_SUFFIXES,
    UNLABELED,
    labels_of,
    need_column,
    raw_chunks,
    read_raw,
    row_ids,
)
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError
from denspu.runs.folder import RUN, SCORES_CSV, SCORES_PARQUET
from denspu.runs.predict import CHUNK, Scorer

ITEM, LABEL = ("item", "id"), ("label", "y")
"""Columns of a file of labels, if no name is given."""


@dataclass
class Labels:
    """1 and 0 by the name of an item."""

    by_item: dict[str, int]
    n_unknown: int
    """Rows without a label."""


@dataclass
class Matched:
    """Items with a true label, and how many labels found none."""

    ids: list[str] = field(default_factory=list)
    truths: list[int] = field(default_factory=list)
    found: list[float] = field(default_factory=list)
    n_items: int = 0
    n_skipped: int = 0
    n_labels: int = 0
    n_unknown: int = 0
    unmatched: list[str] = field(default_factory=list)
    first_item: str = ""

    @property
    def truth(self) -> IntArray:
        """1 and 0."""
        return np.array(self.truths, dtype=np.int64)

    @property
    def scores(self) -> FloatArray:
        """Scores of the labelled items."""
        return np.array(self.found, dtype=np.float64)

    def add(self, ids: Iterable[str], truths: Iterable[int], scores: Any) -> None:
        """Note items with their labels and scores."""
        self.ids += ids
        self.truths += truths
        self.found += np.asarray(scores, dtype=np.float64).tolist()


def true_labels(values: Iterable[Any], column: str, source: str) -> list[int | None]:
    """Return 1, 0, or None for a gap; other words are refused by name."""
    found: list[int | None] = []
    other: Counter[str] = Counter()
    for value in values:
        gap = value is None or value != value
        word = str(value).strip().lower()
        if not gap and word not in POSITIVE | UNLABELED:
            other[word] += 1
        found.append(None if gap else int(word in POSITIVE))
    if other:
        shown = ", ".join(
            f"{word!r} ({many(n, 'row')})" for word, n in other.most_common(5)
        )
        raise LabelError(
            f"Column {column!r} of {source} holds {shown}. True labels are 1 or true "
            "for a positive, 0, false or -1 for a negative, and nothing where it is "
            "not known. Rewrite the column."
        )
    return found


def read_labels(
    path: Path, item_column: str | None, label_column: str | None, encoding: str | None
) -> Labels:
    """Read a table with names of items and their true labels."""
    if not path.is_file():
        raise InvalidInputError(f"labels={str(path)!r}: there is no such file.")
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise InvalidInputError(
            f"labels={str(path)!r} must be a table: .csv, .tsv or .parquet with the "
            f"columns {ITEM[0]!r} and {LABEL[0]!r}."
        )
    table = read_raw(path, encoding or "utf-8")
    item = _column(table.names, item_column, ITEM, "item_column", path)
    label = _column(table.names, label_column, LABEL, "label_column", path)
    if not table.rows:
        raise InvalidInputError(f"{path} has a header and no rows.")
    labels = true_labels(table.columns[label], label, str(path))
    names = row_ids(table, item)
    known = {n: y for n, y in zip(names, labels, strict=True) if y is not None}
    return Labels(known, len(labels) - len(known))


def _column(
    names: list[str],
    given: str | None,
    usual: tuple[str, ...],
    argument: str,
    path: Path,
) -> str:
    if given is not None:
        return need_column(names, given, argument, str(path))
    found = [name for name in usual if name in names]
    if not found:
        raise InvalidInputError(
            f"{path} has no column {' or '.join(map(repr, usual))}; it has "
            f"{names[:8]}. Name it with {argument} (--{argument.replace('_', '-')})."
        )
    return found[0]


# --- matching ------------------------------------------------------------------------


def _match(items: Iterable[tuple[list[str], FloatArray]], labels: Labels) -> Matched:
    """Match labels with items that come with their scores."""
    found = Matched(n_labels=len(labels.by_item), n_unknown=labels.n_unknown)
    left = dict(labels.by_item)
    for ids, scores in items:
        found.first_item = found.first_item or next(iter(ids), "")
        found.n_items += len(ids)
        at = [i for i, name in enumerate(ids) if name in left]
        found.add([ids[i] for i in at], [left.pop(ids[i]) for i in at], scores[at])
    found.unmatched = list(left)
    return found


def from_files(scorer: Scorer, source: Source, labels: Labels, chunk: int) -> Matched:
    """Score a source and match its items with labels."""
    skipped = []

    def scored() -> Iterator[tuple[list[str], FloatArray]]:
        for items, scores in scorer.scored(source, chunk):
            skipped.extend(items.skipped)
            yield items.ids, scores

    found = _match(scored(), labels)
    found.n_skipped = len(skipped)
    return found


def from_column(scorer: Scorer, source: Source, column: str, chunk: int) -> Matched:
    """Score a table that holds its own labels."""
    found = Matched()
    for items, scores in scorer.scored(source, chunk, aside=(column,)):
        if column not in items.aside:
            raise InvalidParameterError(
                f"label_column={column!r} names a column, and {items.source} is no "
                "table. Pass the labels as a file (--labels)."
            )
        truths = true_labels(items.aside[column], column, items.source)
        at = [i for i, y in enumerate(truths) if y is not None]
        found.add([items.ids[i] for i in at], [truths[i] or 0 for i in at], scores[at])
        found.n_items += len(items)
        found.n_skipped += len(items.skipped)
        found.n_labels += len(at)
        found.n_unknown += len(items) - len(at)
    return found


def from_run(model: Path, labels: Labels) -> Matched:
    """Match labels with the unlabelled items of the run that the model lies in."""
    home = model.resolve().parent
    path = next(
        (home / n for n in (SCORES_PARQUET, SCORES_CSV) if (home / n).is_file()), None
    )
    if path is None:
        raise InvalidInputError(
            f"There is no {SCORES_CSV} beside {model}. Pass the items to judge as well."
        )

    def scored() -> Iterator[tuple[list[str], FloatArray]]:
        for table in raw_chunks(path, "utf-8", CHUNK, None):
            scores = np.array([float(s) for s in table.columns["score"]])
            yield ["" if n is None else str(n) for n in table.columns["item"]], scores

    return _match(scored(), labels)


# --- rows the model has learned from -------------------------------------------------


def training_positives(
    model: Path, source: Source | None, scorer: Scorer, ids: list[str]
) -> list[str]:
    """Return the items that the run took for labelled positives.

    Known where the model lies in its run folder and the sources of the run are still
    where they were.
    """
    run = model.resolve().parent / RUN
    if source is None or isinstance(source, list | tuple) or not run.is_file():
        return []
    try:
        sources = dict(json.loads(run.read_text(encoding="utf-8"))["sources"])
    except (ValueError, KeyError, TypeError, OSError):
        return []
    here = Path(str(source)).resolve()
    table = Path(str(sources.get("table", ""))).resolve()
    if "table" in sources and here == table and scorer.label_column is not None:
        return _labelled_rows(here, scorer, set(ids))
    learned = Path(str(sources.get("positive", ""))).resolve()
    if "positive" not in sources or not learned.exists():
        return []
    if here == learned or learned in here.parents:
        return ids
    if not here.is_dir():
        return []
    return [name for name in ids if learned in (here / name).resolve().parents]


def _labelled_rows(path: Path, scorer: Scorer, ids: set[str]) -> list[str]:
    """Return the rows of the run's own table that were labelled positive."""
    column, found = str(scorer.label_column), []
    encoding = scorer.options.get("encoding", "utf-8")
    for table in raw_chunks(path, encoding, CHUNK, None):
        if column in table.names:
            names = row_ids(table, scorer.options.get("id_column"))
            labels = labels_of(table, column)
            found += [names[i] for i in np.flatnonzero(labels) if names[i] in ids]
    return found
