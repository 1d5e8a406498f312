"""Tables: named columns of numbers, dates and categories."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._frame import Frame
from denspu._progress import clean, number, shorten
from denspu._validation import is_frame
from denspu.data._reading import Found, Limit, Options, Plan
from denspu.data._tables import (
    TABLE_SUFFIXES,
    RawTable,
    about_rows,
    need_column,
    table_pieces,
)
from denspu.data.kinds import Items, Kind, Pairs, digest
from denspu.exceptions import InvalidInputError, InvalidParameterError

COLUMN_KINDS = ("number", "category", "date", "drop")
ALL_DIFFERENT = 20
"""Rows from which a category that never repeats is taken for a name."""
WORDS = 5
"""Words in a usual cell of a column that holds texts, not categories."""

DAY_FIRST, MONTH_FIRST = "%d/%m/%Y", "%m/%d/%Y"
DATE_FORMATS = ("%d.%m.%Y", "%Y/%m/%d", MONTH_FIRST, DAY_FIRST)
LOOKS_LIKE_A_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
CODE = re.compile(r"0\d+")
"""A number that starts with zero is a code: a postcode, an article."""

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

REPEATED = 0.01
"""Where more of the rows of U repeat each other, equal rows say nothing."""


class _Tables(Kind):
    """A Frame read from disk; in memory any table of numbers or DataFrame."""

    name = "table"
    noun = thing = "row"
    input_kind = "table"
    shows = "cells"

    suffixes = TABLE_SUFFIXES
    wanted = ".csv, .tsv or .parquet"
    file_name = "a table"
    empty = "has a header and no rows"

    @property
    def plural(self) -> str:
        return "table rows"

    def claims(self, path: Path, options: Options) -> bool:
        return (
            super().claims(path, options)
            and options.text_column is None
            and options.vector_column is None
        )

    def pieces(
        self, found: Found, options: Options, plan: Plan | None, limit: Limit
    ) -> Iterator[RawTable]:
        return table_pieces(found, options, limit)

    def plan(
        self, pieces: Sequence[RawTable], options: Options, given: Plan | None
    ) -> tuple[Plan, list[str]]:
        if given is not None:
            return given, []
        kinds, notes = _infer_kinds(pieces, options.columns, options.apart)
        return {"kind": self.name, "columns": kinds}, notes

    def items(self, piece: RawTable, options: Options, plan: Plan) -> Items:
        kinds = dict(plan["columns"])
        for name in kinds:
            need_column(piece.names, name, "columns", piece.source)
        frame = Frame({name: _values_of(piece, name, kinds[name]) for name in kinds})
        gaps = np.zeros(len(frame), dtype=np.int64)
        for name in frame.columns:
            gaps += frame[name].isna()
        return Items(
            kind=self.name,
            X=frame,
            plan={"kind": self.name, "columns": kinds},
            facts={"missing": gaps},
            skipped=piece.skipped,
            **about_rows(piece, options),
        )

    def stack(self, P: Items, U: Items) -> Frame:
        first, second = P.plan["columns"], U.plan["columns"]
        _same_names(P.source, first, U.source, second)
        for name, kind in first.items():
            if kind != second[name]:
                raise InvalidInputError(
                    f"Column {name!r} is a {kind} in {P.source} and a {second[name]} "
                    f"in {U.source}. Read both with read_pair, or set columns="
                    f"{{{name!r}: {kind!r}}}."
                )
        return self.concatenate([P.X, U.X[list(first)]])

    def concatenate(self, parts: Sequence[Any]) -> Frame:
        return Frame.stacked(parts)

    def digests(self, X: Frame) -> list[bytes]:
        """Return a hash of the cells of each row; all gaps are alike."""
        columns = [X[name].tolist() for name in X.columns]
        return [
            digest(repr([None if v != v else v for v in row]).encode())
            for row in zip(*columns, strict=True)
        ]

    def copies(self, P: Items, U: Items) -> tuple[Pairs, Pairs, list[str]]:
        """Distrust equal rows where those of U often equal each other."""
        exact, near, notes = super().copies(P, U)
        if exact and 1 - len(set(self.digests(U.X))) / len(U) > REPEATED:
            n = len({u for _, u in exact})
            notes = [
                f"{n:,} unlabelled rows equal a labelled one, but unlabelled rows "
                "often equal each other too: not taken for copies."
            ]
            exact = []
        return exact, near, notes

    def default_encoder(self, X: Any, on_gpu: bool) -> Any:
        """Return none for embeddings of length 1, else the one for columns."""
        from denspu.encoders import IdentityEncoder

        return IdentityEncoder() if on_sphere(X) else self.plain_encoder()

    def is_own_embedding(self, X: Any, on_gpu: bool) -> bool:
        return True

    def plain_encoder(self, random_state: int | None = None) -> Any:
        """Return the encoder of columns, which draws nothing at random."""
        from denspu.encoders import TabularEncoder

        return TabularEncoder()


KIND = _Tables()


def on_sphere(X: Any) -> bool:
    """Tell whether rows are embeddings of length 1 already."""
    if is_frame(X) or X.shape[1] < 2:
        return False
    length = np.linalg.norm(X[:: max(1, len(X) // 1000)], axis=1)
    return bool(np.all(np.abs(length - 1) < 1e-3))


# --- the kind of each column --------------------------------------------------------


def _infer_kinds(
    tables: Sequence[RawTable], given: Mapping[str, str], apart: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the kind of each column from all tables together, and notes.

    A kind is ``number``, ``category``, ``date`` (ISO), or a date format with ``%``.
    """
    names = [name for name in tables[0].names if name not in apart]
    for other in tables[1:]:
        theirs = [name for name in other.names if name not in apart]
        _same_names(tables[0].source, names, other.source, theirs)
    for name, kind in given.items():
        need_column(tables[0].names, name, "columns", tables[0].source)
        if kind not in COLUMN_KINDS and "%" not in kind:
            raise InvalidParameterError(
                f"columns[{name!r}]={kind!r} must be number, category, date, drop or a "
                "date format such as '%d.%m.%Y'."
            )
    notes: list[str] = []
    inferred = {n: given.get(n) or _infer(n, tables, notes) for n in names}
    kinds = {name: kind for name, kind in inferred.items() if kind != "drop"}
    if not kinds:
        raise InvalidInputError(
            f"{tables[0].source} has no column to learn from: "
            f"{' '.join(notes) or 'all are set apart or dropped.'}"
        )
    return kinds, notes


def _same_names(
    source: str, names: Collection[str], other: str, theirs: Collection[str]
) -> None:
    missing = [name for name in names if name not in theirs]
    extra = [name for name in theirs if name not in names]
    if missing or extra:
        raise InvalidInputError(
            f"{source} and {other} have different columns: only in the first "
            f"{missing[:8]}, only in the second {extra[:8]}. Give both the same "
            "columns, and read them together with read_pair."
        )


def _infer(name: str, tables: Sequence[RawTable], notes: list[str]) -> str:
    """Return the kind of a column as its file states it, or as its texts show."""
    stated = {table.kinds[name] for table in tables if name in table.kinds}
    present = [
        value
        for table in tables
        if table.kinds.get(name, "category") == "category"
        for value in table.columns[name]
        if value is not None
    ]
    if stated & {"vector", "other"}:
        notes.append(f"Column {name!r} holds neither numbers nor texts: left out.")
        return "drop"
    if not stated:
        comma = any(table.decimal_comma for table in tables)
        kind = _infer_texts(name, present, comma, notes)
    elif stated == {"number"} and all(_number(v) is not None for v in present):
        kind = "number"
    elif stated == {"category"} or (stated == {"date"} and not present):
        kind = stated.pop()
    else:
        raise InvalidInputError(
            f"Column {name!r} is {' and '.join(sorted(stated))} in one file and "
            "something else in the other. Write both files with the same types."
        )
    told = ""
    if kind == "category" and len(present) >= ALL_DIFFERENT:
        share = len(set(present)) / len(present)
        long = np.median([len(cell.split()) for cell in present]) >= WORDS
        if long and share > 0.5:
            told = (
                "holds texts: left out. To learn from the texts alone, name it with "
                f"text_column={name!r} (--text-column {name})."
            )
        elif share == 1:
            told = "is different in every row, like a name: left out."
    elif kind == "number" and _counts_rows(name, tables):
        told = (
            "counts the rows, like an identifier: left out. To learn from it, set "
            f"columns={{{name!r}: 'number'}} (--columns {name}=number)."
        )
    if told:
        notes.append(f"Column {name!r} {told}")
        return "drop"
    return kind


def _counts_rows(name: str, tables: Sequence[RawTable]) -> bool:
    """Tell whether whole numbers rise from row to row, or have no gap between them."""
    if sum(len(table.rows) for table in tables) < ALL_DIFFERENT:
        return False
    for table in tables:
        values = _values_of(table, name, "number")
        if not np.isfinite(values).all() or (values % 1).any():
            return False
        rising = (np.diff(values) > 0).all()
        if not (rising or (np.diff(np.sort(values)) == 1).all()):
            return False
    return True


def _infer_texts(
    name: str, present: Sequence[str], comma: bool, notes: list[str]
) -> str:
    """Return what texts are: numbers, dates, or else categories."""
    if not present:
        notes.append(f"Column {name!r} is empty: left out.")
        return "drop"
    stripped = [value.strip() for value in present]
    if not any(CODE.fullmatch(v) for v in stripped):
        if all(_number(v) is not None for v in stripped):
            return "number"
        if comma and all(DECIMAL_COMMA.fullmatch(v) for v in stripped):
            return "number"
    if not all(LOOKS_LIKE_A_DATE.fullmatch(v) for v in stripped):
        return "category"
    forms = ("date", *DATE_FORMATS)
    fits = [f for f in forms if all(_days(v, f) is not None for v in stripped)]
    if fits[:1] != ["date"] and len(fits) > 1:
        notes.append(
            f"Column {name!r} may be month/day or day/month: read as month/day. Pass "
            f"columns={{{name!r}: {DAY_FIRST!r}}} for the other."
        )
    return fits[0] if fits else "category"


# --- cells --------------------------------------------------------------------------


def _values_of(table: RawTable, name: str, kind: str) -> NDArray[Any]:
    """Return a column as numbers (dates in days) or as words; gaps are NaN or None."""
    raw = table.columns[name]
    if table.kinds.get(name) in ("number", "date"):
        if kind == "category":
            words = [None if v != v else f"{v:g}" for v in raw.tolist()]
            return np.array(words, dtype=object)
        return np.asarray(raw, dtype=np.float64)
    if kind == "category":
        words = [None if v is None else v.strip() for v in raw]
        for i, word in table.nones.get(name, {}).items():
            words[i] = word
        return np.array(words, dtype=object)
    out = np.full(len(raw), np.nan)
    for i, value in enumerate(raw):
        if value is None:
            continue
        read = _number(value) if kind == "number" else _days(value.strip(), kind)
        if read is None and kind == "number" and table.decimal_comma:
            read = _number(value.replace(",", "."))
        if read is None or math.isinf(read):
            raise InvalidInputError(
                f"Column {name!r} of {table.source} should be a {kind}, but row "
                f"{table.rows[i]} holds {value!r}. Correct the cell or leave it "
                f"empty, or pass columns={{{name!r}: 'category'}}."
            )
        out[i] = read
    return out


def _number(text: str) -> float | None:
    if "_" in text:  # Python's own grouping, not a table's
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _days(text: str, form: str) -> float | None:
    """Return a date (ISO, or a form with ``%``) in days since 1970; None for others."""
    iso = form == "date"
    try:
        when = dt.datetime
        moment = when.fromisoformat(text) if iso else when.strptime(text, form)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - EPOCH).total_seconds() / 86_400


def cell_words(value: Any, kind: str = "") -> str:
    """Return one value for people: days since 1970 as a date, a gap as a dash.

    ``kind`` is that of its column in the plan.
    """
    if value is None or value != value:
        return "–"
    if is_date(kind):
        with suppress(OverflowError, ValueError):
            moment = dt.datetime(1970, 1, 1) + dt.timedelta(days=float(value))
            form = "%Y-%m-%d" if value % 1 == 0 else "%Y-%m-%d %H:%M"
            return moment.strftime(form)
    if isinstance(value, int | float | np.integer | np.floating):
        return number(float(value), 4)
    return shorten(clean(str(value)), 60)


def is_date(kind: str) -> bool:
    """Tell whether the values of a kind of column are days since 1970."""
    return kind == "date" or "%" in kind
