"""Readers of texts and pictures: a few formats, then one way to rows and a class.

A format yields the class of every row and the row itself. What follows is the same for
all: classes that are not asked for and exact copies go, the positive rule is applied,
and at most 10,000 rows are drawn, the same ones for every task of a source.
"""

from __future__ import annotations

import csv
import email
import gzip
import hashlib
import io
import json
import re
import sys
import tarfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from denspu._files import new_file
from real_tables import is_positive, r_object, stored

Options = Mapping[str, Any]
Pixels = NDArray[np.uint8]
Labelled = Iterable[tuple[str, str]]
"""Pairs of a class and a text."""

MOST_ROWS = 10_000
LONGEST = 5_000
"""Characters of a text that are kept: some mails go on for a megabyte."""
SIDE = 64
MOST_PIXELS = 40_000_000
"""A picture beyond this is left out: some of Openclipart's unfold to 680 MB."""


def drawn(n_rows: int) -> NDArray[np.int64]:
    """Return which rows stay: all, or 10,000 drawn with a fixed seed."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    draw = np.random.default_rng(0)
    return np.sort(draw.choice(n_rows, MOST_ROWS, replace=False))


def positives(labels: Sequence[str], given: Options) -> NDArray[np.int64]:
    """Return 1 for rows of the positive class, by the rules that tables have."""
    return is_positive(pd.Series(labels), given).astype(np.int64)


# --- texts ----------------------------------------------------------------------------


def read_texts(
    form: Callable[[Path, Options], Labelled], folder: Path, given: Options
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the texts of a task and which of them are positive.

    ``among`` keeps some classes, ``shortest`` drops texts of fewer characters.
    """
    among, shortest = given.get("among"), given.get("shortest", 1)
    classes: dict[str, str] = {}  # of each text; copies stand once
    for label, text in form(folder, given):
        text = text.strip()[:LONGEST]
        if len(text) >= shortest and (among is None or label in among):
            classes.setdefault(text, label)
    y = positives(list(classes.values()), given)
    texts, rows = list(classes), drawn(len(classes))
    return [texts[row] for row in rows], y[rows]


def columns(folder: Path, given: Options) -> Iterator[tuple[str, str]]:
    """Read tab-separated ``members``, in an ``archive`` if one is named.

    ``text`` and ``label`` are places of columns; without a label the class is the name
    of the file. ``skip`` lines come first; ``quoted`` fields may hold tabs.
    """
    quoting = csv.QUOTE_MINIMAL if given.get("quoted") else csv.QUOTE_NONE
    csv.field_size_limit(sys.maxsize)
    for member in given["members"]:
        table = io.StringIO(member_of(folder, given, member).decode("utf-8", "replace"))
        for _ in range(given.get("skip", 0)):
            table.readline()
        for row in csv.reader(table, delimiter="\t", quoting=quoting):
            if len(row) > given["text"]:
                label = row[given["label"]] if "label" in given else Path(member).stem
                yield label, row[given["text"]]


def member_of(folder: Path, given: Options, member: str) -> bytes:
    """Return the bytes of a file of a package, or of an archive within it."""
    if "archive" not in given:
        return (folder / member).read_bytes()
    with tarfile.open(folder / given["archive"]) as archive:
        file = archive.extractfile(member)
        assert file is not None
        return file.read()


def mails(folder: Path, given: Options) -> Iterator[tuple[str, str]]:
    """Read a folder of mails for each class: what they say, without any header."""
    for path in sorted((folder / given["under"]).glob("*/*.txt")):
        yield path.parent.name, said(email.message_from_bytes(path.read_bytes()))


def said(mail: Message) -> str:
    """Return the readable parts of a mail, one after the other."""
    parts = [part for part in mail.walk() if part.get_content_maintype() == "text"]
    raw = [part.get_payload(decode=True) for part in parts]
    return "\n".join(text.decode("latin-1") for text in raw if isinstance(text, bytes))


def fortunes(folder: Path, given: Options) -> Iterator[tuple[str, str]]:
    """Read a folder of fortune files: one class each, texts between lines of ``%``."""
    for path in sorted((folder / given["under"]).iterdir()):
        index = path.suffix in (".dat", ".u8")
        if path.is_file() and not path.is_symlink() and not index:
            text = path.read_text(encoding="utf-8", errors="replace")
            for piece in re.split(r"\n%\n", text):
                yield path.stem, piece


def glosses(folder: Path, given: Options) -> Iterator[tuple[str, str]]:
    """Read WordNet: the words of a meaning and its gloss; the class is a number.

    The numbers are those of the files in which its authors kept meanings.
    """
    for line in (folder / given["member"]).read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):  # the licence
            continue
        data, _, gloss = line.partition(" | ")
        _, number, _, n_words, *rest = data.split()
        words = [word.replace("_", " ") for word in rest[: 2 * int(n_words, 16) : 2]]
        yield number, f"{', '.join(words)}: {gloss}"


FOLDOC_TAG = r"<([a-z][a-z ,/]*)>\s*"


def entries(folder: Path, given: Options) -> Iterator[tuple[str, str]]:
    """Read a dictionary of dictd; the class is the first tag of an entry.

    A ``tag`` is FOLDOC's if no pattern is given. Tags and dates go, as do the braces
    around other headwords.
    """
    tags = re.compile(given.get("tag", FOLDOC_TAG))
    raw = gzip.decompress((folder / given["member"]).read_bytes())
    text = raw.decode("utf-8", "replace")
    for entry in re.split(r"\n(?=\S)", text):
        tag = tags.search(entry)
        if tag is not None:
            plain = re.sub(r"\(\d{4}-\d\d-\d\d\)|[{}]", "", tags.sub("", entry))
            yield tag[1].split(",")[0].strip(), " ".join(plain.split())


def speeches(folder: Path, given: Options) -> Iterator[tuple[str, str]]:
    """Read speeches in pieces of five sentences; the class ends the name of a file."""
    for path in sorted((folder / given["under"]).glob("*.txt")):
        sentences = re.split(r"(?<=[.!?])\s+", path.read_text(encoding="utf-8"))
        for piece in pieces(sentences, 5):
            yield path.stem.rsplit("_", 1)[-1], piece


def novels(folder: Path, given: Options) -> Iterator[tuple[str, str]]:
    """Read novels, kept as lines in a store of R, in pieces of ten lines."""
    for name in given["objects"]:
        lines = [str(line) for line in r_object(stored(folder / given["member"], name))]
        for piece in pieces([line for line in lines if line.strip()], 10):
            yield name, piece


def pieces(parts: Sequence[str], size: int) -> Iterator[str]:
    """Join parts in groups of one size; a last, shorter group goes."""
    for first in range(0, len(parts) - size + 1, size):
        yield " ".join(parts[first : first + size])


# --- pictures -------------------------------------------------------------------------


def read_pictures(
    form: Callable[[Path, Options], tuple[list[str], Pixels]],
    folder: Path,
    given: Options,
) -> tuple[Pixels, NDArray[np.int64]]:
    """Return the pictures of a task, 64 pixels square, and which are positive."""
    labels, pixels = form(folder, given)
    among = given.get("among", labels)
    asked = np.flatnonzero(np.isin(labels, among))
    _, first = np.unique([fingerprint(pixels[row]) for row in asked], return_index=True)
    asked = asked[np.sort(first)]
    y = positives([labels[row] for row in asked], given)
    rows = drawn(len(asked))
    return np.stack([square(pixels[row]) for row in asked[rows]]), y[rows]


def fingerprint(pixels: Pixels) -> str:
    """Return a short text that only copies of a picture share."""
    return hashlib.sha256(pixels.tobytes()).hexdigest()


def square(pixels: Pixels) -> Pixels:
    """Return a grey or coloured picture of any size as 64×64×3."""
    if pixels.shape == (SIDE, SIDE, 3):
        return pixels
    return fitted(Image.fromarray(pixels))


def fitted(picture: Image.Image) -> Pixels:
    """Fit a picture into a white square, its proportions kept."""
    picture = picture.convert("RGBA")
    scale = SIDE / max(picture.size)
    width, height = (max(1, round(scale * length)) for length in picture.size)
    picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    ground = Image.new("RGBA", (SIDE, SIDE), "white")
    ground.alpha_composite(picture, ((SIDE - width) // 2, (SIDE - height) // 2))
    return np.asarray(ground.convert("RGB"))


def folders(folder: Path, given: Options) -> tuple[list[str], Pixels]:
    """Read pictures ``under`` a folder; the class is the folder next to it.

    ``but`` is a pattern of names that are left out. Links are copies and go.
    """
    top = folder / given["under"]
    but = re.compile(given["but"]) if "but" in given else None
    paths = [
        path
        for path in sorted(top.rglob("*"))
        if path.suffix in (".png", ".jpg")
        and not path.is_symlink()
        and path.parent != top
        and not (but and but.search(path.relative_to(top).as_posix()))
    ]
    pixels, good = decoded(folder, paths)
    return [paths[row].relative_to(top).parts[0] for row in good], pixels


def decoded(folder: Path, paths: Sequence[Path]) -> tuple[Pixels, list[int]]:
    """Return small copies of pictures and which files gave one.

    They are kept beside the package: to decode thousands of files takes a minute.
    """
    names = "\n".join(path.relative_to(folder).as_posix() for path in paths)
    kept = folder / f"pictures-{hashlib.sha256(names.encode()).hexdigest()[:16]}.npz"
    if not kept.exists():
        found = {row: small(path) for row, path in enumerate(paths)}
        good = [row for row, pixels in found.items() if pixels is not None]
        with new_file(kept) as work, work.open("wb") as file:
            np.savez(file, pixels=np.stack([found[row] for row in good]), good=good)
    with np.load(kept) as arrays:
        return arrays["pixels"], arrays["good"].tolist()


def small(path: Path) -> Pixels | None:
    """Return a picture 64 pixels square; None, and a word why, if it cannot be had."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            opened = Image.open(path)  # its size alone; pixels are decoded later
        with opened as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise ValueError(
                    f"{picture.width}×{picture.height} pixels are too many"
                )
            return fitted(picture)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        print(f"left out: {path.name}: {error}", file=sys.stderr)
        return None


def faces(folder: Path, given: Options) -> tuple[list[str], Pixels]:
    """Read the pictures of Crossfire, all in one file; the class is the second folder.

    ``but`` is a pattern of names that are left out.
    """
    raw, but = (folder / given["member"]).read_bytes(), re.compile(given["but"])
    labels, parts = [], []
    for head in re.finditer(rb"IMAGE (\d+) \./(\S+)\n(?=\x89PNG)", raw):
        name = head[2].decode()
        if not but.search(name):
            picture = io.BytesIO(raw[head.end() : head.end() + int(head[1])])
            with Image.open(picture) as face:
                parts.append(fitted(face))
            labels.append(name.split("/")[1])
    return labels, np.stack(parts)


def idx(folder: Path, given: Options) -> tuple[list[str], Pixels]:
    """Read MNIST's format: ``pictures`` and ``labels``, packed with gzip or not."""
    labels = raw_bytes(folder / given["labels"])[8:]
    raw = raw_bytes(folder / given["pictures"])
    n_rows, height, width = np.frombuffer(raw[4:16], dtype=">u4")
    pixels = np.frombuffer(raw[16:], dtype=np.uint8).reshape(n_rows, height, width)
    return [str(label) for label in labels], pixels


def raw_bytes(path: Path) -> bytes:
    """Return the bytes of a file, unpacked."""
    raw = path.read_bytes()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


def sheets(folder: Path, given: Options) -> tuple[list[str], Pixels]:
    """Read sheets whose rows are coloured pictures, 32 pixels square, laid out flat."""
    labels = json.loads((folder / given["labels"]).read_text(encoding="utf-8"))
    parts = []
    for name in given["pictures"]:
        with Image.open(folder / name) as sheet:
            parts.append(np.asarray(sheet.convert("RGB")).reshape(-1, 32, 32, 3))
    return [str(label) for label in labels], np.concatenate(parts)


TEXTS = (columns, mails, fortunes, glosses, entries, speeches, novels)
PICTURES = (folders, faces, idx, sheets)
READERS: dict[str, Callable[[Path, Options], tuple[Any, NDArray[np.int64]]]] = {
    **{form.__name__: partial(read_texts, form) for form in TEXTS},
    **{form.__name__: partial(read_pictures, form) for form in PICTURES},
}
