"""Steps 1 and 2 of the walk, x → z: learn a representation and apply it."""

from denspu.encoders.cae import CAEEncoder
from denspu.encoders.contrastive import ContrastiveEncoder
from denspu.encoders.tabular import IdentityEncoder, TabularEncoder
from denspu.encoders.text import SentenceEncoder, TextEncoder

__all__ = [
    "CAEEncoder",
    "ContrastiveEncoder",
    "IdentityEncoder",
    "SentenceEncoder",
    "TabularEncoder",
    "TextEncoder",
]
