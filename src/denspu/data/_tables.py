"""CSV, TSV and Parquet → a table as the file has it (:class:`RawTable`).

Encodings, delimiters, gaps and broken rows are met here. What a column means is found
in ``kinds/table.py``. CSV goes through the standard library, so that a core install
reads it: pyarrow takes 170 MB, and would read 01234 as a number.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu.data._reading import (
    Found,
    Limit,
    Options,
    open_text,
    opened,
    require_pyarrow,
)
from denspu.data.kinds import Skipped, kind_of, nothing_left, suffix
from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    LabelError,
    did_you_mean,
)

PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
TABLE_SUFFIXES = frozenset({".csv", ".tsv", ".tab"}) | PARQUET_SUFFIXES

GAPS = frozenset(
    ("", "#n/a", "n/a", "na", "nan", "-nan", "null", "none", "<na>", "#na", "?")
)
NONE = "none"
"""A gap among numbers and dates; a value of its own in a category."""
POSITIVE = frozenset({"1", "1.0", "true"})
UNLABELED = frozenset({"0", "0.0", "-1", "-1.0", "false"})

LONGEST_CELL = 64 * 1024**2
CELL_BYTES = 60
"""Memory of a short cell beyond its characters."""
PARQUET_BUFFER = 1 << 20


@dataclass(eq=False)
class RawTable:
    """A table as the file has it: texts from CSV, typed values from Parquet."""

    source: str
    columns: dict[str, Any]
    """Values of each column; None for a gap."""
    kinds: dict[str, str]
    """Kinds that the file itself states (Parquet), by column."""
    rows: list[int]
    """Number of each row in the file, from 1, the header not counted."""
    skipped: list[Skipped] = field(default_factory=list)
    decimal_comma: bool = False
    nones: dict[str, dict[int, str]] = field(default_factory=dict)
    """Gaps that are written as a word, which is a value in a category: by column."""

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)


def read_raw(path: Path, encoding: str) -> RawTable:
    """Read a table file as it stands."""
    return next(raw_chunks(path, encoding, Limit()))


def raw_chunks(path: Path, encoding: str, limit: Limit) -> Iterator[RawTable]:
    """Read a table file as it stands: one table at least, perhaps without rows."""
    if suffix(path.name) in PARQUET_SUFFIXES:
        return _parquet_chunks(path, limit)
    return _csv_chunks(path, encoding, limit)


def table_pieces(found: Found, options: Options, limit: Limit) -> Iterator[RawTable]:
    """Yield a table file as it stands: some rows, and no id twice."""
    seen = set[str]()
    bad: list[Skipped] = []
    n = n_bad = 0
    for table in raw_chunks(found.path, options.encoding, limit):
        n, n_bad = n + len(table.rows), n_bad + len(table.skipped)
        bad += table.skipped[: 3 - len(bad)]
        if options.id_column is not None:
            for name in row_ids(table, options.id_column):
                if name in seen:
                    raise _same_id(options.id_column, name, found.source)
                seen.add(name)
        if n or limit != Limit():  # the whole file without a row is refused below
            yield table
    if not n:
        raise nothing_left(kind_of("table"), found.source, n_bad, bad)


def _different(names: Sequence[str], path: Path) -> list[str]:
    """Return the names of a table's columns, or say which one stands twice."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InvalidInputError(
            f"{path.name} has two columns called {twice[0]!r}. Give each column a name "
            "of its own."
        )
    return list(names)


# --- CSV ----------------------------------------------------------------------------


def _csv_chunks(path: Path, encoding: str, limit: Limit) -> Iterator[RawTable]:
    with open_text(path, encoding) as file:
        first = next((line for line in file if line.strip()), None)
        if first is None:
            raise InvalidInputError(f"{path} is empty; a header and rows are needed.")
        delimiter = _delimiter(path, first)
        lines = csv.reader(chain([first], file), delimiter=delimiter)
        with _csv_errors(path, lines):
            cells = next(lines)
        named = [cell.strip() or f"column {i}" for i, cell in enumerate(cells, start=1)]
        header = _different(named, path)
        numbered = enumerate(lines, start=1)
        for i in count():
            with _csv_errors(path, lines):
                table, more = _csv_table(str(path), header, numbered, limit)
            table.decimal_comma = delimiter == ";"
            if i == 0 or table.rows or table.skipped:
                yield table
            if not more:
                return


def _csv_table(
    source: str,
    header: Sequence[str],
    numbered: Iterator[tuple[int, list[str]]],
    limit: Limit,
) -> tuple[RawTable, bool]:
    """Return the next rows, and whether there may be more."""
    cells: list[list[str]] = []
    numbers: list[int] = []
    skipped: list[Skipped] = []
    size, more = 0, False
    for number, line in numbered:
        if line and len(line) != len(header):
            reason = f"{len(line)} cells, but the header has {len(header)}"
            skipped.append(Skipped(f"row {number}", reason))
        elif line:
            cells.append(line)
            numbers.append(number)
            size += sum(map(len, line)) + CELL_BYTES * len(line)
        if len(cells) + len(skipped) >= limit.rows or size >= limit.bytes:
            more = True
            break
    by_column = zip(*cells, strict=True) if cells else [()] * len(header)
    columns = {
        name: [None if cell.strip().lower() in GAPS else cell for cell in column]
        for name, column in zip(header, by_column, strict=True)
    }
    table = RawTable(source, columns, {}, numbers, skipped)
    for place, name in enumerate(header):
        gaps = [i for i, value in enumerate(columns[name]) if value is None]
        words = {i: cells[i][place].strip() for i in gaps}
        table.nones[name] = {i: w for i, w in words.items() if w.lower() == NONE}
    return table, more


@contextmanager
def _csv_errors(path: Path, lines: Any) -> Iterator[None]:
    """Allow long cells while reading, and say what is wrong with a table."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    except csv.Error as error:
        raise InvalidInputError(
            f"{path.name} is not a readable table: {error} (line {lines.line_num})."
        ) from error
    finally:
        csv.field_size_limit(before)  # it belongs to the whole process


def _delimiter(path: Path, first: str) -> str:
    """Return the tab of a TSV, else what the header line has most of."""
    if suffix(path.name) in (".tsv", ".tab"):
        return "\t"
    unquoted = re.sub(r'"[^"]*"', "", first)
    return max(",;\t|", key=unquoted.count)


# --- Parquet ------------------------------------------------------------------------


def _parquet_chunks(path: Path, limit: Limit) -> Iterator[RawTable]:
    arrow = require_pyarrow()
    with opened(path) as raw:
        try:
            file = arrow.parquet.ParquetFile(raw, buffer_size=PARQUET_BUFFER)
            names = list(file.schema_arrow.names)
            if not file.metadata.num_rows or not names:
                raise InvalidInputError(f"{path} has no rows or no columns.")
            _different(names, path)
            start = 1
            for part in _arrow_tables(arrow, file, limit):
                end = start + part.num_rows
                table = RawTable(str(path), {}, {}, list(range(start, end)))
                for name in names:
                    about = _arrow_column(arrow, part.column(name))
                    table.kinds[name], table.columns[name] = about
                yield table
                start = end
        except (OSError, arrow.ArrowException) as error:
            raise InvalidInputError(
                f"{path} is not a Parquet file that can be read: {error}"
            ) from error


def _arrow_tables(arrow: Any, file: Any, limit: Limit) -> Iterator[Any]:
    """Yield the whole file, or batches within the limit."""
    if limit == Limit():
        yield file.read()
        return
    groups = map(file.metadata.row_group, range(file.num_row_groups))
    size = sum(group.total_byte_size for group in groups) / file.metadata.num_rows
    rows = max(1, min(limit.rows, int(limit.bytes / max(size, 1))))
    for batch in file.iter_batches(batch_size=rows, use_threads=False):
        yield arrow.Table.from_batches([batch])


def _arrow_column(arrow: Any, column: Any) -> tuple[str, Any]:
    """Return the kind of a column and its values: floats, days, words or lists."""
    types = arrow.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type

    def is_number(kind: Any) -> bool:
        return types.is_integer(kind) or types.is_floating(kind)

    if is_number(kind) or any(
        one(kind) for one in (types.is_boolean, types.is_decimal, types.is_null)
    ):
        values = column.cast(arrow.float64(), safe=False)
        return "number", values.to_numpy(zero_copy_only=False)
    if types.is_date(kind) or types.is_timestamp(kind):
        days = column.cast(arrow.timestamp("us")).cast(arrow.int64())
        values = days.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        return "date", values / 86_400e6
    if types.is_string(kind) or types.is_large_string(kind):
        return "category", column.to_pylist()
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    if any(is_list(kind) for is_list in lists) and is_number(kind.value_type):
        return "vector", column
    return "other", column


# --- columns with a meaning ---------------------------------------------------------


def need_column(names: Sequence[str], wanted: str, argument: str, where: str) -> str:
    """Return ``wanted``, or say which columns there are."""
    if wanted in names:
        return wanted
    shown = ", ".join(map(repr, names[:12])) + (" and more" if len(names) > 12 else "")
    raise InvalidParameterError(
        f"{argument}={wanted!r}: {where} has no such column."
        f"{did_you_mean(wanted, names)} It has: {shown}."
    )


CONTENT = {"category": "texts", "vector": "vectors"}
"""What columns of a kind hold, in words."""


def content_column(table: RawTable, options: Options, argument: str, kind: str) -> str:
    """Return the column that is the content: the one named, or the only one."""
    wanted, what = getattr(options, argument), CONTENT[kind]
    if wanted is None:
        names = [name for name in table.names if name not in options.apart]
        fit = [name for name in names if table.kinds.get(name, "category") == kind]
        if len(fit) != 1:
            raise InvalidParameterError(
                f"{table.source} has {len(fit)} columns of {what} {fit[:12]}; say "
                f"which one with {argument}=."
            )
        return fit[0]
    need_column(table.names, wanted, argument, table.source)
    if (held := table.kinds.get(wanted, "category")) != kind:
        raise InvalidInputError(
            f"{argument}={wanted!r} of {table.source} holds {held} values, not {what}. "
            f"Name the column that holds the {what}."
        )
    return str(wanted)


def about_rows(table: RawTable, options: Options) -> dict[str, Any]:
    """Return what ``Items`` holds of all rows beside their content."""
    aside = {}
    for name in options.aside:
        need_column(table.names, name, "aside", table.source)
        aside[name] = np.empty(len(table.rows), dtype=object)
        aside[name][:] = list(table.columns[name])
    marked = options.label_column
    return {
        "ids": row_ids(table, options.id_column),
        "labels": None if marked is None else labels_of(table, marked),
        "aside": aside,
        "source": table.source,
    }


def row_ids(table: RawTable, id_column: str | None) -> list[str]:
    """Return the values of the id column, or the row numbers."""
    if id_column is None:
        return [str(row) for row in table.rows]
    need_column(table.names, id_column, "id_column", table.source)
    values = table.columns[id_column]
    if table.kinds.get(id_column) == "number":
        values = [None if v != v else f"{v:.0f}" if v == int(v) else v for v in values]
    ids = ["" if value is None else str(value) for value in values]
    twice = [value for value, n in Counter(ids).items() if n > 1]
    if twice:
        raise _same_id(id_column, twice[0], table.source)
    return ids


def _same_id(id_column: str, name: str, source: str) -> Exception:
    return InvalidInputError(
        f"id_column={id_column!r}: the id {name!r} stands in several rows of "
        f"{source}. Use a column that names each row once."
    )


def labels_of(table: RawTable, name: str) -> NDArray[np.int64]:
    """Return 1 and 0 from a label column; an empty cell is unlabelled."""
    need_column(table.names, name, "label_column", table.source)
    words = [
        None if value is None or value != value else str(value).strip().lower()
        for value in table.columns[name]
    ]
    other = Counter(w for w in words if w is not None and w not in POSITIVE | UNLABELED)
    if other:
        shown = ", ".join(f"{w!r} ({n} rows)" for w, n in other.most_common(5))
        raise LabelError(
            f"label_column={name!r} holds {shown}. PU labels are 1 or true for a "
            "labelled positive, and 0, false, -1 or nothing for an unlabelled row. "
            "Rewrite the column; rows known to be negative belong in "
            "known_negative (--known-negatives FILE)."
        )
    zeros = {w[0] for w in words if w in UNLABELED}
    if {"-", "0"} <= zeros:
        raise LabelError(
            f"label_column={name!r} holds both 0 and -1. Both mean unlabelled here; "
            "write 0 for all, and give known negatives as known_negative "
            "(--known-negatives FILE)."
        )
    return np.array([w in POSITIVE for w in words], dtype=np.int64)
