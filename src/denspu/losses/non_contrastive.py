"""The representation loss of NcPU: views of a row, and rows of a class, attract."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

NEAREST = 1e-6
"""1 - cos is kept above it: the square root is infinitely steep at 0."""


def class_alignment(
    online: Tensor,
    target: Tensor,
    probability: Tensor,
    *,
    class_weight: Tensor | float = 1.0,
    agree: float = 0.5,
) -> Tensor:
    """Return how far views of a row, and rows of a class, are from each other.

        mean_i 2 (1 - s_ii) + w · mean_{i≠j, c_i·c_j ≥ a} 2 √(1 - s_ij),

    with the cosine s_ij of an online view of row i and a target view of row j, and
    c = (1 - p, p). The square root makes far pairs, which may be wrong, pull less.

    Parameters
    ----------
    online, target : Tensor of shape (n, d)
        Predictions of one view, and projections of another.
    probability : Tensor of shape (n,)
        Predicted probability p of the positive class.
    class_weight : float or Tensor
        w; 0 leaves the views of a row alone (BYOL).
    agree : float
        a.
    """
    cosine = F.normalize(online, dim=1) @ F.normalize(target, dim=1).T
    own = 2 * (1 - cosine.diagonal()).mean()
    vectors = torch.stack([1 - probability, probability], dim=1)
    pairs = (vectors @ vectors.T >= agree).to(cosine.dtype)
    pairs = pairs * (1 - torch.eye(len(pairs), dtype=pairs.dtype, device=pairs.device))
    distance = 2 * (1 - cosine).clamp_min(NEAREST).sqrt()
    others = (pairs * distance).sum() / pairs.sum().clamp_min(1.0)
    return own + class_weight * others
