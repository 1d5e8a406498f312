"""Averages over nearest neighbours on the sphere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from denspu._typing import FloatArray
from denspu.detectors.neighbours import Neighbours

TEMPERATURE = 0.1
"""A neighbour whose cosine is this much lower counts 1/e of another."""


class Smoother:
    """Replace values of rows by weighted means over each row's nearest other rows.

    Parameters
    ----------
    Z : array of shape (n, d)
    n_neighbors : int
    device : torch.device
        Where neighbours are searched.
    """

    def __init__(
        self, Z: FloatArray, n_neighbors: int, device: torch.device | str = "cpu"
    ) -> None:
        k = min(n_neighbors, len(Z) - 1)
        self.index = np.empty((len(Z), k), dtype=np.int64)
        self.weight = np.empty((len(Z), k))
        for found in Neighbours(Z, "cosine", device).search(Z, k, exclude_self=True):
            nearest = found.distance[:, :1]
            weight = np.exp((nearest - found.distance) / TEMPERATURE)
            self.index[found.rows] = found.index
            self.weight[found.rows] = weight / weight.sum(axis=1, keepdims=True)

    def __call__(
        self,
        values: FloatArray,
        rounds: int = 1,
        pin: Callable[[FloatArray], FloatArray] | None = None,
    ) -> FloatArray:
        """Return the means; ``pin`` restores known values after each round."""
        for _ in range(rounds):
            values = np.einsum("nk,nk->n", self.weight, values[self.index])
            values = pin(values) if pin is not None else values
        return values
