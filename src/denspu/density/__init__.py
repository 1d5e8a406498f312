"""Step 3 of the walk: make the positive region denser by interpolation."""

from denspu.density.interpolation import LiteralVariance, Midpoint, Mixup
from denspu.density.none import NoDensity
from denspu.density.pairs import cochran_pairs, sample_pairs
from denspu.density.sphere import GreatCircle

__all__ = [
    "GreatCircle",
    "LiteralVariance",
    "Midpoint",
    "Mixup",
    "NoDensity",
    "cochran_pairs",
    "sample_pairs",
]
