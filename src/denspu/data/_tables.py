"""CSV, TSV and Parquet → a Frame of numbers and categories.

A file is first read as it stands (:class:`RawTable`). Then the kind of each column is
found from all tables together, so that P and U are always read alike, and last the
values are turned into numbers, texts and gaps.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from denspu._frame import Frame
from denspu.data._items import Items, Skipped, need_column
from denspu.data._lines import decoding, no_permission, open_text
from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    LabelError,
    MissingDependencyError,
)

CSV_SUFFIXES = frozenset({".csv", ".tsv", ".tab"})
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
COLUMN_KINDS = ("number", "category", "date", "drop")

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
ALL_DIFFERENT = 20
"""Rows from which a category that never repeats is taken for a name."""

DAY_FIRST, MONTH_FIRST = "%d/%m/%Y", "%m/%d/%Y"
DATE_FORMATS = ("%d.%m.%Y", "%Y/%m/%d", MONTH_FIRST, DAY_FIRST)
LOOKS_LIKE_A_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
CODE = re.compile(r"0\d+")
"""A number that starts with zero is a code: a postcode, an article."""

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
POSITIVE = frozenset({"1", "1.0", "true"})
UNLABELED = frozenset({"0", "0.0", "-1", "-1.0", "false"})


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
    notes: list[str] = field(default_factory=list)
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


# --- CSV ----------------------------------------------------------------------------


def decode_text(path: Path, encoding: str) -> str:
    """Return the text of a file, or say which byte is not in the encoding."""
    with open_text(path, encoding) as file, decoding(file, path, encoding):
        return file.read()


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
    names = [cell.strip() or f"column {i}" for i, cell in enumerate(cells, start=1)]
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InvalidInputError(
            f"{path.name} has two columns called {twice[0]!r}. Give each column a name "
            "of its own."
        )
    return names


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
        twice = [name for name, n in Counter(names).items() if n > 1]
        if twice:
            raise InvalidInputError(
                f"{path.name} has two columns called {twice[0]!r}. Give each a name of "
                "its own."
            )
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


# --- the kind of each column --------------------------------------------------------


def infer_kinds(
    tables: Sequence[RawTable], given: Mapping[str, str], apart: frozenset[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the kind of each column from all tables together, and notes.

    A kind is ``number``, ``category``, ``date`` (ISO), or a date format with ``%``.
    """
    names = [name for name in tables[0].names if name not in apart]
    _same_names(tables, names, apart)
    for name, kind in given.items():
        need_column(tables[0].names, name, "columns", tables[0].source)
        if kind not in COLUMN_KINDS and "%" not in kind:
            raise InvalidParameterError(
                f"columns[{name!r}]={kind!r} must be number, category, date, drop or a "
                "date format such as '%d.%m.%Y'."
            )
    kinds: dict[str, str] = {}
    notes: list[str] = []
    for name in names:
        if given.get(name) == "drop":
            continue
        kind = given.get(name) or _infer(name, tables, notes)
        if kind != "drop":
            kinds[name] = kind
    if not kinds:
        raise InvalidInputError(
            f"{tables[0].source} has no column to learn from: "
            f"{' '.join(notes) or 'all are set apart or dropped.'}"
        )
    return kinds, notes


def _same_names(
    tables: Sequence[RawTable], names: Sequence[str], apart: frozenset[str]
) -> None:
    for other in tables[1:]:
        theirs = [name for name in other.names if name not in apart]
        if set(theirs) != set(names):
            missing = [name for name in names if name not in theirs]
            extra = [name for name in theirs if name not in names]
            raise InvalidInputError(
                f"{tables[0].source} and {other.source} have different columns: only "
                f"in the first {missing[:8]}, only in the second {extra[:8]}. Rename "
                "or remove columns until both have the same."
            )


def _infer(name: str, tables: Sequence[RawTable], notes: list[str]) -> str:
    stated = {table.kinds[name] for table in tables if name in table.kinds}
    values = [v for t in tables if name not in t.kinds for v in t.columns[name]]
    present = [value for value in values if value is not None]
    if stated & {"vector", "other"}:
        notes.append(f"Column {name!r} holds neither numbers nor texts: left out.")
        return "drop"
    if not stated:
        comma = any(table.decimal_comma for table in tables)
        kind = _infer_texts(name, present, comma, notes)
    elif len(stated) == 1 and not present:
        kind = stated.pop()
        if kind == "category":
            present = [v for t in tables for v in t.columns[name] if v is not None]
    elif stated == {"number"} and all(_number(v) is not None for v in present):
        kind = "number"
    else:
        raise InvalidInputError(
            f"Column {name!r} is {' and '.join(sorted(stated))} in one file and "
            "something else in the other. Write both files with the same types."
        )
    if kind == "category" and _names_each_row(present):
        notes.append(
            f"Column {name!r} is different in every row, like a name: left out."
        )
        return "drop"
    return kind


def _infer_texts(
    name: str, present: Sequence[str], comma: bool, notes: list[str]
) -> str:
    if not present:
        notes.append(f"Column {name!r} is empty: left out.")
        return "drop"
    if not any(CODE.fullmatch(v.strip()) for v in present):
        if all(_number(v) is not None for v in present):
            return "number"
        if comma and all(DECIMAL_COMMA.fullmatch(v.strip()) for v in present):
            return "number"
    return _infer_date(name, present, notes) or "category"


def _infer_date(name: str, present: Sequence[str], notes: list[str]) -> str | None:
    if not all(LOOKS_LIKE_A_DATE.fullmatch(v.strip()) for v in present):
        return None
    if all(_iso(v) is not None for v in present):
        return "date"
    fits = [f for f in DATE_FORMATS if all(_dated(v, f) is not None for v in present)]
    if len(fits) > 1:
        notes.append(
            f"Column {name!r} may be month/day or day/month: read as month/day. Pass "
            f"columns={{{name!r}: {DAY_FIRST!r}}} for the other."
        )
    return fits[0] if fits else None


def _names_each_row(present: Sequence[Any]) -> bool:
    return len(present) >= ALL_DIFFERENT and len(set(present)) == len(present)


def _number(text: Any) -> float | None:
    if "_" in text:  # Python's own grouping, not a table's
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _comma_number(text: str) -> float | None:
    plain = _number(text)
    return plain if plain is not None else _number(text.replace(",", "."))


def _iso(text: str) -> float | None:
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return _days(moment)


def _dated(text: str, form: str) -> float | None:
    try:
        return _days(dt.datetime.strptime(text.strip(), form))
    except ValueError:
        return None


def _days(moment: dt.datetime) -> float:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - EPOCH).total_seconds() / 86_400


# --- values -------------------------------------------------------------------------


def to_items(
    table: RawTable,
    kinds: Mapping[str, str],
    *,
    notes: Sequence[str] = (),
    label_column: str | None = None,
    id_column: str | None = None,
    aside: Sequence[str] = (),
) -> Items:
    """Turn a raw table into items of the given kinds."""
    for name in kinds:
        need_column(table.names, name, "columns", table.source)
    frame = Frame({name: _values(table, name, kind) for name, kind in kinds.items()})
    gaps = np.zeros(len(frame), dtype=np.int64)
    for name in frame.columns:
        gaps += frame[name].isna()
    if label_column is not None:
        need_column(table.names, label_column, "label_column", table.source)
    return Items(
        kind="table",
        X=frame,
        ids=row_ids(table, id_column),
        source=table.source,
        plan={"kind": "table", "columns": dict(kinds)},
        facts={"missing": gaps},
        skipped=table.skipped,
        notes=[*table.notes, *notes],
        labels=None if label_column is None else labels_of(table, label_column),
        aside={name: _as_it_is(table, name) for name in aside},
    )


def _values(table: RawTable, name: str, kind: str) -> NDArray[Any]:
    raw = table.columns[name]
    if table.kinds.get(name) in ("number", "date"):
        if kind == "category":
            words = [None if v != v else f"{v:g}" for v in raw.tolist()]
            return np.array(words, dtype=object)
        return np.asarray(raw, dtype=np.float64)
    if kind == "category":
        return np.array([None if v is None else v.strip() for v in raw], dtype=object)
    read: Callable[[str], float | None]
    if kind == "number":
        read = _comma_number if table.decimal_comma else _number
    elif kind == "date":
        read = _iso
    else:

        def read(text: str) -> float | None:
            return _dated(text, kind)

    out = np.full(len(raw), np.nan)
    for i, value in enumerate(raw):
        if value is not None:
            number = read(value)
            if number is None or math.isinf(number):
                raise InvalidInputError(
                    f"Column {name!r} of {table.source} should be a {kind}, but row "
                    f"{table.rows[i]} holds {value!r}. Correct the cell or leave it "
                    f"empty, or pass columns={{{name!r}: 'category'}}."
                )
            out[i] = number
    return out


def _as_it_is(table: RawTable, name: str) -> NDArray[Any]:
    need_column(table.names, name, "aside", table.source)
    values = np.empty(len(table.rows), dtype=object)
    values[:] = list(table.columns[name])
    return values


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
        raise same_id(id_column, twice[0], table.source)
    return ids


def same_id(id_column: str, name: str, source: str) -> Exception:
    """Return the error for an id that stands in several rows."""
    return InvalidInputError(
        f"id_column={id_column!r}: the id {name!r} stands in several rows of "
        f"{source}. Use a column that names each row once."
    )


def labels_of(table: RawTable, name: str) -> NDArray[np.int64]:
    """Return 1 and 0 from a label column; an empty cell is unlabelled."""
    words = [_label_word(value) for value in table.columns[name]]
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


def _label_word(value: Any) -> str | None:
    if value is None or value != value:
        return None
    return str(value).strip().lower()
