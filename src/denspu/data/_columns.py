"""What a column means: its kind, and its cells as numbers, dates or categories.

The kind is found from all tables together, so that P and U are always read alike.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu.data._items import need_column
from denspu.data._tables import RawTable
from denspu.exceptions import InvalidInputError, InvalidParameterError

COLUMN_KINDS = ("number", "category", "date", "drop")
ALL_DIFFERENT = 20
"""Rows from which a category that never repeats is taken for a name."""

DAY_FIRST, MONTH_FIRST = "%d/%m/%Y", "%m/%d/%Y"
DATE_FORMATS = ("%d.%m.%Y", "%Y/%m/%d", MONTH_FIRST, DAY_FIRST)
LOOKS_LIKE_A_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
CODE = re.compile(r"0\d+")
"""A number that starts with zero is a code: a postcode, an article."""

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


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


# --- cells --------------------------------------------------------------------------


def values_of(table: RawTable, name: str, kind: str) -> NDArray[Any]:
    """Return a column as numbers (dates in days) or as words; gaps are NaN or None."""
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
