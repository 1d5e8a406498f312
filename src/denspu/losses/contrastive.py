"""The contrastive loss: two views of a row attract, all other rows repel."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def nt_xent(
    z: Tensor,
    temperature: float = 0.2,
    positive: Tensor | None = None,
    positive_weight: float = 0.0,
) -> Tensor:
    """Return the normalised-temperature cross-entropy (Chen et al. 2020).

    ``z`` holds the projections of 2·B views, row i and row i + B of the same sample:

    L = mean_i −log( exp(s_ij/τ) / Σ_{k≠i} exp(s_ik/τ) ),  j the other view of i,

    with cosine similarities s. Where ``positive`` marks labelled positives among the B
    samples, ``positive_weight`` times the same cross-entropy among all their views is
    added (Khosla et al. 2020), scaled by the share of positives in the batch.
    """
    z = F.normalize(z.float(), dim=1)
    n = len(z)
    similarity = (z @ z.T) / temperature
    own = torch.eye(n, dtype=torch.bool, device=z.device)
    log_p = similarity.masked_fill(own, -torch.inf).log_softmax(1)
    other = torch.arange(n, device=z.device).roll(n // 2)
    loss = -log_p.gather(1, other[:, None]).mean()
    if positive is None or positive_weight == 0:
        return loss
    among = positive.repeat(2).float()
    pairs = among[:, None] * among[None, :]
    pairs = pairs.masked_fill(own, 0.0)
    # The mean over pairs times the share of positives among the rows.
    term = -(pairs * log_p.masked_fill(own, 0.0)).sum() / pairs.sum().clamp_min(1.0)
    return loss + positive_weight * term * among.mean()
