"""Copies of labelled positives inside U: exact ones, and near ones.

A copy of a positive is a positive, so it should not be learned from as unlabelled, and
an estimate that counts it as a discovery flatters itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from denspu._typing import BoolArray
from denspu.data._items import Items
from denspu.data.kinds import kind_of
from denspu.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Pairs of a row of P and a row of U that show the same thing."""

    exact: list[tuple[int, int]]
    """Same content, as rows of P and of U."""
    near: list[tuple[int, int]]
    """Almost the same: a picture saved again, a text with other spacing."""
    n_unlabeled: int
    noun: str = "items"
    notes: tuple[str, ...] = ()

    @property
    def copies(self) -> BoolArray:
        """True for the rows of U that are copies of a positive, so positive."""
        found = np.zeros(self.n_unlabeled, dtype=bool)
        found[[u for _, u in (*self.exact, *self.near)]] = True
        return found

    def sentences(self) -> list[str]:
        """Return what was found, in words."""
        said = list(self.notes)
        exact = len({u for _, u in self.exact})
        near = int(self.copies.sum()) - exact
        for n, how in ((exact, "exact"), (near, "near")):
            if n:
                verb = "is a copy" if n == 1 else "are copies"
                said.append(
                    f"{n:,} unlabelled {self.noun} {verb} of labelled positives "
                    f"({how}): count them as positives."
                )
        return said


def find_duplicates(P: Items, U: Items) -> Duplicates:
    """Find copies of the items of P among those of U.

    Exact copies are found by a hash of the decoded content. Near copies of images have
    thumbnails that agree far better than those of two different positives usually do,
    whatever the brightness; near copies of texts differ in case, spacing and
    punctuation only. Time grows with len(P) × len(U) for images (a second for 1,000 ×
    60,000), memory does not.

    Parameters
    ----------
    P, U : Items
        Of the same kind and form, as from ``read_pair``.
    """
    if P.kind != U.kind:
        raise InvalidInputError(
            f"P holds {P.kind} items and U {U.kind} items. Compare items of one kind."
        )
    exact, near, notes = kind_of(P).copies(P, U)
    same = set(exact)
    return Duplicates(
        exact=exact,
        near=[pair for pair in near if pair not in same],
        n_unlabeled=len(U),
        noun=f"{kind_of(P).thing}s",
        notes=tuple(notes),
    )
