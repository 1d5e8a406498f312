"""Tables: named columns of numbers, dates and categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from denspu._frame import Frame
from denspu._validation import is_frame
from denspu.data.kinds import Kind, Pairs, digest
from denspu.exceptions import InvalidInputError

if TYPE_CHECKING:
    from denspu.data._items import Items

REPEATED = 0.01
"""Where more of the rows of U repeat each other, equal rows say nothing."""


class Tables(Kind):
    """A Frame read from disk; in memory any table of numbers or DataFrame."""

    name = "table"
    noun = thing = "row"
    input_kind = "table"
    shows = "cells"

    def stack(self, P: Items, U: Items) -> Frame:
        """Put rows below each other where columns and their kinds agree."""
        first, second = P.plan["columns"], U.plan["columns"]
        missing = [name for name in first if name not in second]
        extra = [name for name in second if name not in first]
        if missing or extra:
            raise InvalidInputError(
                f"{P.source} and {U.source} have different columns: only in the first "
                f"{missing[:8]}, only in the second {extra[:8]}. Read both with "
                "read_pair, or give both the same columns."
            )
        for name, kind in first.items():
            if kind != second[name]:
                raise InvalidInputError(
                    f"Column {name!r} is a {kind} in {P.source} and a {second[name]} "
                    f"in {U.source}. Read both with read_pair, or set columns="
                    f"{{{name!r}: {kind!r}}}."
                )
        return self.concatenate([P.X, U.X[list(first)]])

    def concatenate(self, parts: Sequence[Any]) -> Frame:
        """Put frames below each other."""
        return Frame.stacked(parts)

    def digests(self, X: Frame) -> list[bytes]:
        """Return a hash of the cells of each row; all gaps are alike."""
        columns = [X[name].tolist() for name in X.columns]
        return [
            digest(repr([None if v != v else v for v in row]).encode())
            for row in zip(*columns, strict=True)
        ]

    def copies(self, P: Items, U: Items) -> tuple[Pairs, Pairs, list[str]]:
        """Distrust equal rows where those of U often equal each other."""
        exact, near, notes = super().copies(P, U)
        if exact and 1 - len(set(self.digests(U.X))) / len(U) > REPEATED:
            n = len({u for _, u in exact})
            notes = [
                f"{n:,} unlabelled rows equal a labelled one, but rows of U often "
                "equal each other too: not taken for copies."
            ]
            exact = []
        return exact, near, notes

    def default_encoder(self, X: Any, on_gpu: bool) -> Any:
        """Return none for embeddings of length 1, else the one for columns."""
        from denspu.encoders import IdentityEncoder

        return IdentityEncoder() if on_sphere(X) else self.plain_encoder()

    def is_own_embedding(self, X: Any, on_gpu: bool) -> bool:
        """Return True."""
        return True

    def plain_encoder(self, random_state: int | None = None) -> Any:
        """Return the encoder of columns, which draws nothing at random."""
        from denspu.encoders import TabularEncoder

        return TabularEncoder()


KIND = Tables()


def on_sphere(X: Any) -> bool:
    """Tell whether rows are embeddings of length 1 already."""
    if is_frame(X) or X.shape[1] < 2:
        return False
    length = np.linalg.norm(X[:: max(1, len(X) // 1000)], axis=1)
    return bool(np.all(np.abs(length - 1) < 1e-3))
