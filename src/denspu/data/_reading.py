"""From a folder or a file to items: ``read_items``, ``read_pair``, ``iter_items``.

A source is looked at by its name (:func:`find`), and its kind gives pieces of it and
turns each piece into items. Reading is putting together what iterating gives.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from denspu._parameters import Whole, check
from denspu.data.kinds import (
    Items,
    Kind,
    Skipped,
    kind_of,
    kinds,
    nothing_left,
    suffix,
)
from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    MissingDependencyError,
    did_you_mean,
)

MANY = 1_000
"""Files whose reading takes long enough to show how far it is."""
MAX_PIXELS = 50_000_000
"""Pixels of one decoded image. Larger ones are refused; a JPEG is shrunk instead."""
MAX_BYTES = 2 * 1024**3
"""Size of the array of all images."""
CHUNK = 1024
CHUNK_BYTES = 256 * 1024**2
WHOLE = ("kind", "image_size", "columns", "label_column", "max_bytes", "verbose")
"""Options that ``iter_items`` does not take: the plan says, or the chunks."""

Size: TypeAlias = int | tuple[int, int] | None
Source: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Plan: TypeAlias = Mapping[str, Any]
Thing = TypeVar("Thing")


class Limit(NamedTuple):
    """How large a piece of a source may be; without arguments, no limit."""

    rows: int = sys.maxsize
    bytes: int = sys.maxsize


@dataclass(frozen=True)
class Options:
    """How to read; the arguments of :func:`read_items`."""

    kind: str = "auto"
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

    @property
    def apart(self) -> list[str]:
        """Columns that are kept out of ``X``."""
        named = (self.label_column, self.id_column, *self.aside)
        return [name for name in named if name is not None]


@dataclass(frozen=True)
class Found:
    """A source that was looked at and not yet read."""

    kind: Kind
    source: str
    """As the user named it."""
    path: Path
    """The file, or the folder that ``names`` are below."""
    names: list[str] = field(default_factory=list)
    """Files with one item each, in order."""
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# --- what users call ----------------------------------------------------------------


def read_items(
    source: Source,
    *,
    kind: str = "auto",
    like: Items | Plan | None = None,
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
    chosen = _checked(kind, options)
    plan = None
    if like is not None:
        plan, chosen = _in_form_of(like, chosen)
    return _read([find(source, chosen)], chosen, plan)[0]


def read_pair(
    positive: Source, unlabeled: Source, *, kind: str = "auto", **options: Any
) -> tuple[Items, Items]:
    """Read P and U in one common form, chosen by looking at both.

    The arguments are those of :func:`read_items`.
    """
    chosen = _checked(kind, options)
    first, second = find(positive, chosen), find(unlabeled, chosen)
    if first.kind is not second.kind:
        raise InvalidInputError(
            f"{first.source} holds {first.kind.plural} and {second.source} "
            f"{second.kind.plural}. Give both in the same form, or set kind=."
        )
    P, U = _read([first, second], chosen, None)
    return P, U


def iter_items(
    source: Source,
    *,
    like: Items | Plan,
    chunk: int = CHUNK,
    max_bytes: int = CHUNK_BYTES,
    **options: Any,
) -> Iterator[Items]:
    """Read a source of any length, some items at a time.

    The chunks put together are what ``read_items(source, like=like)`` gives: the same
    items, ids and skipped ones. Memory depends on the chunk, not on the source; only
    the names of the files of a folder, and the ids of an ``id_column`` or of ``ids``,
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
        an id stands in several rows: before the second. If nothing could be read:
        after the last one.

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
    check("chunk", chunk, Whole(1))
    check("max_bytes", max_bytes, Whole(1))
    chosen = _checked("auto", options, but=WHOLE)
    plan, chosen = _in_form_of(like, chosen)
    found = find(source, chosen)
    pieces = _pieces(found, chosen, plan, Limit(chunk, max_bytes))
    return _parts(found, pieces, chosen, plan)


# --- reading ------------------------------------------------------------------------


def _read(found: Sequence[Found], options: Options, given: Plan | None) -> list[Items]:
    """Read all sources in one form: the given one, or one that suits them all."""
    kind = found[0].kind
    clock, pieces, read = [time.perf_counter()], list[list[Any]](), list[Items]()
    with kind.quiet():
        for one in found:
            pieces.append(list(_pieces(one, options, given, Limit())))
            clock.append(time.perf_counter())
        plan, notes = kind.plan(list(chain(*pieces)), options, given)
        for one, some, seconds in zip(found, pieces, np.diff(clock), strict=True):
            items = Items.together(list(_parts(one, some, options, plan)))
            told = items.notes if read else [*items.notes, *notes]
            took = items.seconds + float(seconds)
            read.append(replace(items, notes=told, seconds=took))
    return read


def _pieces(
    found: Found, options: Options, plan: Plan | None, limit: Limit
) -> Iterator[Any]:
    """Yield a source as it stands; say which one failed while it was read."""
    try:
        yield from found.kind.pieces(found, options, plan, limit)
    except OSError as error:
        raise InvalidInputError(
            f"{found.source} cannot be read on: {reason_of(error)}."
        ) from error


def _parts(
    found: Found, pieces: Iterable[Any], options: Options, plan: Plan
) -> Iterator[Items]:
    """Yield the items of each piece; raise in the end if all were skipped."""
    n = n_bad = 0
    bad: list[Skipped] = []
    start = time.perf_counter()
    for piece in pieces:
        items = found.kind.items(piece, options, plan)
        del piece  # a long source is not held
        if n == n_bad == 0:
            skipped = [*found.skipped, *items.skipped]
            items = replace(items, skipped=skipped, notes=[*found.notes, *items.notes])
        n += len(items)
        n_bad += len(items.skipped)
        bad += items.skipped[: 3 - len(bad)]
        yield replace(items, seconds=time.perf_counter() - start)
        start = time.perf_counter()
    if not n:
        raise nothing_left(found.kind, found.source, n_bad, bad)


def grouped(
    things: Iterable[Thing], limit: Limit, size: Callable[[Thing], int]
) -> Iterator[list[Thing]]:
    """Yield lists of at most so many things, or about so many bytes."""
    group: list[Thing] = []
    held = 0
    for thing in things:
        taken = size(thing)
        if group and (len(group) == limit.rows or held + taken > limit.bytes):
            yield group
            group, held = [], 0
        group.append(thing)
        held += taken
    if group:
        yield group


# --- options ------------------------------------------------------------------------


def _checked(
    kind: Any, options: Mapping[str, Any], but: Sequence[str] = ("kind",)
) -> Options:
    """Return the options of a reading, each checked."""
    if kind not in ("auto", *kinds()):
        raise InvalidParameterError(
            f"kind={kind!r} must be auto, {', '.join(kinds())}."
            f"{did_you_mean(str(kind), kinds())}"
        )
    known = [name for name in Options.__dataclass_fields__ if name not in but]
    for name in options:
        if name not in known:
            raise InvalidParameterError(
                f"There is no option {name!r}.{did_you_mean(name, known)} Options: "
                f"{', '.join(known)}."
            )
    aside, columns = options.get("aside") or (), options.get("columns") or {}
    chosen = Options(kind, **{**options, "aside": tuple(aside), "columns": columns})
    try:
        "".encode(chosen.encoding)
    except LookupError as error:
        raise InvalidParameterError(
            f"encoding={chosen.encoding!r} is not known. Use 'utf-8', 'latin-1' or "
            "another name that Python knows."
        ) from error
    check("max_pixels", chosen.max_pixels, Whole(1))
    check("max_bytes", chosen.max_bytes, Whole(1))
    if chosen.text_column is not None and chosen.vector_column is not None:
        raise InvalidParameterError(
            "text_column and vector_column exclude each other: give one of them."
        )
    return chosen


def _in_form_of(like: Items | Plan, options: Options) -> tuple[Plan, Options]:
    """Return a plan, and the options with its kind."""
    plan = like.plan if isinstance(like, Items) else like
    kind = plan.get("kind") if isinstance(plan, Mapping) else None
    if kind not in kinds():
        raise InvalidParameterError(
            f"like={plan!r} is no plan; pass items that were read before, or their "
            "plan."
        )
    if options.kind not in ("auto", kind):
        raise InvalidParameterError(
            f"kind={options.kind!r} contradicts like=, which holds "
            f"{kind_of(kind).plural}."
        )
    return plan, replace(options, kind=kind)


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
    if options.kind == "auto":
        claims = (kind for kind in kinds().values() if kind.claims(path, options))
        kind = next(claims, None)
        if kind is None:
            known = "; ".join(f"{k.wanted} ({k.plural})" for k in kinds().values())
            raise InvalidInputError(
                f"{path.name}: files that end in {suffix(path.name) or 'nothing'!r} "
                f"are not known. Known are {known}; kind= says what another file is."
            )
    else:
        kind = kind_of(options.kind)
    end = suffix(path.name)
    for other in kinds().values():
        named = other.file_name and end in other.suffixes
        if named and other is not kind and end not in kind.also_reads:
            raise InvalidInputError(
                f"{path} is {other.file_name} by its name, and {kind.plural} are "
                f"wanted ({kind.wanted}). Pass such a source."
            )
    top, names = kind.files(path, options)
    return Found(kind, str(path), top, names)


def _find_folder(path: Path, options: Options) -> Found:
    files, unread = list_folder(path)
    endings = Counter(suffix(name) for name in files)
    held = ", ".join(f"{n} {end or 'no suffix'}" for end, n in endings.most_common(5))
    in_folders = [kind for kind in kinds().values() if kind.folder]
    if options.kind == "auto":
        here = (kind for kind in in_folders if kind.suffixes & set(endings))
        kind = next(here, kind_of("image"))
    else:
        kind = kind_of(options.kind)
    if not kind.folder:
        raise InvalidInputError(
            f"{path} is a folder; {kind.plural} are read from a file. It holds: "
            f"{held or 'none'}. Pass one of its files."
        )
    names = [name for name in files if suffix(name) in kind.suffixes]
    if not names:
        for item, reason in unread[:1]:
            raise InvalidInputError(f"{path}: {item} cannot be read: {reason}.")
        inside = f"holds {held}" if files else "is empty"
        raise InvalidInputError(
            f"{path} has no {kind.plural}: it {inside}. Folders may hold "
            f"{' or '.join(kind.folder for kind in in_folders)}; pass a table or "
            "embeddings as a file."
        )
    notes = []
    if others := len(files) - len(names):
        notes.append(f"{others:,} other files in {path} are not read.")
    return Found(kind, str(path), path, names, unread, notes)


def _find_list(paths: Sequence[Any], options: Options) -> Found:
    kind = kind_of("image")
    if options.kind not in ("auto", kind.name):
        raise InvalidInputError(
            f"A list of paths is read as {kind.plural}, not as "
            f"{kind_of(options.kind).plural}. Pass one path."
        )
    if not paths:
        raise InvalidInputError("The list of images is empty.")
    return Found(kind, "the list", Path(), [os.fspath(path) for path in paths])


# --- folders and text files ---------------------------------------------------------


def list_folder(top: Path) -> tuple[list[str], list[Skipped]]:
    """Return the paths of the files below a folder, and the folders not readable.

    Paths are sorted and spelled as the file system does; hidden ones are left out.
    Links are followed, but no folder is entered twice, so a circle of links ends.
    """
    files: list[str] = []
    unread: list[OSError] = []
    seen: set[tuple[int, int]] = set()
    for folder, below, names in os.walk(top, onerror=unread.append, followlinks=True):
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            below.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        below[:] = sorted(name for name in below if name[0] != ".")
        paths = (Path(folder, name) for name in names if name[0] != ".")
        files += [p.relative_to(top).as_posix() for p in paths if not _is_device(p)]
    skipped = [
        Skipped(shown(os.path.relpath(error.filename, top)) + "/", reason_of(error))
        for error in unread
    ]
    return sorted(files, key=os.fsencode), skipped


def _is_device(path: Path) -> bool:
    """Tell whether reading may never end: pipes, devices, sockets."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:  # whoever reads it says why it cannot be read
        return False


def shown(name: str) -> str:
    """Return a path that any file can hold: bytes that are not UTF-8 become ``\\xNN``.

    Control characters stay as they are; whoever prints them escapes them.
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def reason_of(error: OSError) -> str:
    """Return what the system says about a file that cannot be opened."""
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if isinstance(error, FileNotFoundError):
        return "not there (a broken link, or removed meanwhile)"
    return error.strerror or str(error) or type(error).__name__


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[IO[str]]:
    """Open a text file; a byte-order mark of UTF-8 is dropped, line ends are kept.

    A byte that is not in the encoding becomes an error that says where it stands.
    """
    plain = encoding.lower().replace("_", "-") == "utf-8"
    with opened(path) as raw:
        file = TextIOWrapper(raw, "utf-8-sig" if plain else encoding, newline="")
        try:
            yield file
        except UnicodeError as error:
            raise InvalidInputError(
                f"{path.name} is not {encoding.upper()}: "
                f"{_first_fault(path, encoding) or f'{error}. Pass encoding=.'}"
            ) from error


def opened(path: Path) -> IO[bytes]:
    """Open a file that must be there and readable."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be opened: {reason_of(error)}."
        ) from error


def _first_fault(path: Path, encoding: str) -> str:
    """Say which byte is not in the encoding, if lines can be told apart in it."""
    if "16" in encoding or "32" in encoding:
        return ""
    start = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                wide = number == 1 and line[:2] in (b"\xff\xfe", b"\xfe\xff")
                return (
                    f"byte 0x{line[error.start]:02x} at position {start + error.start} "
                    f"(line {number}). Save it as UTF-8, or pass "
                    f"encoding={'utf-16' if wide else 'latin-1'!r} if that is what it "
                    "is."
                )
            start += len(line)
    return ""


def lines_of(path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of a file as ``str.splitlines`` gives them."""
    with open_text(path, encoding) as file:
        for line in file:  # up to \n, \r or both; it may hold other ends of lines
            yield from line.splitlines()


def require_pyarrow() -> Any:
    """Return pyarrow with its Parquet module, or say how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError(
            "Reading Parquet needs pyarrow: pip install 'denspu[data]'"
        ) from error
    return pyarrow
