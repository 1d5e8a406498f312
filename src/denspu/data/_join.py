"""P and U → the ``X`` and ``y`` of ``fit``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from denspu._frame import Frame
from denspu.data._items import Items
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
    return Joined(_stack(P, U), y, [*P.ids, *U.ids])


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


def _stack(P: Items, U: Items) -> Any:
    if P.kind == "text":
        return [*P.X, *U.X]
    if P.kind == "image":
        return _stack_images(P, U)
    if P.kind == "table":
        return _stack_tables(P, U)
    if P.X.shape[1] != U.X.shape[1]:
        raise InvalidInputError(
            f"Embeddings of {P.source} have {P.X.shape[1]} numbers, those of "
            f"{U.source} {U.X.shape[1]}. Use embeddings of the same model."
        )
    return np.concatenate([P.X, U.X])


def _stack_images(P: Items, U: Items) -> NDArray[Any]:
    """Grey becomes colour and 8 bits become 16 where the other side has them."""
    if P.X.shape[1:3] != U.X.shape[1:3]:
        sizes = [f"{w}×{h}" for h, w in (P.X.shape[1:3], U.X.shape[1:3])]
        raise InvalidInputError(
            f"Images of {P.source} are {sizes[0]}, those of {U.source} {sizes[1]}. "
            "Read both with the same image_size, or with read_pair."
        )
    channels = max(P.X.shape[3], U.X.shape[3])
    dtype = np.result_type(P.X, U.X)
    out = np.empty((len(P) + len(U), *P.X.shape[1:3], channels), dtype=dtype)
    for part, images in ((out[: len(P)], P.X), (out[len(P) :], U.X)):
        part[:] = images
        if images.dtype != dtype:
            part *= 257
    return out


def _stack_tables(P: Items, U: Items) -> Frame:
    first, second = P.plan["columns"], U.plan["columns"]
    missing = [name for name in first if name not in second]
    extra = [name for name in second if name not in first]
    if missing or extra:
        raise InvalidInputError(
            f"{P.source} and {U.source} have different columns: only in the first "
            f"{missing[:8]}, only in the second {extra[:8]}. Read both with read_pair, "
            "or give both the same columns."
        )
    for name, kind in first.items():
        if kind != second[name]:
            raise InvalidInputError(
                f"Column {name!r} is a {kind} in {P.source} and a {second[name]} in "
                f"{U.source}. Read both with read_pair, or set columns="
                f"{{{name!r}: {kind!r}}}."
            )
    return Frame.stacked([P.X, U.X[list(first)]])
