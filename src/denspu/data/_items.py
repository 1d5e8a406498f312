"""What reading a folder or a file gives: items, their facts, what was skipped.

Two of them, P and U, become the ``X`` and ``y`` of ``fit`` by :func:`join`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from denspu._progress import many
from denspu._validation import take_rows
from denspu.data._disk import Skipped
from denspu.data.kinds import kind_of
from denspu.exceptions import InvalidInputError, LabelError

FEWEST = 2
"""Labelled positives needed to describe a class."""


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

    @property
    def per_second(self) -> float:
        """Items read in a second."""
        return len(self) / self.seconds if self.seconds else 0.0

    def take(self, rows: Any) -> Items:
        """Return some of the items, by mask or by position."""
        rows = np.asarray(rows)
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
            parts.append(f"{self.per_second:,.0f} a second")
        if self.skipped:
            parts.append(f"{len(self.skipped):,} skipped")
        return " · ".join(parts)


def nothing_left(
    kind: str, source: str, n_skipped: int, skipped: Sequence[Skipped]
) -> Exception:
    """Make the error for a source of which no item could be used."""
    if not n_skipped:
        return InvalidInputError(f"{source} {kind_of(kind).empty}.")
    first = "; ".join(f"{item}: {reason}" for item, reason in skipped[:3])
    return InvalidInputError(
        f"None of the {n_skipped} {kind_of(kind).noun}s in {source} could be "
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
