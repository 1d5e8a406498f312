"""What denspu must know of a kind of data: one object a kind, one file an object.

``kind_of("image")`` gives the object, ``kind_of(items)`` too. Whoever needs to know how
kinds differ asks it and never compares names: what an item is called (``noun``), how a
report shows it (``shows``, ``picture``, ``text``), which encoder suits
(``default_encoder``), which items are copies (``copies``). How files become items is
asked by ``_reading.py`` alone.

A new kind is a new module in this folder: a subclass of :class:`Kind`, and an object of
it called ``KIND``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from denspu._typing import InputKind
from denspu.data._disk import Limit, suffix
from denspu.exceptions import InvalidParameterError, did_you_mean

if TYPE_CHECKING:
    from denspu.data._items import Items
    from denspu.data._reading import Found, Options, Plan

Pairs = list[tuple[int, int]]
"""Rows of P with rows of U."""


class Kind:
    """One kind of data: how to compare, stack, show and encode its items."""

    name: ClassVar[str]
    noun: ClassVar[str]
    """What one item is called; ``s`` makes it several."""
    thing: ClassVar[str]
    """What a report calls one item."""
    input_kind: ClassVar[InputKind]
    """What a method takes an array of such items for; its encoders serve this kind."""
    shows: ClassVar[Literal["picture", "text", "cells", "neighbours"]]
    """How a report shows an item; ``picture`` and ``text`` give what it needs."""
    is_embedding: ClassVar[bool] = False
    """Are the items numbers that some model made of others, ready to be compared?"""

    # --- what files hold it -----------------------------------------------------------

    suffixes: ClassVar[frozenset[str]]
    """Ends of the names of its files; in a folder, each of them is one item."""
    also_reads: ClassVar[frozenset[str]] = frozenset()
    """Suffixes of other kinds' files that it reads too, if asked."""
    wanted: ClassVar[str]
    """A source of it, in words."""
    folder: ClassVar[str] = ""
    """What a folder of it holds, in words; empty where it comes in one file."""
    in_lists: ClassVar[bool] = False
    """May a source be a list of paths?"""
    file_name: ClassVar[str] = ""
    """What a file with one of the suffixes is for sure, in words; empty if unsure."""
    empty: ClassVar[str] = "holds no items"
    """What is said of a source without any item."""

    @property
    def plural(self) -> str:
        """What several are called where kinds are compared."""
        return f"{self.name}s"

    def claims(self, path: Path, options: Options) -> bool:
        """Tell whether a file is of this kind, by its name and its first lines."""
        return suffix(path.name) in self.suffixes

    def files(self, path: Path, options: Options) -> tuple[Path, list[str]]:
        """Return the files of single items that a file names, and where they lie.

        Without names the file itself holds the items.
        """
        return path, []

    # --- reading ----------------------------------------------------------------------

    def pieces(
        self, found: Found, options: Options, plan: Plan | None, limit: Limit
    ) -> Iterator[Any]:
        """Yield a source as it stands, in one piece or in pieces within the limit."""
        raise NotImplementedError

    def plan(
        self, pieces: Sequence[Any], options: Options, given: Plan | None
    ) -> tuple[Plan, list[str]]:
        """Return the form all pieces are read in (the given one, if any), and notes.

        Pieces that cannot be read so are refused.
        """
        return given or {"kind": self.name}, []

    def items(self, piece: Any, options: Options, plan: Plan) -> Items:
        """Return the items of a piece in the form of the plan."""
        raise NotImplementedError

    def values_in_one(self, plan: Mapping[str, Any]) -> int | None:
        """Return how many numbers one large item holds; None where items are small."""
        return None

    def quiet(self) -> AbstractContextManager[None]:
        """Return a context for reading in threads, which the main thread enters."""
        return nullcontext()

    # --- several items ----------------------------------------------------------------

    def stack(self, P: Items, U: Items) -> Any:
        """Return the rows of P and then those of U, or say why they do not fit."""
        return self.concatenate([P.X, U.X])

    def concatenate(self, parts: Sequence[Any]) -> Any:
        """Put rows of one form together."""
        return np.concatenate(parts)

    def digests(self, X: Any) -> list[bytes]:
        """Return a hash of the content of each item."""
        return [digest(np.ascontiguousarray(row).tobytes()) for row in X]

    def copies(self, P: Items, U: Items) -> tuple[Pairs, Pairs, list[str]]:
        """Return the exact and the near copies of items of P among U, and notes."""
        return matches(self.digests(P.X), self.digests(U.X)), [], []

    # --- showing ----------------------------------------------------------------------

    def picture(self, row: Any) -> NDArray[Any]:
        """Return the pixels, H×W or H×W×C, that stand for an item in a report."""
        raise NotImplementedError

    def text(self, row: Any) -> str:
        """Return the words that stand for an item in a report."""
        raise NotImplementedError

    # --- encoding ---------------------------------------------------------------------

    def default_encoder(self, X: Any, on_gpu: bool) -> Any:
        """Return the encoder that suits such data on such a machine."""
        return kind_of(self.input_kind).default_encoder(X, on_gpu)

    def is_own_embedding(self, X: Any, on_gpu: bool) -> bool:
        """Tell whether rows can be compared as they are, with no learned embedding."""
        return kind_of(self.input_kind).is_own_embedding(X, on_gpu)

    def plain_encoder(self, random_state: int | None = None) -> Any:
        """Return what turns rows into numbers for a network; None: it takes pixels."""
        return kind_of(self.input_kind).plain_encoder(random_state)


@cache
def kinds() -> dict[str, Kind]:
    """Return the kinds by name."""
    modules = [import_module(f"{__name__}.{m.name}") for m in iter_modules(__path__)]
    found = (module.KIND for module in modules)
    return {kind.name: kind for kind in found}


def kind_of(what: str | Any) -> Kind:
    """Return the kind of a name, or of anything with a ``kind``, such as items."""
    name = what if isinstance(what, str) else what.kind
    if name in kinds():
        return kinds()[name]
    raise InvalidParameterError(
        f"kind={name!r} must be {', '.join(kinds())}.{did_you_mean(str(name), kinds())}"
    )


def digest(content: bytes) -> bytes:
    """Return a hash of some content."""
    return hashlib.blake2b(content, digest_size=16).digest()


def matches(first: Iterable[Any], second: Iterable[Any]) -> Pairs:
    """Return the pairs with equal keys; each of the second with one of the first."""
    at: dict[Any, int] = {}
    for i, key in enumerate(first):
        at.setdefault(key, i)
    return [(at[key], j) for j, key in enumerate(second) if key in at]
