"""Embeddings that somebody already has: ``.npy``, or a vector column of a Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from denspu.data._items import Items, Skipped, need_column, nothing_left
from denspu.data._tables import RawTable, decode_text, labels_of, row_ids
from denspu.exceptions import InvalidInputError


def from_npy(path: Path, ids_file: Path | None) -> Items:
    """Read a 2-D array; a pickle inside is refused."""
    try:
        array = np.load(path, allow_pickle=False)
    except PermissionError as error:
        raise InvalidInputError(
            f"There is no permission to read {path}. Change its mode, or copy it."
        ) from error
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
    n = len(array)
    ids = [str(i) for i in range(1, n + 1)]
    if ids_file is not None:
        ids = [line.strip() for line in decode_text(ids_file, "utf-8").splitlines()]
        if len(ids) != n or len(set(ids)) != n:
            raise InvalidInputError(
                f"{ids_file} has {len(ids)} lines, {len(set(ids))} of them different; "
                f"{path.name} has {n} rows. Write one id a row, each once."
            )
    return _items(array, ids, str(path))


def from_column(
    table: RawTable,
    column: str,
    *,
    label_column: str | None = None,
    id_column: str | None = None,
    aside: Sequence[str] = (),
) -> Items:
    """Read the vectors of one column of a Parquet file."""
    need_column(table.names, column, "vector_column", table.source)
    if table.kinds.get(column) != "vector":
        raise InvalidInputError(
            f"vector_column={column!r} of {table.source} does not hold lists of "
            "numbers. Name the column that holds the embeddings."
        )
    ids = row_ids(table, id_column)
    values = table.columns[column].combine_chunks()
    lengths = np.array(values.value_lengths().fill_null(-1))
    width = (
        int(np.bincount(lengths[lengths > 0]).argmax()) if (lengths > 0).any() else 0
    )
    good = lengths == width if width else np.zeros(len(lengths), dtype=bool)
    skipped = [
        Skipped(ids[i], f"{max(lengths[i], 0)} numbers, most rows have {width}")
        for i in np.flatnonzero(~good)
    ]
    if not good.any():
        raise nothing_left(table.source, "embeddings", skipped)
    array = np.asarray(values.filter(good).flatten().to_numpy(zero_copy_only=False))
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
    return _items(
        array.reshape(-1, width),
        [ids[i] for i in rows],
        table.source,
        skipped,
        labels=labels,
        aside=extra,
    )


def _items(
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
    if not len(X):
        raise nothing_left(source, "embeddings", bad)
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
