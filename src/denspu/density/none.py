"""No densification: the boundary sees the positives' encodings alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from denspu._typing import FloatArray
from denspu._validation import check_embedding
from denspu.base import Densifier


class NoDensity(Densifier):
    """Add nothing (variants 2 and 3 of the paper's Table 4)."""

    def densify(self, Z: Any, rng: np.random.Generator) -> FloatArray:
        """Return an array with no rows."""
        return check_embedding(Z)[:0]
