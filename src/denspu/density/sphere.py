"""New embeddings on great circles between positives, for embeddings on a sphere."""

from __future__ import annotations

from typing import Any

import numpy as np

from denspu._typing import FloatArray
from denspu.density.interpolation import Midpoint


class GreatCircle(Midpoint):
    """Points of the arc between two positives, λ Gaussian around its middle.

    A chord leaves the sphere, and its middle is nearer to everything than the two ends
    are; the arc stays on it. A point of the chord is moved to the arc along the ray
    from the centre. Rows are taken by their direction and come out with length 1.

    Parameters
    ----------
    k, s, n_pairs
        See :class:`~denspu.density.interpolation.Midpoint`.
    """

    def densify(self, Z: Any, rng: np.random.Generator) -> FloatArray:
        """Return ``n_pairs * s`` new rows of length 1 in the dtype of ``Z``."""
        Z = np.asarray(Z)
        length = np.linalg.norm(Z, axis=1, keepdims=True)
        chords = super().densify(Z / np.maximum(length, np.finfo(Z.dtype).tiny), rng)
        return chords / np.maximum(
            np.linalg.norm(chords, axis=1, keepdims=True), np.finfo(Z.dtype).tiny
        )
