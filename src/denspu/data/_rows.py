"""What a row is: its place among the items, its id and its label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._frame import Frame
from denspu.data._columns import values_of
from denspu.data._items import Items, need_column
from denspu.data._tables import RawTable
from denspu.exceptions import InvalidInputError, LabelError

POSITIVE = frozenset({"1", "1.0", "true"})
UNLABELED = frozenset({"0", "0.0", "-1", "-1.0", "false"})


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
    frame = Frame({name: values_of(table, name, kind) for name, kind in kinds.items()})
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
        notes=list(notes),
        labels=None if label_column is None else labels_of(table, label_column),
        aside={name: _as_it_is(table, name) for name in aside},
    )


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
