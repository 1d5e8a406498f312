"""Vectors: embeddings that somebody already has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from denspu.data.kinds import Kind
from denspu.exceptions import InvalidInputError

if TYPE_CHECKING:
    from denspu.data._items import Items


class Vectors(Kind):
    """A 2-D array of floats; methods take it for a table of numbers."""

    name = noun = "embedding"
    thing = "item"
    input_kind = "table"
    shows = "neighbours"
    is_embedding = True

    def stack(self, P: Items, U: Items) -> Any:
        """Put rows of one length below each other."""
        if P.X.shape[1] != U.X.shape[1]:
            raise InvalidInputError(
                f"Embeddings of {P.source} have {P.X.shape[1]} numbers, those of "
                f"{U.source} {U.X.shape[1]}. Use embeddings of the same model."
            )
        return self.concatenate([P.X, U.X])


KIND = Vectors()
