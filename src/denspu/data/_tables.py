"""CSV, TSV and Parquet → a table as the file has it (:class:`RawTable`).

Encodings, delimiters, gaps and broken rows are met here; what a column means is found
in ``_columns.py``, and what a row is called in ``_rows.py``.
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
from typing import IO, Any

import numpy as np

from denspu.data._items import Skipped
from denspu.data._lines import decoding, no_permission, open_text
from denspu.exceptions import InvalidInputError, MissingDependencyError

CSV_SUFFIXES = frozenset({".csv", ".tsv", ".tab"})
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})

GAPS = frozenset(
    [
        "",
        "#n/a",
        "n/a",
        "na",
        "nan",
        "-nan",
        "null",
        "none",
        "<na>",
        "#na",
        "?",
    ]  # the first is ""
)
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

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)


def read_raw(path: Path, encoding: str) -> RawTable:
    """Read a table file as it stands."""
    return next(raw_chunks(path, encoding, None, None))


def raw_chunks(
    path: Path, encoding: str, rows: int | None, max_bytes: int | None
) -> Iterator[RawTable]:
    """Read a table file as it stands, at most so many rows or bytes at a time.

    One table at least is given, perhaps without rows. ``None`` is no limit.
    """
    if path.suffix.lower() in PARQUET_SUFFIXES:
        return _parquet_chunks(path, rows, max_bytes)
    return _csv_chunks(path, encoding, rows, max_bytes)


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


def _csv_chunks(
    path: Path, encoding: str, rows: int | None, max_bytes: int | None
) -> Iterator[RawTable]:
    with open_text(path, encoding) as file:
        with decoding(file, path, encoding):
            first = next((line for line in file if line.strip()), None)
        if first is None:
            raise InvalidInputError(f"{path} is empty; a header and rows are needed.")
        delimiter = _delimiter(path, first)
        lines = csv.reader(chain([first], file), delimiter=delimiter)
        with _csv_errors(file, path, encoding, lines):
            header = _header_names(next(lines), path)
        numbered = enumerate(lines, start=1)
        for i in count():
            with _csv_errors(file, path, encoding, lines):
                table, more = _csv_table(str(path), header, numbered, rows, max_bytes)
            table.decimal_comma = delimiter == ";"
            if i == 0 or table.rows or table.skipped:
                yield table
            if not more:
                return


def _csv_table(
    source: str,
    header: Sequence[str],
    numbered: Iterator[tuple[int, list[str]]],
    rows: int | None,
    max_bytes: int | None,
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
            if max_bytes is not None:
                size += sum(map(len, line)) + CELL_BYTES * len(line)
        full = rows is not None and len(cells) + len(skipped) >= rows
        if full or (max_bytes is not None and size >= max_bytes):
            more = True
            break
    by_column = zip(*cells, strict=True) if cells else [()] * len(header)
    columns = {
        name: [None if cell.strip().lower() in GAPS else cell for cell in column]
        for name, column in zip(header, by_column, strict=True)
    }
    return RawTable(source, columns, {}, numbers, skipped), more


@contextmanager
def _csv_errors(file: IO[str], path: Path, encoding: str, lines: Any) -> Iterator[None]:
    """Allow long cells while reading, and say what is wrong with a table."""
    with _long_cells(), decoding(file, path, encoding):
        try:
            yield
        except csv.Error as error:
            raise InvalidInputError(
                f"{path.name} is not a readable table: {error} (line {lines.line_num})."
            ) from error


@contextmanager
def _long_cells() -> Iterator[None]:
    """Allow long documents in a cell; the limit of ``csv`` is put back."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _delimiter(path: Path, first: str) -> str:
    """Return the tab of a TSV, else what the header line has most of."""
    if path.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    unquoted = re.sub(r'"[^"]*"', "", first)
    return max(",;\t|", key=unquoted.count)


def _header_names(cells: Sequence[str], path: Path) -> list[str]:
    named = [cell.strip() or f"column {i}" for i, cell in enumerate(cells, start=1)]
    return _different(named, path)


# --- Parquet ------------------------------------------------------------------------


def require_pyarrow() -> Any:
    """Return pyarrow with its Parquet module, or say how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError(
            "Reading Parquet needs pyarrow: pip install 'denspu[data]'"
        ) from error
    return pyarrow


def _parquet_chunks(
    path: Path, rows: int | None, max_bytes: int | None
) -> Iterator[RawTable]:
    arrow = require_pyarrow()
    with _parquet_errors(arrow, path):
        file = arrow.parquet.ParquetFile(path, buffer_size=PARQUET_BUFFER)
    with file:
        names, n_rows = list(file.schema_arrow.names), file.metadata.num_rows
        if not n_rows or not names:
            raise InvalidInputError(f"{path} has no rows or no columns.")
        _different(names, path)
        start = 1
        for table in _arrow_tables(arrow, file, path, rows, max_bytes):
            kinds, columns = {}, {}
            for name in names:
                kinds[name], columns[name] = _arrow_column(arrow, table.column(name))
            end = start + table.num_rows
            yield RawTable(str(path), columns, kinds, list(range(start, end)))
            start = end


def _arrow_tables(
    arrow: Any, file: Any, path: Path, rows: int | None, max_bytes: int | None
) -> Iterator[Any]:
    """Yield the whole file, or batches of at most so many rows or bytes."""
    if rows is None:
        with _parquet_errors(arrow, path):
            whole = file.read()
        yield whole
        return
    if max_bytes is not None:
        about = file.metadata
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        size = sum(group.total_byte_size for group in groups) / about.num_rows
        rows = max(1, min(rows, int(max_bytes / max(size, 1))))
    batches = file.iter_batches(batch_size=rows, use_threads=False)
    while True:
        with _parquet_errors(arrow, path):
            batch = next(batches, None)
        if batch is None:
            return
        yield arrow.Table.from_batches([batch])


@contextmanager
def _parquet_errors(arrow: Any, path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise no_permission(path) from error
    except (OSError, arrow.ArrowException) as error:
        raise InvalidInputError(
            f"{path} is not a Parquet file that can be read: {error}"
        ) from error


def _arrow_column(arrow: Any, column: Any) -> tuple[str, Any]:
    types = arrow.types
    kind = column.type
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        values = column.cast(arrow.float64(), safe=False)
        return "number", values.to_numpy(zero_copy_only=False)
    if types.is_decimal(kind):
        return "number", column.cast(arrow.float64()).to_numpy(zero_copy_only=False)
    if types.is_date(kind) or types.is_timestamp(kind):
        days = column.cast(arrow.timestamp("us")).cast(arrow.int64())
        values = days.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        return "date", values / 86_400e6
    if types.is_string(kind) or types.is_large_string(kind):
        return "category", column.to_pylist()
    if types.is_null(kind):
        return "number", np.full(len(column), np.nan)
    if _is_vector(arrow, kind):
        return "vector", column
    return "other", column


def _is_vector(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    lists = types.is_list(kind) or types.is_large_list(kind)
    if not lists and not types.is_fixed_size_list(kind):
        return False
    return bool(types.is_floating(kind.value_type) or types.is_integer(kind.value_type))
