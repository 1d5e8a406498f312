"""Vectors: embeddings that somebody already has, in ``.npy`` or a column of Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu.data._reading import Found, Limit, Options, Plan, lines_of, opened
from denspu.data._tables import (
    TABLE_SUFFIXES,
    RawTable,
    about_rows,
    content_column,
    table_pieces,
)
from denspu.data.kinds import Items, Kind, Skipped, suffix
from denspu.exceptions import InvalidInputError


class _Vectors(Kind):
    """A 2-D array of floats; methods take it for a table of numbers."""

    name = noun = "embedding"
    thing = "item"
    input_kind = "table"
    shows = "neighbours"
    is_embedding = True

    suffixes = frozenset((".npy",))
    also_reads = TABLE_SUFFIXES
    wanted = ".npy, or a vector column of a .parquet"
    file_name = "an array"
    empty = "holds no embedding"

    def claims(self, path: Path, options: Options) -> bool:
        """Claim arrays, and tables of which the vector column is named."""
        return super().claims(path, options) or (
            suffix(path.name) in TABLE_SUFFIXES and options.vector_column is not None
        )

    def files(self, path: Path, options: Options) -> tuple[Path, list[str]]:
        if suffix(path.name) not in self.suffixes | TABLE_SUFFIXES:
            raise InvalidInputError(
                f"{path} is no .npy file and no Parquet file with a vector_column; "
                "embeddings are read from those."
            )
        return path, []

    def pieces(
        self, found: Found, options: Options, plan: Plan | None, limit: Limit
    ) -> Iterator[Items]:
        if suffix(found.path.name) in TABLE_SUFFIXES:
            width = None if plan is None else int(plan["width"])
            for table in table_pieces(found, options, limit):
                yield _from_column(table, options, width)
        else:
            yield from _from_array(found, options, limit)

    def plan(
        self, pieces: Sequence[Items], options: Options, given: Plan | None
    ) -> tuple[Plan, list[str]]:
        """Take the length of the vectors; all sources must share it."""
        widths = (piece.X.shape[1] for piece in pieces if len(piece))
        return given or {"kind": self.name, "width": next(widths, 1)}, []

    def items(self, piece: Items, options: Options, plan: Plan) -> Items:
        """Keep the vectors with finite numbers; list the others."""
        X, width = piece.X, plan["width"]
        if len(X) and X.shape[1] != width:
            raise InvalidInputError(
                f"The embeddings of {piece.source} have {X.shape[1]} numbers, the "
                f"others {width}. Use embeddings of the same model."
            )
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float32)
        finite = np.isfinite(X).all(axis=1)
        bad = [
            Skipped(piece.ids[i], "holds NaN or infinity")
            for i in np.flatnonzero(~finite)
        ]
        return replace(
            replace(piece, X=X).take(finite),
            plan={"kind": self.name, "width": width},
            skipped=piece.skipped + bad,
        )

    def stack(self, P: Items, U: Items) -> Any:
        if P.X.shape[1] != U.X.shape[1]:
            raise InvalidInputError(
                f"Embeddings of {P.source} have {P.X.shape[1]} numbers, those of "
                f"{U.source} {U.X.shape[1]}. Use embeddings of the same model."
            )
        return self.concatenate([P.X, U.X])


KIND = _Vectors()


def _from_column(table: RawTable, options: Options, width: int | None) -> Items:
    """Read the lists of one length, by default that of most; list the others."""
    column = content_column(table, options, "vector_column", "vector")
    lists = table.columns[column].combine_chunks()
    lengths = np.array(lists.value_lengths().fill_null(0))
    if width is None:
        width = max(1, int(np.bincount(lengths[lengths > 0], minlength=1).argmax()))
    fits = lengths == width
    X = lists.filter(fits).flatten().to_numpy(zero_copy_only=False)
    if str(lists.type.value_type) != "double":  # gaps among integers make doubles
        X = X.astype(np.float32)
    rows = np.empty((len(lists), 0))
    items = Items("embedding", rows, plan={}, **about_rows(table, options))
    bad = [
        Skipped(items.ids[i], f"{lengths[i]} numbers, not {width}")
        for i in np.flatnonzero(~fits)
    ]
    return replace(items.take(fits), X=X.reshape(-1, width), skipped=bad)


def _from_array(found: Found, options: Options, limit: Limit) -> Iterator[Items]:
    mapped = limit != Limit()
    array = _open(found.path, mapped=mapped)
    n = len(array)
    rows = max(1, min(limit.rows, limit.bytes // array[:1].nbytes))
    if mapped:
        del array
    names = None if options.ids is None else _names(found.path, n, Path(options.ids))
    for start in range(0, n, rows):
        if mapped:
            # mapped anew: pages that were looked at count as memory while a map lives
            array = _open(found.path, mapped=True)[start : start + rows].copy()
        numbers = range(start, start + len(array))
        ids = [names[i] if names else str(i + 1) for i in numbers]
        yield Items("embedding", array, ids, found.source, plan={})


def _open(path: Path, *, mapped: bool) -> NDArray[Any]:
    """Return a 2-D array of numbers, in memory or mapped from the file."""
    opened(path).close()  # says what hinders, better than NumPy
    try:
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InvalidInputError(
            f"{path} is not an array that can be read safely: {error}. Write it with "
            "np.save, as numbers."
        ) from error
    shape = getattr(array, "shape", ())
    if len(shape) != 2 or 0 in shape or array.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{path} does not hold a 2-D array of numbers with one row an item. It "
            f"holds {getattr(array, 'dtype', 'several arrays')} of shape {shape}."
        )
    return array


def _names(path: Path, n: int, file: Path) -> list[str]:
    """Return the names of ``n`` rows from a file with one a line."""
    names = [line.strip() for line in lines_of(file, "utf-8")]
    if len(names) != n or len(set(names)) != n:
        raise InvalidInputError(
            f"{file} has {len(names)} lines, {len(set(names))} of them different; "
            f"{path.name} has {n} rows. Write one id a row, each once."
        )
    return names
