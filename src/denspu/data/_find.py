"""What is it? A look at a source, before anything is read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from denspu._parameters import Whole
from denspu.data._image_headers import MAX_PIXELS
from denspu.data._images import MAX_BYTES, Size
from denspu.data._items import KINDS, ItemKind, Items, Skipped
from denspu.data._lines import lines_of
from denspu.data._tables import CSV_SUFFIXES, PARQUET_SUFFIXES
from denspu.data._walk import IMAGE_SUFFIXES, TEXT_SUFFIXES, list_folder, suffix
from denspu.exceptions import InvalidInputError, InvalidParameterError, did_you_mean

TABLE_SUFFIXES = CSV_SUFFIXES | PARQUET_SUFFIXES
LIST_SUFFIXES = TEXT_SUFFIXES | {".lst", ".list"}
LOOKED_AT = 5
"""Lines of a text file that tell a list of images from documents."""

Source: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


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
    verbose: int = 0


@dataclass(frozen=True)
class Found:
    """A source that was looked at and not yet read."""

    kind: ItemKind
    form: Literal["images", "texts", "lines", "array", "table"]
    source: str
    """As the user named it."""
    path: Path
    """The file, or the folder that ``names`` are below."""
    names: list[str] = field(default_factory=list)
    """Files of images and texts, in order."""
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def checked_options(kind: Any, options: Mapping[str, Any]) -> Options:
    """Return the options of a reading, each checked."""
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
    try:
        "".encode(chosen.encoding)
    except LookupError as error:
        raise InvalidParameterError(
            f"encoding={chosen.encoding!r} is not known. Use 'utf-8', 'latin-1' or "
            "another name that Python knows."
        ) from error
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


def plan_of(like: Items | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the plan of items, or the plan itself."""
    return like.plan if isinstance(like, Items) else like


def in_form_of(options: Options, plan: Mapping[str, Any]) -> Options:
    """Return the options with the kind of a plan."""
    kind = plan.get("kind")
    if kind not in KINDS:
        raise InvalidParameterError(
            f"like={plan!r} is no plan; pass items, or their plan."
        )
    if options.kind not in ("auto", kind):
        raise InvalidParameterError(
            f"kind={options.kind!r} contradicts like=, which holds {plural(kind)}."
        )
    return replace(options, kind=kind)


# --- looking ------------------------------------------------------------------------


def find(source: Source, options: Options) -> Found:
    """Say what a source holds, by names and the first lines."""
    if isinstance(source, list | tuple):
        return _find_list(source, options)
    path = Path(os.fspath(source))  # type: ignore[arg-type]
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        raise InvalidInputError(f"{source!s} cannot be opened: {error}") from error
    if is_folder:
        return _find_folder(path, options)
    if not is_file:
        raise InvalidInputError(
            f"{source!s} is neither a folder nor a file. Check the path."
        )
    return _find_file(path, options)


def _find_folder(path: Path, options: Options) -> Found:
    listing = list_folder(path)
    images = listing.with_suffix(IMAGE_SUFFIXES)
    texts = listing.with_suffix(TEXT_SUFFIXES)
    kind = options.kind
    if kind == "auto":
        kind = "image" if images or not texts else "text"
    if kind not in ("image", "text"):
        raise InvalidInputError(
            f"{path} is a folder; {plural(kind)} are read from a file. It holds: "
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
    form: Literal["images", "texts"] = "images" if kind == "image" else "texts"
    return Found(kind, form, str(path), path, names, listing.skipped, notes)


def _find_list(paths: Sequence[Any], options: Options) -> Found:
    if options.kind not in ("auto", "image"):
        raise InvalidInputError(
            f"A list of paths is read as images, not as {plural(options.kind)}. Pass "
            "one path."
        )
    if not paths:
        raise InvalidInputError("The list of images is empty.")
    names = [os.fspath(p) for p in paths]
    return Found("image", "images", "the list", Path(), names)


def _find_file(path: Path, options: Options) -> Found:
    kind = options.kind if options.kind != "auto" else _guess(path, options)
    end = suffix(path.name)
    _refuse_other_files(path, kind)
    if kind == "image":
        if end in IMAGE_SUFFIXES:
            return Found(kind, "images", str(path), path.parent, [path.name])
        names = [line.strip() for line in lines_of(path, options.encoding)]
        names = [name for name in names if name]
        if not names:
            raise InvalidInputError(
                f"{path} is empty; one image path a line is needed."
            )
        return Found(kind, "images", str(path), path.parent, names)
    if end in TABLE_SUFFIXES or kind == "table":
        return Found(kind, "table", str(path), path)
    if kind == "text":
        return Found(kind, "lines", str(path), path)
    if end != ".npy":
        raise InvalidInputError(
            f"{path} is no .npy file and no Parquet file with a vector_column; "
            "embeddings are read from those."
        )
    return Found(kind, "array", str(path), path)


def _refuse_other_files(path: Path, kind: ItemKind) -> None:
    """Refuse a file whose name says that it holds another kind of item."""
    end = suffix(path.name)
    held = {
        "an image": end in IMAGE_SUFFIXES and kind != "image",
        "an array": end == ".npy" and kind != "embedding",
        "a table": end in TABLE_SUFFIXES and kind == "image",
    }
    for what, other in held.items():
        if other:
            raise InvalidInputError(
                f"{path} is {what} by its name, and {plural(kind)} are wanted "
                f"({WANTED[kind]}). Pass such a source."
            )


WANTED = {
    "image": "a folder, an image, or a .txt with one path a line",
    "table": ".csv, .tsv or .parquet",
    "text": "a .txt with one text a line, a folder of .txt, or a column of a table",
    "embedding": ".npy, or a vector column of a .parquet",
}


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


def plural(kind: str) -> str:
    """Return a kind in words, for several items."""
    return {"table": "table rows"}.get(kind, f"{kind}s")
