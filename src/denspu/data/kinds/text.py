"""Texts: documents, one a line, one a file, or one a row of a column."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from denspu.data.kinds import Kind, Pairs, digest, matches

if TYPE_CHECKING:
    from denspu.data._items import Items


class Texts(Kind):
    """A list of strings."""

    name = noun = thing = "text"
    input_kind = "text"
    shows = "text"

    def concatenate(self, parts: Sequence[Any]) -> list[str]:
        """Put lists together."""
        return [text for part in parts for text in part]

    def digests(self, X: Sequence[str]) -> list[bytes]:
        """Return a hash of the characters of each text."""
        return [digest(text.encode("utf-8", "surrogatepass")) for text in X]

    def copies(self, P: Items, U: Items) -> tuple[Pairs, Pairs, list[str]]:
        """Add the texts that are equal but for case, spacing and punctuation."""
        exact, _, notes = super().copies(P, U)
        return exact, matches(map(_plain, P.X), map(_plain, U.X)), notes

    def text(self, row: Any) -> str:
        """Return the text itself."""
        return str(row)

    def default_encoder(self, X: Any, on_gpu: bool) -> Any:
        """Return the encoder of words and pairs of words."""
        return self.plain_encoder()

    def is_own_embedding(self, X: Any, on_gpu: bool) -> bool:
        """Return False."""
        return False

    def plain_encoder(self, random_state: int | None = None) -> Any:
        """Return the encoder of words and pairs of words."""
        from denspu.encoders import TextEncoder

        return TextEncoder(random_state=random_state)


KIND = Texts()


def _plain(text: str) -> bytes:
    """Return the hash of the words of a text, without case and punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(c if c.isalnum() else " " for c in folded).split()
    return digest(" ".join(words or [text]).encode("utf-8", "surrogatepass"))
