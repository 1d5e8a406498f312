"""``read_items`` and ``read_pair``: from a folder or a file to items in one form."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from denspu._parameters import Whole
from denspu.data import _images, _tables, _texts, _vectors
from denspu.data._images import MAX_BYTES, MAX_PIXELS, ImagePlan, Size, Survey
from denspu.data._items import KINDS, ItemKind, Items, Skipped, nothing_left
from denspu.data._tables import CSV_SUFFIXES, PARQUET_SUFFIXES, RawTable
from denspu.data._walk import IMAGE_SUFFIXES, TEXT_SUFFIXES, list_folder, suffix
from denspu.exceptions import InvalidInputError, InvalidParameterError, did_you_mean

TABLE_SUFFIXES = CSV_SUFFIXES | PARQUET_SUFFIXES
LIST_SUFFIXES = TEXT_SUFFIXES | {".lst", ".list"}
LOOKED_AT = 5
"""Lines of a text file that tell a list of images from documents."""


@dataclass(frozen=True)
class Options:
    """How to read; the arguments of :func:`read_items`."""

    kind: ItemKind | Literal["auto"] = "auto"
    image_size: Size = None
    columns: Mapping[str, str] = field(default_factory=dict)
    text_column: str | None = None
    vector_column: str | None = None
    label_column: str | None = None
    id_column: str | None = None
    aside: Sequence[str] = ()
    ids: str | os.PathLike[str] | None = None
    encoding: str = "utf-8"
    max_pixels: int = MAX_PIXELS
    max_bytes: int = MAX_BYTES
    workers: int | None = None


def read_items(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
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

    Returns
    -------
    Items
        With ``X``, ``ids``, ``facts``, ``skipped`` and ``notes``.

    Raises
    ------
    InvalidInputError
        If nothing can be read; single bad items are listed in ``skipped`` instead.
    """
    chosen = _options(kind, options)
    start = time.perf_counter()
    plan = like.plan if isinstance(like, Items) else like
    if plan is not None:
        chosen = _like(chosen, plan)
    opened = _open(source, chosen)
    return _read([opened], chosen, plan, start)[0]


def read_pair(
    positive: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    unlabeled: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    kind: ItemKind | Literal["auto"] = "auto",
    **options: Any,
) -> tuple[Items, Items]:
    """Read P and U in one common form, chosen by looking at both.

    The arguments are those of :func:`read_items`.
    """
    chosen = _options(kind, options)
    start = time.perf_counter()
    first = _open(positive, chosen)
    second = _open(unlabeled, chosen)
    kinds = [_kind_of(opened) for opened in (first, second)]
    if kinds[0] != kinds[1]:
        raise InvalidInputError(
            f"{_shown(positive)} holds {_plural(kinds[0])} and {_shown(unlabeled)} "
            f"{_plural(kinds[1])}. Give both in the same form, or set kind=."
        )
    read = _read([first, second], chosen, None, start)
    return read[0], read[1]


def _options(kind: Any, options: Mapping[str, Any]) -> Options:
    if kind not in ("auto", *KINDS):
        raise InvalidParameterError(
            f"kind={kind!r} must be auto, {', '.join(KINDS)}."
            f"{did_you_mean(str(kind), KINDS)}"
        )
    known = [name for name in Options.__dataclass_fields__ if name != "kind"]
    for name in options:
        if name not in known:
            raise InvalidParameterError(
                f"There is no option {name!r}.{did_you_mean(name, known)} Options: "
                f"{', '.join(known)}."
            )
    given = dict(options)
    given["columns"] = given.get("columns") or {}
    given["aside"] = tuple(given.get("aside") or ())
    chosen = Options(kind=kind, **given)
    for name in ("max_pixels", "max_bytes"):
        if not Whole(1).allows(getattr(chosen, name)):
            raise InvalidParameterError(
                f"{name}={getattr(chosen, name)!r} must be {Whole(1)}."
            )
    if chosen.text_column is not None and chosen.vector_column is not None:
        raise InvalidParameterError(
            "text_column and vector_column exclude each other: give one of them."
        )
    return chosen


def _like(options: Options, plan: Mapping[str, Any]) -> Options:
    kind = plan.get("kind")
    if kind not in KINDS:
        raise InvalidParameterError(
            f"like={plan!r} is no plan; pass items, or their plan."
        )
    if options.kind not in ("auto", kind):
        raise InvalidParameterError(
            f"kind={options.kind!r} contradicts like=, which holds {_plural(kind)}."
        )
    return replace(options, kind=kind)


# --- what is it? --------------------------------------------------------------------


def _open(source: Any, options: Options) -> Survey | RawTable | Items:
    """Look at a source: images as headers, tables as raw cells, others complete."""
    if isinstance(source, list | tuple):
        return _open_list(source, options)
    path = Path(source)
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        raise InvalidInputError(f"{source!s} cannot be opened: {error}") from error
    if is_folder:
        return _open_folder(path, options)
    if not is_file:
        raise InvalidInputError(
            f"{source!s} is neither a folder nor a file. Check the path."
        )
    return _open_file(path, options)


def _open_folder(path: Path, options: Options) -> Survey | Items:
    listing = list_folder(path)
    images = listing.with_suffix(IMAGE_SUFFIXES)
    texts = listing.with_suffix(TEXT_SUFFIXES)
    kind = options.kind
    if kind == "auto":
        kind = "image" if images or not texts else "text"
    if kind not in ("image", "text"):
        raise InvalidInputError(
            f"{path} is a folder; {_plural(kind)} are read from a file. It holds: "
            f"{listing.kinds()}. Pass one of its files."
        )
    names = images if kind == "image" else texts
    if not names:
        for item, reason in listing.skipped[:1]:
            raise InvalidInputError(f"{path}: {item} cannot be read: {reason}.")
        inside = "is empty"
        if listing.files:
            inside = f"holds {listing.kinds()}"
        raise InvalidInputError(
            f"{path} has no {kind}s: it {inside}. Folders may hold images "
            "(.jpg .png .webp .tif .bmp .gif) or texts (.txt); pass a table or "
            "embeddings as a file."
        )
    notes = []
    if len(names) < len(listing.files):
        notes.append(
            f"{len(listing.files) - len(names):,} other files in {path} are not read."
        )
    if kind == "text":
        items = _texts.from_files(
            path, names, options.encoding, source=str(path), skipped=listing.skipped
        )
        return replace(items, notes=notes)
    return _survey(path, names, options, str(path), listing.skipped, notes)


def _survey(
    top: Path,
    names: Sequence[str],
    options: Options,
    source: str,
    skipped: Sequence[Skipped] = (),
    notes: Sequence[str] = (),
) -> Survey:
    return _images.survey(
        top,
        names,
        source=source,
        max_pixels=options.max_pixels,
        workers=options.workers,
        skipped=skipped,
        notes=notes,
    )


def _open_list(paths: Sequence[Any], options: Options) -> Survey:
    if options.kind not in ("auto", "image"):
        raise InvalidInputError(
            f"A list of paths is read as images, not as {_plural(options.kind)}. Pass "
            "one path."
        )
    if not paths:
        raise InvalidInputError("The list of images is empty.")
    return _survey(Path(), [os.fspath(p) for p in paths], options, "the list")


def _open_file(path: Path, options: Options) -> Survey | RawTable | Items:
    kind = options.kind if options.kind != "auto" else _guess(path, options)
    end = suffix(path.name)
    if end in TABLE_SUFFIXES and kind != "image":
        return _open_table(path, kind, options)
    if kind == "image":
        if end in IMAGE_SUFFIXES:
            return _survey(path.parent, [path.name], options, str(path))
        return _open_image_list(path, options)
    if kind == "text":
        return _texts.from_lines(path, options.encoding)
    if kind == "embedding":
        if end != ".npy":
            raise InvalidInputError(
                f"{path} is no .npy file and no Parquet file with a vector_column; "
                "embeddings are read from those."
            )
        return _vectors.from_npy(path, Path(options.ids) if options.ids else None)
    return _tables.read_raw(path, options.encoding)


def _guess(path: Path, options: Options) -> ItemKind:
    end = suffix(path.name)
    if end in IMAGE_SUFFIXES:
        return "image"
    if end == ".npy":
        return "embedding"
    if end in TABLE_SUFFIXES:
        if options.text_column is not None:
            return "text"
        return "table" if options.vector_column is None else "embedding"
    if end in LIST_SUFFIXES:
        return "image" if _lists_images(path, options.encoding) else "text"
    raise InvalidInputError(
        f"{path.name}: files that end in {end or 'nothing'!r} are not known. Known are "
        "images, .csv .tsv .parquet (tables), .txt (one text a line) and .npy "
        "(embeddings); kind= says what another file is."
    )


def _lists_images(path: Path, encoding: str) -> bool:
    """Tell whether the first lines are names of images that exist."""
    try:
        with open(path, encoding=encoding) as file:
            lines = [file.readline(4096).strip() for _ in range(LOOKED_AT)]
    except (OSError, UnicodeDecodeError):
        return False
    named = [line for line in lines if line]
    return bool(named) and all(
        suffix(line) in IMAGE_SUFFIXES and (path.parent / line).exists()
        for line in named
    )


def _open_image_list(path: Path, options: Options) -> Survey:
    lines = _tables.decode_text(path, options.encoding).splitlines()
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise InvalidInputError(f"{path} is empty; one image path a line is needed.")
    return _survey(path.parent, names, options, str(path))


def _open_table(path: Path, kind: str, options: Options) -> RawTable | Items:
    table = _tables.read_raw(path, options.encoding)
    if kind == "table":
        return table
    if kind == "text":
        column = options.text_column or _only_column(table, "text_column", options)
        return _texts.from_column(table, column, **_apart(options))
    column = options.vector_column or _only_vector(table)
    return _vectors.from_column(table, column, **_apart(options))


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


# --- reading ------------------------------------------------------------------------


def _read(
    opened: Sequence[Any],
    options: Options,
    plan: Mapping[str, Any] | None,
    start: float,
) -> list[Items]:
    """Bring all sources to one form."""
    if isinstance(opened[0], Survey):
        return _read_images(opened, options, plan)
    if isinstance(opened[0], RawTable):
        items = _read_tables(opened, options, plan)
    else:
        items = list(opened)
        _same_width(items, plan)
    seconds = time.perf_counter() - start
    return [replace(one, seconds=seconds) for one in items]


def _read_images(
    surveys: Sequence[Survey], options: Options, plan: Mapping[str, Any] | None
) -> list[Items]:
    for found in surveys:
        if not found.headers:
            raise nothing_left(found.source, "images", found.skipped)
    notes: list[str] = []
    headers = [header for found in surveys for header in found.headers]
    if plan is None:
        form, notes = _images.choose_plan(headers, options.image_size)
    else:
        form = ImagePlan(**{k: v for k, v in plan.items() if k != "kind"})
    _images.check_memory(form, len(headers), options.max_bytes)
    read = []
    for found in surveys:
        items = _images.decode(found, form, options.workers, options.max_pixels)
        read.append(replace(items, notes=[*items.notes, *notes]))
        notes = []
    return read


def _read_tables(
    tables: Sequence[RawTable], options: Options, plan: Mapping[str, Any] | None
) -> list[Items]:
    apart = {options.label_column, options.id_column, *options.aside} - {None}
    notes: list[str] = []
    if plan is None:
        kinds, notes = _tables.infer_kinds(
            tables, options.columns, frozenset(str(name) for name in apart)
        )
    else:
        kinds = dict(plan["columns"])
    return [
        _tables.to_items(table, kinds, notes=notes if i == 0 else (), **_apart(options))
        for i, table in enumerate(tables)
    ]


def _same_width(items: Sequence[Items], plan: Mapping[str, Any] | None) -> None:
    if items[0].kind != "embedding":
        return
    widths = [one.plan["width"] for one in items]
    wanted = widths[0] if plan is None else plan["width"]
    for one, width in zip(items, widths, strict=True):
        if width != wanted:
            raise InvalidInputError(
                f"The embeddings of {one.source} have {width} numbers, the others "
                f"{wanted}. Use embeddings of the same model."
            )


def _kind_of(opened: Survey | RawTable | Items) -> str:
    if isinstance(opened, Survey):
        return "image"
    return "table" if isinstance(opened, RawTable) else opened.kind


def _plural(kind: str) -> str:
    return {"table": "table rows"}.get(kind, f"{kind}s")


def _shown(source: Any) -> str:
    return "the list" if isinstance(source, list | tuple) else str(source)
