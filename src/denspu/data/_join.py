"""P and U → the ``X`` and ``y`` of ``fit``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from denspu.data._items import Items
from denspu.data.kinds import kind_of
from denspu.exceptions import InvalidInputError, LabelError

FEWEST = 2
"""Labelled positives needed to describe a class."""


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
        return _one_table(P)
    if P.kind != U.kind:
        raise InvalidInputError(
            f"{P.source} holds {P.kind} items and {U.source} {U.kind} items. Give both "
            "in the same form."
        )
    if len(P) < FEWEST:
        raise LabelError(
            f"{P.source} has {len(P)} usable item; at least {FEWEST} labelled "
            "positives are needed to describe a class. Add some."
        )
    y = np.r_[np.ones(len(P), np.int64), np.zeros(len(U), np.int64)]
    return Joined(kind_of(P).stack(P, U), y, [*P.ids, *U.ids])


def _one_table(items: Items) -> Joined:
    if items.labels is None:
        raise InvalidInputError(
            f"{items.source} was read without labels. Pass U as well, or read it with "
            "label_column=."
        )
    n = int(items.labels.sum())
    if n < FEWEST:
        raise LabelError(
            f"{items.source} has {n} labelled positive(s); at least {FEWEST} are "
            "needed. Mark positives with 1 in the label column."
        )
    if n == len(items):
        raise LabelError(
            f"Every row of {items.source} is labelled positive. Add the rows to be "
            "judged, with 0 or nothing as label."
        )
    return Joined(items.X, items.labels, items.ids)
