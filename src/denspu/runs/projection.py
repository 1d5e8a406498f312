"""Embeddings on their two main directions, for a map."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from denspu._typing import FloatArray

ENOUGH = 20_000
"""Rows that settle the directions."""


def project(Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the first two principal coordinates and their shares of variance."""
    found = min(2, *Z.shape)
    points, shares = np.zeros((len(Z), 2)), np.zeros(2)
    if np.ptp(Z, axis=0).any():
        pca = PCA(n_components=found, random_state=0)
        pca.fit(Z[:: -(-len(Z) // ENOUGH)])
        points[:, :found] = pca.transform(Z)
        shares[:found] = pca.explained_variance_ratio_
    return points, shares
