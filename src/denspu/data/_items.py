"""What reading a folder or a file gives: items, their facts, what was skipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, TypeAlias

from numpy.typing import NDArray

from denspu._validation import take_rows
from denspu._words import many
from denspu.data.kinds import kind_of
from denspu.exceptions import InvalidInputError, InvalidParameterError, did_you_mean

ItemKind: TypeAlias = Literal["image", "table", "text", "embedding"]
KINDS: tuple[ItemKind, ...] = ("image", "table", "text", "embedding")
DIGEST = 16


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

    kind: ItemKind
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

    @property
    def per_second(self) -> float:
        """Items read in a second."""
        return len(self) / self.seconds if self.seconds else 0.0

    def take(self, rows: Any) -> Items:
        """Return some of the items, by mask or by position."""
        from dataclasses import replace

        import numpy as np

        rows = np.asarray(rows)
        at = np.flatnonzero(rows) if rows.dtype == bool else rows
        X = self.X
        return replace(
            self,
            X=[X[i] for i in at] if isinstance(X, list) else take_rows(X, at),
            ids=[self.ids[i] for i in at],
            facts={name: values[at] for name, values in self.facts.items()},
            labels=None if self.labels is None else self.labels[at],
            aside={name: values[at] for name, values in self.aside.items()},
        )

    def summary(self) -> str:
        """Return one line: how many of what, how fast, how many skipped."""
        parts = [many(len(self), kind_of(self).noun)]
        if self.kind == "image":
            height, width, channels = self.X.shape[1:]
            parts.append(f"{height}×{width}×{channels} {self.X.dtype}")
            parts.append(f"{self.per_second:,.0f} a second")
        if self.skipped:
            parts.append(f"{len(self.skipped):,} skipped")
        return " · ".join(parts)


class SeenIds:
    """Are all ids of a long source different? Sixteen bytes an id are kept."""

    def __init__(self) -> None:
        self.digests = bytearray()
        self.n_different = 0

    def __len__(self) -> int:
        return len(self.digests) // DIGEST

    @staticmethod
    def digest(name: str) -> bytes:
        """Return the bytes that stand for an id."""
        return blake2b(name.encode(), digest_size=DIGEST).digest()

    def add(self, ids: Iterable[str]) -> None:
        """Note some ids."""
        for name in ids:
            self.digests += self.digest(name)

    def twice(self) -> set[bytes]:
        """Return the digests that were noted more than once."""
        import numpy as np

        pairs = np.frombuffer(self.digests, dtype=[("a", "<u8"), ("b", "<u8")])
        ordered = np.sort(pairs, order=("a", "b"))
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        self.n_different = len(ordered) - len(again)
        return {one.tobytes() for one in again}


def need_column(names: Sequence[str], wanted: str, argument: str, where: str) -> str:
    """Return ``wanted``, or say which columns there are."""
    if wanted in names:
        return wanted
    shown = ", ".join(map(repr, names[:12])) + (" and more" if len(names) > 12 else "")
    raise InvalidParameterError(
        f"{argument}={wanted!r}: {where} has no such column."
        f"{did_you_mean(wanted, names)} It has: {shown}."
    )


def need_some(items: Items) -> Items:
    """Return the items, or say why there is none."""
    if len(items):
        return items
    raise nothing_left(items.kind, items.source, len(items.skipped), items.skipped)


def nothing_left(
    kind: str, source: str, n_skipped: int, skipped: Sequence[Skipped]
) -> Exception:
    """Return the error for a source of which no item could be used."""
    if not n_skipped:
        needed = {
            "text": f"{source} is empty; one text a line is needed.",
            "table": f"{source} has a header and no rows.",
        }
        return InvalidInputError(needed.get(kind, f"{source} holds no {kind}."))
    first = "; ".join(f"{item}: {reason}" for item, reason in skipped[:3])
    return InvalidInputError(
        f"None of the {n_skipped} {kind_of(kind).noun}s in {source} could be "
        f"used ({first}). Check that the files are whole and that you may read them."
    )
