"""Documents: one a line, one a file, or one a row of a column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._progress import progress
from denspu.data._items import Items, Skipped, need_column
from denspu.data._rows import labels_of, row_ids
from denspu.data._tables import RawTable
from denspu.data._walk import MANY, reason_of, shown
from denspu.exceptions import InvalidInputError

EMPTY = "holds no text"


def from_lines(lines: Sequence[str], source: str, first: int = 1) -> Items:
    """Take one document a line; ``first`` is the number of the first line."""
    ids = [str(i) for i in range(first, first + len(lines))]
    return _items(lines, ids, source, what="line ")


def from_files(
    top: Path,
    names: Sequence[str],
    encoding: str,
    *,
    source: str,
    skipped: Sequence[Skipped] = (),
    verbose: int = 0,
) -> Items:
    """Read files with one document each."""
    texts, ids, bad = [], [], list(skipped)
    with progress("reading", len(names), verbose, least=MANY) as advance:
        for name in names:
            text, reason = _document(top / name, encoding)
            if text is None:
                bad.append(Skipped(shown(name), reason))
            else:
                texts.append(text)
                ids.append(shown(name))
            advance(source)
    return _items(texts, ids, source, bad)


def _document(path: Path, encoding: str) -> tuple[str | None, str]:
    """Return the text of a file, or nothing and why it cannot be read."""
    try:
        return path.read_bytes().decode(encoding), ""
    except UnicodeDecodeError as error:
        return None, (
            f"not {encoding.upper()} at byte {error.start}; pass its encoding "
            "(--encoding latin-1, say)"
        )
    except OSError as error:
        return None, reason_of(error)


def from_column(
    table: RawTable,
    column: str,
    *,
    label_column: str | None = None,
    id_column: str | None = None,
    aside: Sequence[str] = (),
) -> Items:
    """Read the documents of one column."""
    need_column(table.names, column, "text_column", table.source)
    if table.kinds.get(column, "category") != "category":
        raise InvalidInputError(
            f"text_column={column!r} of {table.source} holds {table.kinds[column]} "
            "values, not texts. Name the column that holds the texts."
        )
    labels = None
    if label_column is not None:
        need_column(table.names, label_column, "label_column", table.source)
        labels = labels_of(table, label_column)
    for name in aside:
        need_column(table.names, name, "aside", table.source)
    items = _items(
        [text or "" for text in table.columns[column]],
        row_ids(table, id_column),
        table.source,
        table.skipped,
        what="row " if id_column is None else "",
        labels=labels,
        aside={name: list(table.columns[name]) for name in aside},
    )
    return items


def _items(
    texts: Sequence[str],
    ids: Sequence[str],
    source: str,
    skipped: Sequence[Skipped] = (),
    what: str = "",
    labels: NDArray[Any] | None = None,
    aside: dict[str, list[object]] | None = None,
) -> Items:
    """Keep the documents with a letter in them; list the others."""
    good = [i for i, text in enumerate(texts) if text.strip()]
    bad = [
        Skipped(what + name, EMPTY)
        for name, text in zip(ids, texts, strict=True)
        if not text.strip()
    ]
    bad = [*skipped, *bad]
    kept = [texts[i] for i in good]
    chosen = {}
    for name, values in (aside or {}).items():
        chosen[name] = np.empty(len(good), dtype=object)
        chosen[name][:] = [values[i] for i in good]
    return Items(
        kind="text",
        X=kept,
        ids=[ids[i] for i in good],
        source=source,
        plan={"kind": "text"},
        facts={
            "characters": np.array([len(t) for t in kept], dtype=np.int64),
            "words": np.array([len(t.split()) for t in kept], dtype=np.int64),
        },
        skipped=bad,
        labels=None if labels is None else labels[good],
        aside=chosen,
    )
