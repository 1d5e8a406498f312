"""What denspu must know of a kind of data, and the items that reading one gives.

``kind_of("image")`` gives the object of a kind, ``kind_of(items)`` too. Whoever needs
to know how kinds differ asks it and never compares names: what an item is called
(``noun``), how a report shows it (``shows``, ``picture``, ``text``), which encoder
suits (``default_encoder``), which items are copies (``copies``). How files become items
is asked by ``_reading.py`` alone.

A new kind is a new module in this folder: a subclass of :class:`Kind`, and an object of
it called ``KIND``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from denspu._progress import many
from denspu._typing import InputKind
from denspu._validation import take_rows
from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    LabelError,
    did_you_mean,
)

if TYPE_CHECKING:
    from denspu.data._reading import Found, Limit, Options, Plan

FEWEST = 2
"""Labelled positives needed to describe a class."""

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


def suffix(name: str) -> str:
    """Return the suffix in lower case, with its dot."""
    return os.path.splitext(name)[1].lower()


# --- items --------------------------------------------------------------------------


class Skipped(NamedTuple):
    """One item that could not be used."""

    item: str
    reason: str


@dataclass(frozen=True, eq=False)
class Items:
    """Items read from disk, one row each.

    ``plan`` is plain data that says how they were read. Hand it, or the items
    themselves, to ``read_items(..., like=)`` and new files come out in the same form.
    """

    kind: str
    """A name of :func:`denspu.data.kinds.kinds`."""
    X: Any
    """Images N×H×W×C (uint8 or uint16), a Frame, a list of texts, or a float array."""
    ids: list[str]
    """A relative path, the value of the id column, or the row number from 1."""
    source: str
    plan: Mapping[str, Any]
    facts: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Facts about each item that are not its content, by name."""
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Sentences about choices made while reading."""
    labels: NDArray[Any] | None = None
    """1 and 0, where a label column was named."""
    aside: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Columns kept out of ``X`` on request, such as groups or times."""
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Any) -> Items:
        """Return some of the items, by mask or by position."""
        rows = np.asarray(rows)
        if rows.dtype == bool and rows.all():
            return self
        at = np.flatnonzero(rows) if rows.dtype == bool else rows
        return replace(
            self,
            X=take_rows(self.X, at),
            ids=[self.ids[i] for i in at],
            facts={name: values[at] for name, values in self.facts.items()},
            labels=None if self.labels is None else self.labels[at],
            aside={name: values[at] for name, values in self.aside.items()},
        )

    @staticmethod
    def together(parts: Sequence[Items]) -> Items:
        """Put pieces of one source together."""
        first = parts[0]
        if len(parts) == 1:
            return first

        def column(name: str, key: str) -> NDArray[Any]:
            return np.concatenate([getattr(part, name)[key] for part in parts])

        labels = [part.labels for part in parts if part.labels is not None]
        return replace(
            first,
            X=kind_of(first).concatenate([part.X for part in parts]),
            ids=[name for part in parts for name in part.ids],
            facts={key: column("facts", key) for key in first.facts},
            skipped=[one for part in parts for one in part.skipped],
            notes=[note for part in parts for note in part.notes],
            labels=np.concatenate(labels) if labels else None,
            aside={key: column("aside", key) for key in first.aside},
            seconds=sum(part.seconds for part in parts),
        )

    def summary(self) -> str:
        """Return one line: how many of what, how fast, how many skipped."""
        kind = kind_of(self)
        parts = [many(len(self), kind.noun)]
        if kind.shows == "picture":
            shape = "×".join(map(str, self.X.shape[1:]))
            parts.append(f"{shape} {self.X.dtype}")
            parts.append(f"{len(self) / (self.seconds or 1.0):,.0f} a second")
        if self.skipped:
            parts.append(f"{len(self.skipped):,} skipped")
        return " · ".join(parts)


def nothing_left(
    kind: Kind, source: str, n_skipped: int, skipped: Sequence[Skipped]
) -> Exception:
    """Make the error for a source of which no item could be used."""
    if not n_skipped:
        return InvalidInputError(f"{source} {kind.empty}.")
    first = "; ".join(f"{item}: {reason}" for item, reason in skipped[:3])
    return InvalidInputError(
        f"None of the {n_skipped} {kind.noun}s in {source} could be "
        f"used ({first}). Check that the files are whole and that you may read them."
    )


class Joined(NamedTuple):
    """Rows ready for ``fit``: positives first, where they came from two sources."""

    X: Any
    y: NDArray[np.int64]
    ids: list[str]


def join(P: Items, U: Items | None = None) -> Joined:
    """Put P and U together, or take the labels of one table.

    Parameters
    ----------
    P : Items
        The labelled positives; or all rows, if read with a ``label_column``.
    U : Items, optional
        The unlabelled items, in the same form as P (see ``read_pair``).

    Returns
    -------
    X, y, ids
        ``y`` is 1 for a labelled positive and 0 for an unlabelled item.
    """
    if U is None:
        if P.labels is None:
            raise InvalidInputError(
                f"{P.source} was read without labels. Pass U as well, or read it with "
                "label_column=."
            )
        y = P.labels
        if y.all():
            raise LabelError(
                f"Every row of {P.source} is labelled positive. Add the rows to be "
                "judged, with 0 or nothing as label."
            )
    else:
        if P.kind != U.kind:
            raise InvalidInputError(
                f"{P.source} holds {P.kind} items and {U.source} {U.kind} items. Give "
                "both in the same form."
            )
        y = np.r_[np.ones(len(P), np.int64), np.zeros(len(U), np.int64)]
    if (n := int(y.sum())) < FEWEST:
        raise LabelError(
            f"{P.source} has {many(n, 'usable labelled positive')}; at least {FEWEST} "
            "are needed to describe a class. Add some, or mark positives with 1 in "
            "the label column."
        )
    if U is None:
        return Joined(P.X, y, P.ids)
    return Joined(kind_of(P).stack(P, U), y, [*P.ids, *U.ids])
