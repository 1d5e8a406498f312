"""What a run is given: P, U, copies, groups, times; and who is held out."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from denspu._folds import hold_groups
from denspu._progress import does, many
from denspu._random import Randomness
from denspu._share import Counts
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.data._comparing import Duplicates, find_duplicates, find_shortcuts
from denspu.data._reading import lines_of, read_items, read_pair
from denspu.data._tables import (
    TABLE_SUFFIXES,
    RawTable,
    labels_of,
    read_raw,
    row_ids,
)
from denspu.data.kinds import Items, join
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError
from denspu.runs.folder import SkippedItem
from denspu.runs.options import FOLDS, HoldOut, RunOptions, Source

ITEM, LABEL = ("item", "id"), ("label", "y")
"""Columns of a table of labels, where no name is given."""

FEWEST = 10
"""Labelled positives from which some can be spared for the hold-out."""

MARK = "{group}"
ISO = "iso"
DATE_FORMATS = ("%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y")


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

    @property
    def can_fold(self) -> bool:
        """Whether both P and U can be judged by models without a part of them."""
        left = ~self.is_copy
        if self.groups is None:
            return len(self.P) > 1 and int(left.sum()) > 1
        units = (self.groups[0], self.groups[1][left])
        return all(len(np.unique(names)) > 1 for names in units)


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
    pair = options.positive or "", options.unlabeled or ""
    try:
        if options.table is not None:
            sources = [read_items(options.table, kind=kind, **arguments)]
        else:
            sources = list(read_pair(*pair, kind=kind, **arguments))
    except InvalidParameterError as error:  # of a column kept aside: name the option
        for name in ("groups", "time"):
            if str(error).startswith(f"aside={getattr(options, name)!r}"):
                told = str(error).replace("aside", name, 1)
                raise InvalidParameterError(told) from None
        raise
    skipped = []
    for items in sources:
        folder = Path(items.source).is_dir()
        for item, reason in items.skipped:  # named so that it can be found again
            name = os.path.join(items.source, item) if folder else item
            named = name if folder or len(sources) == 1 else f"{items.source}: {item}"
            skipped.append(SkippedItem(named, reason))
    if options.table is not None:
        (whole,) = sources
        y = join(whole).y  # refuses labels that cannot be learned from
        return whole.take(y == 1), whole.take(y == 0), skipped
    P, U = sources
    if len(P) < 2:
        join(P, U)  # says that one positive is too few
    return P, U, skipped


def reading_arguments(options: RunOptions) -> dict[str, Any]:
    """Return the arguments of ``read_items`` that the options set."""
    named = ("image_size", "label_column", "id_column", "text_column", "vector_column")
    given = {name: getattr(options, name) for name in (*named, "ids", "verbose")}
    given |= {"columns": dict(options.columns), "aside": _aside(options)}
    found = {name: value for name, value in given.items() if value}
    return {**found, "encoding": options.encoding}


def _aside(options: RunOptions) -> tuple[str, ...]:
    """Return the columns that are groups or times."""
    source = options.table or options.positive or ""
    if Path(source).suffix.lower() in TABLE_SUFFIXES:
        groups = options.groups or ""
        is_pattern = MARK in groups or "(" in groups
        named = ["" if is_pattern else groups, options.time]
        return tuple(dict.fromkeys(name for name in named if name))
    if options.time is not None:
        raise InvalidParameterError(
            f"time={options.time!r} names a column, and {os.fspath(source)} is no "
            "table. Give a CSV or Parquet file, or leave --time out."
        )
    return ()


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
    if path.is_file() and path.suffix.lower() not in TABLE_SUFFIXES:
        lines = lines_of(path, options.encoding)
        return [line.strip() for line in lines if line.strip()]
    table = read_item_table(path, options.encoding)
    wanted = [name for name in (options.id_column, *ITEM) if name]
    names = row_ids(table, one_of(table, "id_column", wanted))
    given = (options.label_column, *LABEL)
    label = next((name for name in given if name in table.names), None)
    if label is None:
        return names
    zero = labels_of(table, label) == 0
    cells = zip(names, table.columns[label], zero, strict=True)
    return [n for n, cell, is_zero in cells if is_zero and _word(cell) is not None]


def read_item_table(path: Path, encoding: str) -> RawTable:
    """Read a table that names items of a run."""
    if not path.is_file():
        raise InvalidInputError(f"{str(path)!r}: there is no such file.")
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise InvalidInputError(
            f"{str(path)!r} must be a table: .csv, .tsv or .parquet with the columns "
            "'item' and 'label'."
        )
    return read_raw(path, encoding)


def one_of(table: RawTable, argument: str, wanted: Sequence[str]) -> str:
    """Return the first of some columns that a table has."""
    found = next((name for name in wanted if name in table.names), None)
    if found is None:
        raise InvalidInputError(
            f"{table.source} has no column {' or '.join(map(repr, wanted))}; it has "
            f"{table.names[:8]}. Name it with {argument} "
            f"(--{argument.replace('_', '-')})."
        )
    return found


# --- groups --------------------------------------------------------------------------


def path_pattern(text: str) -> re.Pattern[str]:
    r"""Return the regular expression of a pattern.

    In ``"{group}/*"`` a star stands for anything but a slash, and for anything at the
    end; a text without ``{group}`` is a regular expression with a group of its own.

    Examples
    --------
    >>> path_pattern("*/{group}/*").search("2024/anna/left/1.png")["group"]
    'anna'
    >>> path_pattern(r"patient(\d+)").search("a/patient07_2.png")[1]
    '07'
    """
    if text.count(MARK) == 1:
        found = re.escape(text).replace(re.escape(MARK), "(?P<group>[^/]+)")
        if found.endswith(r"\*"):
            found = f"{found[:-2]}.*"
        return re.compile(f"^{found}$".replace(r"\*", "[^/]*"))
    with suppress(re.error):
        pattern = re.compile(text)
        if pattern.groups:
            return pattern
    raise InvalidParameterError(
        f"groups={text!r} says nowhere what the group is. Write {MARK} there, as in "
        f"'{MARK}/*', or give a regular expression with brackets around that part."
    )


def groups_of(items: Sequence[Items], wanted: str) -> tuple[list[NDArray[Any]], str]:
    """Return the group of every item, and a sentence on those without (or nothing)."""
    if wanted in items[0].aside:
        named = [[_word(v) for v in one.aside[wanted]] for one in items]
    else:
        pattern = path_pattern(wanted)
        which = "group" if "group" in pattern.groupindex else 1
        named = [
            [(m := pattern.search(i.replace("\\", "/"))) and m[which] for i in one.ids]
            for one in items
        ]
    lonely = [i for one in named for i, name in enumerate(one) if name is None]
    total = sum(map(len, named))
    if len(lonely) == total:
        raise InvalidInputError(
            f"groups={wanted!r} names no item a group; the first item is "
            f"{items[0].ids[0]!r}. Correct the pattern or the column."
        )
    told = ""
    if lonely:
        told = (
            f"{len(lonely):,} of {total:,} items {does(len(lonely), 'has', 'have')} no "
            f"group by {wanted!r}: each counts as a group of its own."
        )
    found = []
    for number, one in enumerate(named):
        words = [
            f"alone {number} {i}" if name is None else f"group {name}"
            for i, name in enumerate(one)
        ]
        found.append(np.array(words, dtype=np.str_))
    return found, told


def _word(value: Any) -> str | None:
    return None if value is None or value != value else str(value)


# --- times ---------------------------------------------------------------------------


def times_of(items: Items, column: str) -> FloatArray:
    """Return the times of items as numbers that can be ordered; NaN where missing."""
    values = items.aside[column]
    present = [v for v in values if _word(v) is not None]
    if not present:
        raise InvalidInputError(f"time={column!r}: the column is empty in P.")
    for form in (None, ISO, *DATE_FORMATS):
        with suppress(TypeError, ValueError):
            times = [_moment(v, form) for v in present]
            found = np.full(len(values), np.nan)
            found[[_word(v) is not None for v in values]] = times
            return found
    with suppress(ValueError):
        for odd in present:
            _moment(odd, ISO)
    raise InvalidInputError(
        f"time={column!r} holds {odd!r}, and not all its values are numbers or dates "
        "of one form. Write dates as 2024-05-31."
    )


def _moment(value: Any, form: str | None) -> float:
    """Return a time as a number: a date in seconds, anything else as it is."""
    if form is None:
        return float(value)
    text, read = str(value).strip(), dt.datetime
    found = read.fromisoformat(text) if form == ISO else read.strptime(text, form)
    return (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp()


# --- hold-out ------------------------------------------------------------------------


def hold_out(
    P: Items,
    holdout: HoldOut,
    *,
    groups: NDArray[Any] | None = None,
    times: FloatArray | None = None,
    seed: int = 0,
) -> tuple[BoolArray, str]:
    """Choose which labelled positives judge the fit.

    With ``"folds"`` all do, each judged by a model without it and its group. Otherwise
    a share is kept from the fit. Whole groups are held out; with times, the latest of
    those that have one. A positive that has a copy among those that stay labelled would
    be recognised, not judged: it stays too, with its group.

    Returns
    -------
    mask, sentence
        The sentence says how it was done, or why nothing is held out.
    """
    n = len(P)
    none = np.zeros(n, dtype=bool)
    if holdout == 0:
        return none, "Nothing is held out, so how good the answers are is not known."
    if holdout != FOLDS and n < FEWEST:
        return none, (
            f"With {n} labelled positives none can be spared: nothing is held out, and "
            f"how good the answers are is not known. {FEWEST} are needed."
        )
    units = (
        np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    )
    if len(np.unique(units)) < 2:
        return none, (
            "All labelled positives belong to one group: nothing is held out, and how "
            "good the answers are is not known."
        )
    if isinstance(holdout, str):
        return ~none, (
            f"Each of the {n:,} labelled positives is judged by a model that has not "
            f"seen it{' or its group' if groups is not None else ''}."
        )
    rng = Randomness(seed).numpy("hold-out")
    if times is None:
        held = hold_groups(units, holdout, rng)
    else:
        held = _latest(units, times, holdout, rng)
    back = _known_again(P, units, held)
    held &= ~back
    if not held.any():
        return none, (
            "Labelled positives are copies of each other, so that none can be held out "
            "fairly. Remove the copies."
        )
    kept, n_back = int(held.sum()), int(back.sum())
    told = (
        f"{'The latest ' if times is not None else ''}{kept:,} of {n:,} labelled "
        f"positives {does(kept, 'is', 'are')} held out"
        f"{' in whole groups' if groups is not None else ''} to judge the answers."
    )
    if n_back:
        how = does(n_back, "stays in the fit, as a copy", "stay in the fit, as copies")
        told += f" {n_back:,} {how} of others there."
    return held, told


def copies_together(P: Items, n_unlabeled: int) -> NDArray[np.str_] | None:
    """Return groups that keep copies among P in one fold; None where there are none."""
    found = find_duplicates(P, P)
    ends = np.array([*found.exact, *found.near], dtype=np.int64).reshape(-1, 2)
    if (ends[:, 0] == ends[:, 1]).all():
        return None
    joined = coo_array((np.ones(len(ends)), ends.T), shape=(len(P), len(P)))
    unit = connected_components(joined, directed=False)[1]
    return np.concatenate([unit, unit.max() + 1 + np.arange(n_unlabeled)]).astype(str)


def _latest(
    units: IntArray, times: FloatArray, share: float, rng: np.random.Generator
) -> BoolArray:
    """Hold out the units whose last time is latest; ties are broken by lot.

    A unit without any time is never called late.
    """
    known = np.where(np.isnan(times), -np.inf, times)
    names = rng.permutation(np.unique(units))
    last = np.array([known[units == unit].max() for unit in names])
    order = np.argsort(-last, kind="stable")
    target = share * len(units)
    held = np.zeros(len(units), dtype=bool)
    for unit in names[order[np.isfinite(last[order])]][: len(names) - 1]:
        rows = units == unit
        after = held.sum() + rows.sum()
        if held.any() and abs(after - target) >= abs(held.sum() - target):
            break
        held |= rows
    return held


def _known_again(P: Items, units: IntArray, held: BoolArray) -> BoolArray:
    """Return held-out rows that must stay: their unit has a copy among the others."""
    back = np.zeros(len(held), dtype=bool)
    while (held & ~back).any():
        still = np.flatnonzero(held & ~back)
        twins = find_duplicates(P.take(~(held & ~back)), P.take(still)).copies
        if not twins.any():
            break
        back |= held & np.isin(units, units[still[twins]])
    return back
