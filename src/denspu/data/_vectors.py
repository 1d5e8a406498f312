"""Embeddings that somebody already has: ``.npy``, or a vector column of a Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from denspu.data._items import Items, SeenIds, Skipped, need_column
from denspu.data._lines import lines_of, no_permission
from denspu.data._rows import labels_of, row_ids
from denspu.data._tables import RawTable
from denspu.exceptions import InvalidInputError


def from_npy(path: Path, ids_file: Path | None) -> Items:
    """Read a 2-D array; a pickle inside is refused."""
    array = open_npy(path)
    ids = [str(i) for i in range(1, len(array) + 1)]
    if ids_file is not None:
        ids = list(ids_for(path, len(array), ids_file))
    return items_of(array, ids, str(path))


def open_npy(path: Path, *, mapped: bool = False) -> Any:
    """Return a 2-D array of numbers, in memory or mapped from the file."""
    try:
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except PermissionError as error:
        raise no_permission(path) from error
    except (ValueError, EOFError, OSError) as error:
        raise InvalidInputError(
            f"{path} is not an array that can be read safely: {error}. Write it with "
            "np.save, as numbers."
        ) from error
    if not isinstance(array, np.ndarray) or array.ndim != 2 or 0 in array.shape:
        raise InvalidInputError(
            f"{path} holds {getattr(array, 'shape', 'several arrays')}; embeddings are "
            "a 2-D array with one row an item."
        )
    if array.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{path} has dtype {array.dtype}; embeddings are numbers."
        )
    return array


def ids_for(path: Path, n: int, ids_file: Path) -> Iterator[str]:
    """Yield the ids of ``n`` rows, after a look at all: as many, and different."""
    seen = SeenIds()
    for line in lines_of(ids_file, "utf-8"):
        seen.add([line.strip()])
    seen.twice()
    if len(seen) != n or seen.n_different != n:
        raise InvalidInputError(
            f"{ids_file} has {len(seen)} lines, {seen.n_different} of them different; "
            f"{path.name} has {n} rows. Write one id a row, each once."
        )
    return (line.strip() for line in lines_of(ids_file, "utf-8"))


def check_width(width: int, wanted: int, source: str) -> None:
    """Refuse embeddings of another length."""
    if width != wanted:
        raise InvalidInputError(
            f"The embeddings of {source} have {width} numbers, the others {wanted}. "
            "Use embeddings of the same model."
        )


def from_column(
    table: RawTable,
    column: str,
    *,
    label_column: str | None = None,
    id_column: str | None = None,
    aside: Sequence[str] = (),
    width: int | None = None,
) -> Items:
    """Read the vectors of one column of a Parquet file.

    Rows of another ``width`` are skipped; by default that of most rows counts.
    """
    need_column(table.names, column, "vector_column", table.source)
    if table.kinds.get(column) != "vector":
        raise InvalidInputError(
            f"vector_column={column!r} of {table.source} does not hold lists of "
            "numbers. Name the column that holds the embeddings."
        )
    ids = row_ids(table, id_column)
    values = table.columns[column].combine_chunks()
    lengths = np.array(values.value_lengths().fill_null(-1))
    usual = "most rows have"
    if width is not None:
        usual = "wanted are"
    else:
        whole = lengths[lengths > 0]
        width = int(np.bincount(whole).argmax()) if len(whole) else 1
    good = lengths == width
    skipped = [
        Skipped(ids[i], f"{max(lengths[i], 0)} numbers, {usual} {width}")
        for i in np.flatnonzero(~good)
    ]
    array = np.asarray(values.filter(good).flatten().to_numpy(zero_copy_only=False))
    if str(values.type.value_type) != "double":  # gaps among integers make doubles
        array = array.astype(np.float32)
    rows = np.flatnonzero(good)
    labels = None
    if label_column is not None:
        need_column(table.names, label_column, "label_column", table.source)
        labels = labels_of(table, label_column)[rows]
    extra = {}
    for name in aside:
        need_column(table.names, name, "aside", table.source)
        extra[name] = np.empty(len(rows), dtype=object)
        extra[name][:] = [table.columns[name][i] for i in rows]
    return items_of(
        array.reshape(-1, width),
        [ids[i] for i in rows],
        table.source,
        skipped,
        labels=labels,
        aside=extra,
    )


def items_of(
    array: Any,
    ids: list[str],
    source: str,
    skipped: Sequence[Skipped] = (),
    labels: Any = None,
    aside: dict[str, Any] | None = None,
) -> Items:
    """Keep the rows of finite numbers; list the others."""
    X = array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)
    finite = np.isfinite(X).all(axis=1)
    bad = [*skipped]
    if not finite.all():
        bad += [
            Skipped(ids[i], "holds NaN or infinity") for i in np.flatnonzero(~finite)
        ]
        X = X[finite]
        ids = [ids[i] for i in np.flatnonzero(finite)]
    return Items(
        kind="embedding",
        X=X,
        ids=ids,
        source=source,
        plan={"kind": "embedding", "width": int(X.shape[1])},
        skipped=bad,
        labels=None if labels is None else labels[finite],
        aside={name: values[finite] for name, values in (aside or {}).items()},
    )
