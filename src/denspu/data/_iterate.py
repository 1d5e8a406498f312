"""``iter_items``: a long source piece by piece, in the form of an earlier reading."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from denspu._parameters import Whole
from denspu.data import _images, _tables, _texts, _vectors
from denspu.data._find import (
    Found,
    Options,
    Source,
    checked_options,
    find,
    in_form_of,
    plan_of,
)
from denspu.data._items import Items, SeenIds, Skipped, nothing_left
from denspu.data._lines import lines_of
from denspu.data._read import from_table, image_plan, survey, table_items, text_files
from denspu.data._rows import row_ids, same_id
from denspu.data._walk import reason_of
from denspu.exceptions import (
    DensPUError,
    InvalidInputError,
    InvalidParameterError,
    did_you_mean,
)

CHUNK = 1024
CHUNK_BYTES = 256 * 1024**2
OPTIONS = (
    "text_column",
    "vector_column",
    "id_column",
    "aside",
    "ids",
    "encoding",
    "max_pixels",
    "workers",
)

One = TypeVar("One")


def iter_items(
    source: Source,
    *,
    like: Items | Mapping[str, Any],
    chunk: int = CHUNK,
    max_bytes: int = CHUNK_BYTES,
    **options: Any,
) -> Iterator[Items]:
    """Read a source of any length, some items at a time.

    The chunks put together are what ``read_items(source, like=like)`` gives: the same
    items, ids and skipped ones. Memory depends on the chunk, not on the source; only
    the names of the files of a folder, and 16 bytes for each id of an ``id_column``,
    are kept.

    Parameters
    ----------
    source : path or list of paths
        As in :func:`read_items`.
    like : Items or mapping
        Items read before, or their ``plan``: the form to read in.
    chunk : int, default=1024
        Items looked at a time. A chunk may hold fewer, or none, where some were
        skipped.
    max_bytes : int, default=256 MiB
        A chunk ends early where it would take more memory; one item always fits.
    **options
        ``text_column``, ``vector_column``, ``id_column``, ``aside``, ``ids``,
        ``encoding``, ``max_pixels``, ``workers``, as in :func:`read_items`.

    Yields
    ------
    Items

    Raises
    ------
    InvalidInputError
        If the source is of another kind or lacks columns: before the first chunk. If
        nothing could be read, or an id stands in several rows: after the last one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from denspu.data import iter_items, read_items
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "texts.txt")
    ...     _ = path.write_text("one" + chr(10) + "two" + chr(10) + "three")
    ...     first = read_items(path)
    ...     [part.ids for part in iter_items(path, like=first, chunk=2)]
    [['1', '2'], ['3']]
    """
    for name in options:
        if name not in OPTIONS:
            raise InvalidParameterError(
                f"iter_items has no option {name!r}.{did_you_mean(name, OPTIONS)} "
                f"Options: {', '.join(OPTIONS)}."
            )
    if not Whole(1).allows(chunk):
        raise InvalidParameterError(f"chunk={chunk!r} must be {Whole(1)}.")
    chosen = checked_options("auto", {**options, "max_bytes": max_bytes})
    plan = plan_of(like)
    if plan is None:
        raise InvalidParameterError(
            "like=None: pass items that were read before, or their plan."
        )
    chosen = in_form_of(chosen, plan)
    return _counted(find(source, chosen), chosen, plan, chunk)


def _counted(
    found: Found, options: Options, plan: Mapping[str, Any], chunk: int
) -> Iterator[Items]:
    """Yield the chunks with their seconds; raise in the end if all were skipped."""
    chunks = _readable(READERS[found.form](found, options, plan, chunk), found)
    n = n_bad = 0
    bad: list[Skipped] = []
    start = time.perf_counter()
    for items in chunks:
        if n == n_bad == 0:
            notes = [*found.notes, *items.notes]
            items = replace(items, skipped=[*found.skipped, *items.skipped])
            items = replace(items, notes=notes)
        n += len(items)
        n_bad += len(items.skipped)
        bad += items.skipped[: 3 - len(bad)]
        yield replace(items, seconds=time.perf_counter() - start)
        start = time.perf_counter()
    if not n:
        rows = found.form == "table" and not n_bad
        raise nothing_left("table" if rows else found.kind, found.source, n_bad, bad)


def _readable(chunks: Iterator[Items], found: Found) -> Iterator[Items]:
    """Say which source it was that failed while it was read."""
    try:
        yield from chunks
    except DensPUError:
        raise
    except OSError as error:
        raise InvalidInputError(
            f"{found.source} cannot be read on: {reason_of(error)}."
        ) from error


def _images_of(
    found: Found, options: Options, plan: Mapping[str, Any], chunk: int
) -> Iterator[Items]:
    form = image_plan(plan)
    rows = max(1, min(chunk, options.max_bytes // form.bytes_for(1)))
    for start in range(0, len(found.names), rows):
        seen = survey(found, options, found.names[start : start + rows])
        yield _images.decode(seen, form, options.workers, options.max_pixels)


def _texts_of(
    found: Found, options: Options, plan: Mapping[str, Any], chunk: int
) -> Iterator[Items]:
    bare = replace(found, skipped=[], notes=[])

    def size(name: str) -> int:
        try:
            return os.stat(found.path / name).st_size
        except OSError:
            return 0

    for names in _grouped(found.names, chunk, options.max_bytes, size):
        yield text_files(bare, names, options)


def _lines_of(
    found: Found, options: Options, plan: Mapping[str, Any], chunk: int
) -> Iterator[Items]:
    first = 1
    lines = lines_of(found.path, options.encoding)
    for part in _grouped(lines, chunk, options.max_bytes, len):
        yield _texts.from_lines(part, found.source, first)
        first += len(part)


def _array_of(
    found: Found, options: Options, plan: Mapping[str, Any], chunk: int
) -> Iterator[Items]:
    array = _vectors.open_npy(found.path, mapped=True)
    (n, width), one = array.shape, array[:1].nbytes
    del array
    _vectors.check_width(width, plan["width"], found.source)
    ids = (str(i) for i in range(1, n + 1))
    if options.ids is not None:
        ids = _vectors.ids_for(found.path, n, Path(options.ids))  # type: ignore[assignment]
    rows = max(1, min(chunk, options.max_bytes // one))
    for start in range(0, n, rows):
        # mapped anew: pages that were looked at count as memory while a map lives
        part = _vectors.open_npy(found.path, mapped=True)[start : start + rows].copy()
        yield _vectors.items_of(part, list(islice(ids, len(part))), found.source)


def _table_of(
    found: Found, options: Options, plan: Mapping[str, Any], chunk: int
) -> Iterator[Items]:
    seen = SeenIds()
    for table in _raw(found, options, chunk):
        if options.id_column is not None:
            seen.add(row_ids(table, options.id_column))
        if found.kind == "table":
            yield table_items(table, dict(plan["columns"]), options)
        else:
            yield from_table(table, found.kind, options, plan)
    twice = seen.twice()
    if options.id_column is not None and twice:
        for table in _raw(found, options, chunk):
            for name in row_ids(table, options.id_column):
                if SeenIds.digest(name) in twice:
                    raise same_id(options.id_column, name, found.source)


def _raw(found: Found, options: Options, chunk: int) -> Iterator[_tables.RawTable]:
    return _tables.raw_chunks(found.path, options.encoding, chunk, options.max_bytes)


READERS: Mapping[
    str, Callable[[Found, Options, Mapping[str, Any], int], Iterator[Items]]
] = {
    "images": _images_of,
    "texts": _texts_of,
    "lines": _lines_of,
    "array": _array_of,
    "table": _table_of,
}


def _grouped(
    things: Iterable[One], most: int, max_bytes: int, size: Callable[[One], int]
) -> Iterator[list[One]]:
    """Yield lists of at most so many things, or about so many bytes."""
    group: list[One] = []
    held = 0
    for thing in things:
        taken = size(thing)
        if group and (len(group) == most or held + taken > max_bytes):
            yield group
            group, held = [], 0
        group.append(thing)
        held += taken
    if group:
        yield group
