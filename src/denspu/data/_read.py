"""``read_items`` and ``read_pair``: from a folder or a file to items in one form."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from denspu.data import _image_headers, _images, _texts, _vectors
from denspu.data._columns import infer_kinds
from denspu.data._find import (
    Found,
    Options,
    Source,
    checked_options,
    find,
    in_form_of,
    plan_of,
    plural,
)
from denspu.data._image_headers import Survey
from denspu.data._images import ImagePlan
from denspu.data._items import ItemKind, Items, need_some, nothing_left
from denspu.data._lines import lines_of
from denspu.data._rows import to_items
from denspu.data._tables import RawTable, read_raw
from denspu.exceptions import InvalidInputError, InvalidParameterError


def read_items(
    source: Source,
    *,
    kind: ItemKind | Literal["auto"] = "auto",
    like: Items | Mapping[str, Any] | None = None,
    **options: Any,
) -> Items:
    """Read a folder or a file of images, rows, texts or embeddings.

    Parameters
    ----------
    source : path or list of paths
        A folder of images or of ``.txt`` files, sub-folders included; a table (CSV,
        TSV, Parquet); a text file, one document a line or one image path a line;
        ``.npy`` embeddings; an image; or a list of image paths.
    kind : {"auto", "image", "table", "text", "embedding"}, default="auto"
        What the items are; ``"auto"`` tells by the names of the files.
    like : Items or mapping, optional
        Items read before, or their ``plan``: read in the same form, whatever the
        files suggest.
    image_size : int or (height, width), optional
        Size of the images. By default a size that all share is kept up to 256 pixels,
        others are brought to 64×64.
    columns : mapping of name to kind, optional
        Kinds of columns, where they are not as inferred: ``"number"``, ``"category"``,
        ``"date"``, ``"drop"``, or a date format such as ``"%d.%m.%Y"``.
    text_column, vector_column : str, optional
        The column of a table that holds the texts, or of a Parquet file that holds the
        embeddings.
    label_column, id_column : str, optional
        Columns with labels (1 and 0) and with names of the rows.
    aside : sequence of str, optional
        Columns to keep out of ``X``, such as groups or times.
    ids : path, optional
        A text file with one id a line, for ``.npy`` embeddings.
    encoding : str, default="utf-8"
        Encoding of texts and CSV files.
    max_pixels : int, default=50_000_000
        Images that decode to more pixels are skipped.
    max_bytes : int, default=2 GiB
        The array of all images may take so much memory.
    workers : int, optional
        Threads that decode; all cores by default.
    verbose : int, default=0
        Show how far the reading of many files is.

    Returns
    -------
    Items
        With ``X``, ``ids``, ``facts``, ``skipped`` and ``notes``.

    Raises
    ------
    InvalidInputError
        If nothing can be read; single bad items are listed in ``skipped`` instead.
    """
    chosen = checked_options(kind, options)
    start = time.perf_counter()
    plan = plan_of(like)
    if plan is not None:
        chosen = in_form_of(chosen, plan)
    return _read([find(source, chosen)], chosen, plan, start)[0]


def read_pair(
    positive: Source,
    unlabeled: Source,
    *,
    kind: ItemKind | Literal["auto"] = "auto",
    **options: Any,
) -> tuple[Items, Items]:
    """Read P and U in one common form, chosen by looking at both.

    The arguments are those of :func:`read_items`.
    """
    chosen = checked_options(kind, options)
    start = time.perf_counter()
    first, second = find(positive, chosen), find(unlabeled, chosen)
    if first.kind != second.kind:
        raise InvalidInputError(
            f"{first.source} holds {plural(first.kind)} and {second.source} "
            f"{plural(second.kind)}. Give both in the same form, or set kind=."
        )
    read = _read([first, second], chosen, None, start)
    return read[0], read[1]


# --- reading ------------------------------------------------------------------------


def _read(
    found: Sequence[Found],
    options: Options,
    plan: Mapping[str, Any] | None,
    start: float,
) -> list[Items]:
    """Bring all sources to one form."""
    kind = found[0].kind
    if kind == "image":
        return _read_images([survey(one, options) for one in found], options, plan)
    if kind == "table":
        tables = [_raw(one, options) for one in found]
        items = _read_tables(tables, options, plan)
    else:
        items = [need_some(_whole(one, options, plan)) for one in found]
        if kind == "embedding":
            wanted = items[0].plan["width"] if plan is None else plan["width"]
            for one in items:
                _vectors.check_width(one.plan["width"], wanted, one.source)
    seconds = time.perf_counter() - start
    return [replace(need_some(one), seconds=seconds) for one in items]


def _whole(found: Found, options: Options, plan: Mapping[str, Any] | None) -> Items:
    """Read texts or embeddings."""
    if found.form == "texts":
        return text_files(found, found.names, options)
    if found.form == "lines":
        lines = list(lines_of(found.path, options.encoding))
        return _texts.from_lines(lines, found.source)
    if found.form == "array":
        ids = Path(options.ids) if options.ids else None
        return _vectors.from_npy(found.path, ids)
    return from_table(_raw(found, options), found.kind, options, plan)


def _raw(found: Found, options: Options) -> RawTable:
    table = read_raw(found.path, options.encoding)
    if not table.rows:
        bad = table.skipped
        raise nothing_left("table", table.source, len(bad), bad)
    return table


def survey(
    found: Found, options: Options, names: Sequence[str] | None = None
) -> Survey:
    """Look at the headers of all images, or of some."""
    return _image_headers.survey(
        found.path,
        found.names if names is None else names,
        source=found.source,
        max_pixels=options.max_pixels,
        workers=options.workers,
        verbose=options.verbose,
        skipped=found.skipped if names is None else (),
        notes=found.notes if names is None else (),
    )


def text_files(found: Found, names: Sequence[str], options: Options) -> Items:
    """Read documents of one file each."""
    items = _texts.from_files(
        found.path,
        names,
        options.encoding,
        source=found.source,
        skipped=found.skipped,
        verbose=options.verbose,
    )
    return replace(items, notes=list(found.notes))


def from_table(
    table: RawTable, kind: str, options: Options, plan: Mapping[str, Any] | None
) -> Items:
    """Take the texts or the embeddings of a column."""
    if kind == "text":
        column = options.text_column or _only_column(table, "text_column", options)
        return _texts.from_column(table, column, **_apart(options))
    column = options.vector_column or _only_vector(table)
    width = None if plan is None else plan["width"]
    return _vectors.from_column(table, column, width=width, **_apart(options))


def _apart(options: Options) -> dict[str, Any]:
    return {
        "label_column": options.label_column,
        "id_column": options.id_column,
        "aside": options.aside,
    }


def _only_column(table: RawTable, argument: str, options: Options) -> str:
    apart = {options.label_column, options.id_column, *options.aside}
    names = [name for name in table.names if name not in apart]
    if len(names) == 1:
        return names[0]
    raise InvalidParameterError(
        f"{table.source} has the columns {names[:12]}; say which one with {argument}=."
    )


def _only_vector(table: RawTable) -> str:
    vectors = [name for name, kind in table.kinds.items() if kind == "vector"]
    if len(vectors) == 1:
        return vectors[0]
    raise InvalidParameterError(
        f"{table.source} has {len(vectors)} columns of vectors {vectors[:12]}; say "
        "which one with vector_column=."
    )


def _read_images(
    surveys: Sequence[Survey], options: Options, plan: Mapping[str, Any] | None
) -> list[Items]:
    for found in surveys:
        if not found.headers:
            raise nothing_left("image", found.source, len(found.skipped), found.skipped)
    notes: list[str] = []
    headers = [header for found in surveys for header in found.headers]
    if plan is None:
        form, notes = _images.choose_plan(headers, options.image_size)
    else:
        form = image_plan(plan)
    _images.check_memory(form, len(headers), options.max_bytes)
    read = []
    for found in surveys:
        items = _images.decode(
            found, form, options.workers, options.max_pixels, options.verbose
        )
        read.append(replace(need_some(items), notes=[*items.notes, *notes]))
        notes = []
    return read


def image_plan(plan: Mapping[str, Any]) -> ImagePlan:
    """Return the form of images that a plan describes."""
    return ImagePlan(**{name: plan[name] for name in ImagePlan.__dataclass_fields__})


def _read_tables(
    tables: Sequence[RawTable], options: Options, plan: Mapping[str, Any] | None
) -> list[Items]:
    apart = {options.label_column, options.id_column, *options.aside} - {None}
    notes: list[str] = []
    if plan is None:
        kinds, notes = infer_kinds(
            tables, options.columns, frozenset(str(name) for name in apart)
        )
    else:
        kinds = dict(plan["columns"])
    return [
        table_items(table, kinds, options, notes if i == 0 else ())
        for i, table in enumerate(tables)
    ]


def table_items(
    table: RawTable,
    kinds: Mapping[str, str],
    options: Options,
    notes: Sequence[str] = (),
) -> Items:
    """Turn a table into rows of the given kinds."""
    return to_items(table, kinds, notes=notes, **_apart(options))
