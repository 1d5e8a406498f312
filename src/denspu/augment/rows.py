"""Random views of table rows and vectors: noise, and values of other rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class RowAugment:
    """Draw one random view of each row of a batch.

    Parameters
    ----------
    noise : float
        Standard deviation of Gaussian noise, for columns of variance 1.
    mask : float
        Share of values that are taken from another row of the batch, so that each
        column keeps its distribution (Bahri et al. 2022, SCARF).
    """

    noise: float = 0.1
    mask: float = 0.3

    def __call__(self, rows: Tensor) -> Tensor:
        """Return views of N×F rows."""
        if self.mask:
            source = torch.randint(len(rows), rows.shape, device=rows.device)
            others = rows.gather(0, source)
            swap = torch.rand(rows.shape, device=rows.device) < self.mask
            rows = torch.where(swap, others, rows)
        if self.noise:
            rows = rows + self.noise * torch.randn_like(rows)
        return rows
