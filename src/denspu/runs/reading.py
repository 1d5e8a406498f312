"""Read what a run is given: P, U, copies, shortcuts, groups, known negatives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._share import Counts
from denspu._typing import BoolArray, FloatArray
from denspu._words import does, many
from denspu.data import (
    Duplicates,
    Items,
    find_duplicates,
    find_shortcuts,
    join,
    read_items,
    read_pair,
)
from denspu.data._disk import lines_of
from denspu.data._tables import TABLE_SUFFIXES, labels_of, read_raw, row_ids
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError
from denspu.runs.facts import SkippedItem
from denspu.runs.options import RunOptions, Source
from denspu.runs.splitting import groups_of, is_pattern, times_of

ID_WORDS = ("item", "id")
LABEL_WORDS = ("label", "y")
"""Columns of a label file."""


@dataclass(frozen=True, eq=False)
class RunData:
    """The items of a run and what was seen before any model was fitted."""

    P: Items
    U: Items
    copies: Duplicates
    is_copy: BoolArray
    """Items of U that are copies of labelled positives."""
    known_negative: BoolArray
    """Mask over U."""
    groups: list[NDArray[Any]] | None
    """Groups of P and of U."""
    times: FloatArray | None
    """Times of P."""
    shortcuts: list[str]
    skipped: list[SkippedItem]
    reading: list[str]
    warnings: list[str] = field(default_factory=list)

    @property
    def counts(self) -> Counts:
        """How many items there are, by what is known of them."""
        copies, negative = int(self.is_copy.sum()), int(self.known_negative.sum())
        return Counts(len(self.P), len(self.U), negative, copies)


def read_run(options: RunOptions) -> RunData:
    """Read everything that the options name."""
    P, U, skipped = _read_sources(options)
    warnings: list[str] = []
    copies = find_duplicates(P, U)
    known = np.zeros(len(U), dtype=bool)
    if options.known_negatives is not None:
        known, told = known_negatives(options.known_negatives, P, U, options)
        warnings += told
    is_copy = copies.copies
    both = is_copy & known
    if both.any():
        first = U.ids[int(np.flatnonzero(both)[0])]
        n = int(both.sum())
        warnings.append(
            f"{many(n, 'item')} {does(n, 'is a copy', 'are copies')} of labelled "
            f"positives and known to be negative at once (such as {first!r}): taken as "
            f"{does(n, 'a negative', 'negatives')}. Look at {does(n, 'it', 'them')}."
        )
        is_copy = is_copy & ~known
    if (is_copy | known).all():
        raise InvalidInputError(
            f"Every item of {U.source} is a copy of a labelled positive"
            f"{' or a known negative' if known.any() else ''}: nothing is left to "
            "judge. Give other unlabelled items."
        )
    groups = None
    if options.groups is not None:
        groups, told_groups = groups_of([P, U], options.groups)
        warnings += [told_groups] if told_groups else []
    times = None
    if options.time is not None:
        times = times_of(P, options.time)
        if gaps := int(np.isnan(times).sum()):
            warnings.append(
                f"{many(gaps, 'labelled positive')} {does(gaps, 'has', 'have')} no "
                f"{options.time!r}: {does(gaps, 'it does', 'they do')} not count as "
                "late."
            )
    notes = list(dict.fromkeys([*P.notes, *U.notes]))
    return RunData(
        P=P,
        U=U,
        copies=copies,
        is_copy=is_copy,
        known_negative=known,
        groups=groups,
        times=times,
        shortcuts=find_shortcuts(P, U.take(~is_copy)),
        skipped=skipped,
        reading=[*notes, *copies.sentences()],
        warnings=warnings,
    )


def _read_sources(options: RunOptions) -> tuple[Items, Items, list[SkippedItem]]:
    """Return P, U, and what was skipped in both."""
    arguments = reading_arguments(options)
    kind: Any = options.kind or "auto"
    if options.table is not None:
        with _naming(options):
            whole = read_items(options.table, kind=kind, **arguments)
        y = join(whole).y  # refuses labels that cannot be learned from
        return whole.take(y == 1), whole.take(y == 0), _skipped([whole])
    pair = options.positive or "", options.unlabeled or ""
    with _naming(options):
        P, U = read_pair(*pair, kind=kind, **arguments)
    if len(P) < 2:
        join(P, U)  # says that one positive is too few
    return P, U, _skipped([P, U])


@contextmanager
def _naming(options: RunOptions) -> Iterator[None]:
    """Let an error about a column kept aside name the option that asked for it."""
    try:
        yield
    except InvalidParameterError as error:
        for name in ("groups", "time"):
            start = f"aside={getattr(options, name)!r}"
            if str(error).startswith(start):
                told = str(error).replace("aside", name, 1)
                raise InvalidParameterError(told) from None
        raise


def reading_arguments(options: RunOptions) -> dict[str, Any]:
    """Return the arguments of ``read_items`` that the options set."""
    given = {
        "image_size": options.image_size,
        "label_column": options.label_column,
        "id_column": options.id_column,
        "text_column": options.text_column,
        "vector_column": options.vector_column,
        "columns": dict(options.columns),
        "ids": options.ids,
        "aside": _aside(options),
        "verbose": options.verbose,
    }
    found = {name: value for name, value in given.items() if value}
    return {**found, "encoding": options.encoding}


def _aside(options: RunOptions) -> tuple[str, ...]:
    """Return the columns that are groups or times."""
    source = options.table or options.positive or ""
    if Path(source).suffix.lower() in TABLE_SUFFIXES:
        groups = options.groups
        named = [None if groups is None or is_pattern(groups) else groups, options.time]
        return tuple(dict.fromkeys(name for name in named if name is not None))
    if options.time is not None:
        raise InvalidParameterError(
            f"time={options.time!r} names a column, and {os.fspath(source)} is no "
            "table. Give a CSV or Parquet file, or leave --time out."
        )
    return ()


def _skipped(sources: Sequence[Items]) -> list[SkippedItem]:
    """Return what was skipped, named so that it can be found again."""
    found = []
    for items in sources:
        folder = Path(items.source).is_dir()
        for item, reason in items.skipped:
            name = os.path.join(items.source, item) if folder else item
            named = name if folder or len(sources) == 1 else f"{items.source}: {item}"
            found.append(SkippedItem(named, reason))
    return found


# --- known negatives -----------------------------------------------------------------


def known_negatives(
    source: Source, P: Items, U: Items, options: RunOptions
) -> tuple[BoolArray, list[str]]:
    """Return which items of U are known to be negative, and what to say about it.

    The file has one item a line; or it is a table with a column ``item`` and perhaps a
    column ``label``, of which the rows with 0 count.
    """
    names = _negative_names(Path(source), options)
    wanted = set(names)
    contradicted = sorted(wanted & set(P.ids)) if options.table is not None else []
    if contradicted:
        raise LabelError(
            f"{os.fspath(source)} calls {contradicted[0]!r} a known negative, and it "
            "is a labelled positive. Correct one of the two."
        )
    mask = np.array([name in wanted for name in U.ids], dtype=bool)
    missing = sorted(wanted - set(U.ids))
    if not mask.any():
        raise InvalidInputError(
            f"None of the {many(len(wanted), 'name')} in {os.fspath(source)} is an "
            f"unlabelled item: it has {missing[:1] or 'nothing'}, the items are called "
            f"{U.ids[0]!r} and so on. Write them as scores.csv does."
        )
    told = []
    if missing:
        told.append(
            f"{len(missing):,} of {len(wanted):,} known negatives "
            f"{does(len(missing), 'is', 'are')} not among the unlabelled items, such "
            f"as {missing[0]!r}."
        )
    return mask, told


def _negative_names(path: Path, options: RunOptions) -> list[str]:
    if not path.is_file():
        raise InvalidInputError(
            f"known_negatives={str(path)!r}: there is no such file."
        )
    if path.suffix.lower() not in TABLE_SUFFIXES:
        lines = lines_of(path, options.encoding)
        return [line.strip() for line in lines if line.strip()]
    table = read_raw(path, options.encoding)
    column = _first(table.names, options.id_column, *ID_WORDS)
    if column is None:
        raise InvalidInputError(
            f"{path} needs a column {ID_WORDS[0]!r} with the names of the items; it "
            f"has {table.names[:8]}."
        )
    names = row_ids(table, column)
    label = _first(table.names, options.label_column, *LABEL_WORDS)
    if label is None:
        return names
    given = [value is not None and value == value for value in table.columns[label]]
    negative = np.asarray(given) & (labels_of(table, label) == 0)
    return [names[i] for i in np.flatnonzero(negative)]


def _first(names: Sequence[str], *wanted: str | None) -> str | None:
    return next((name for name in wanted if name in names), None)
