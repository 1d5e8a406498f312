"""Losses on random views of rows: views attract or repel, rows are mixed.

What mixup needs (Zhang, Cisse, Dauphin and Lopez-Paz 2018) has no branch on values, so
that a step can be captured.
"""

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

    ``online`` and ``target`` (n × d) are predictions of one view and projections of
    another, ``probability`` the predicted p, ``class_weight`` w (0 leaves the views of
    a row alone, as BYOL does), and ``agree`` a.
    """
    cosine = F.normalize(online, dim=1) @ F.normalize(target, dim=1).T
    own = 2 * (1 - cosine.diagonal()).mean()
    vectors = torch.stack([1 - probability, probability], dim=1)
    pairs = (vectors @ vectors.T >= agree).to(cosine.dtype)
    pairs = pairs * (1 - torch.eye(len(pairs), dtype=pairs.dtype, device=pairs.device))
    distance = 2 * (1 - cosine).clamp_min(NEAREST).sqrt()
    others = (pairs * distance).sum() / pairs.sum().clamp_min(1.0)
    return own + class_weight * others


EDGE = 1e-6
"""A share is kept inside [EDGE, 1 - EDGE]: its logarithm is taken."""


def beta_share(alpha: float, device: torch.device) -> Tensor:
    """Draw one number from Beta(α, α)."""
    pair = torch._standard_gamma(torch.full((2,), alpha, device=device))
    return (pair[0] / pair.sum()).nan_to_num(0.5).clamp(EDGE, 1 - EDGE)


def mixed(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """Return ``share`` of the first rows and the rest of the second."""
    return share * first + (1 - share) * second


def random_order(n: int, device: torch.device) -> Tensor:
    """Return the numbers 0 to n - 1 in random order."""
    return torch.rand(n, device=device).argsort()


def mixup_loss(between: Tensor, first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """Return the cross-entropy of mixed rows with the labels of both parents."""
    of = F.binary_cross_entropy_with_logits
    return share * of(between, first) + (1 - share) * of(between, second)
