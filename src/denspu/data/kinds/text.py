"""Texts: documents, one a line, one a file, or one a row of a column."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from denspu._progress import progress
from denspu.data._reading import (
    MANY,
    Found,
    Limit,
    Options,
    Plan,
    grouped,
    lines_of,
    reason_of,
    shown,
)
from denspu.data._tables import (
    TABLE_SUFFIXES,
    RawTable,
    about_rows,
    content_column,
    table_pieces,
)
from denspu.data.kinds import Items, Kind, Pairs, Skipped, digest, matches, suffix

LIST_SUFFIXES = frozenset((".txt", ".text", ".md", ".lst", ".list"))
"""Files with one thing a line: a text, or the path of an image."""


class _Texts(Kind):
    """A list of strings."""

    name = noun = thing = "text"
    input_kind = "text"
    shows = "text"

    suffixes = frozenset((".txt", ".text", ".md"))
    also_reads = TABLE_SUFFIXES
    wanted = "a .txt with one text a line, a folder of .txt, or a column of a table"
    folder = "texts (.txt)"
    empty = "is empty; one text a line is needed"

    def claims(self, path: Path, options: Options) -> bool:
        """Claim text files, and tables of which the text column is named."""
        end = suffix(path.name)
        return end in LIST_SUFFIXES or (
            end in TABLE_SUFFIXES and options.text_column is not None
        )

    def pieces(
        self, found: Found, options: Options, plan: Plan | None, limit: Limit
    ) -> Iterator[Items]:
        if found.names:

            def size(name: str) -> int:
                try:
                    return os.stat(found.path / name).st_size
                except OSError:
                    return 0

            for names in grouped(found.names, limit, size):
                yield _from_files(found, names, options)
        elif suffix(found.path.name) in TABLE_SUFFIXES:
            for table in table_pieces(found, options, limit):
                yield _from_column(table, options)
        else:
            first = 1
            lines = lines_of(found.path, options.encoding)
            for part in grouped(lines, limit, len):
                ids = [str(i) for i in range(first, first + len(part))]
                yield _items(part, "line ", ids=ids, source=found.source)
                first += len(part)

    def items(self, piece: Items, options: Options, plan: Plan) -> Items:
        return piece

    def concatenate(self, parts: Sequence[Any]) -> list[str]:
        return [text for part in parts for text in part]

    def digests(self, X: Sequence[str]) -> list[bytes]:
        return [digest(text.encode("utf-8", "surrogatepass")) for text in X]

    def copies(self, P: Items, U: Items) -> tuple[Pairs, Pairs, list[str]]:
        """Add the texts that are equal but for case, spacing and punctuation."""
        exact, _, notes = super().copies(P, U)
        return exact, matches(map(_plain, P.X), map(_plain, U.X)), notes

    def text(self, row: Any) -> str:
        return str(row)

    def default_encoder(self, X: Any, on_gpu: bool) -> Any:
        return self.plain_encoder()

    def is_own_embedding(self, X: Any, on_gpu: bool) -> bool:
        return False

    def plain_encoder(self, random_state: int | None = None) -> Any:
        from denspu.encoders import TextEncoder

        return TextEncoder(random_state=random_state)


KIND = _Texts()


def _from_files(found: Found, names: Sequence[str], options: Options) -> Items:
    """Read files with one document each."""
    texts, ids, bad = [], [], []
    with progress("reading", len(names), options.verbose, least=MANY) as advance:
        for name in names:
            try:
                texts.append((found.path / name).read_bytes().decode(options.encoding))
                ids.append(shown(name))
            except UnicodeDecodeError as error:
                reason = (
                    f"not {options.encoding.upper()} at byte {error.start}; pass its "
                    "encoding (--encoding latin-1, say)"
                )
                bad.append(Skipped(shown(name), reason))
            except OSError as error:
                bad.append(Skipped(shown(name), reason_of(error)))
            advance(found.source)
    return _items(texts, "", bad, ids=ids, source=found.source)


def _from_column(table: RawTable, options: Options) -> Items:
    """Read the documents of one column."""
    column = content_column(table, options, "text_column", "category")
    texts = [text or "" for text in table.columns[column]]
    what = "row " if options.id_column is None else ""
    return _items(texts, what, table.skipped, **about_rows(table, options))


def _items(
    texts: list[str], what: str, skipped: Sequence[Skipped] = (), **about: Any
) -> Items:
    """Keep the documents with a letter in them; list the others."""
    everything = Items(kind="text", X=texts, plan={"kind": "text"}, **about)
    full = np.array([bool(text.strip()) for text in texts], dtype=bool)
    kept = everything.take(full)
    facts = {
        "characters": np.array([len(t) for t in kept.X], dtype=np.int64),
        "words": np.array([len(t.split()) for t in kept.X], dtype=np.int64),
    }
    names = (what + everything.ids[i] for i in np.flatnonzero(~full))
    empty = [Skipped(name, "holds no text") for name in names]
    return replace(kept, facts=facts, skipped=[*skipped, *empty])


def _plain(text: str) -> bytes:
    """Return the hash of the words of a text, without case and punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(c if c.isalnum() else " " for c in folded).split()
    return digest(" ".join(words or [text]).encode("utf-8", "surrogatepass"))
