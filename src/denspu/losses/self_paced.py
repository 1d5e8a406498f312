"""The losses of Self-PU: trusted rows, the rest of the pool, agreement of networks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from denspu.losses.risk import non_negative, sigmoid_loss


def self_paced_risk(
    positive: Tensor,
    pool: Tensor,
    target: Tensor,
    trusted: Tensor,
    prior: Tensor | float,
) -> Tensor:
    """Return cross-entropy on trusted rows of the pool and nnPU on the rest.

    Each part counts by its share τ of the rows: (1 - τ) nnPU(P, rest; π) + τ CE.

    Parameters
    ----------
    positive, pool : Tensor
        Logits.
    target : Tensor
        Soft labels of the pool; read where ``trusted`` is 1.
    trusted : Tensor
        1 for trusted rows, else 0.
    prior : float or Tensor
        Share of positives in the rest of the pool.
    """
    rest = 1 - trusted
    n_rest = rest.sum()
    of_rest = (rest * sigmoid_loss(-pool)).sum() / n_rest.clamp_min(1.0)
    as_positive = prior * sigmoid_loss(positive).mean()
    as_negative = of_rest - prior * sigmoid_loss(-positive).mean()
    risk = non_negative(as_positive, as_negative)
    entropy = F.binary_cross_entropy_with_logits(pool, target, reduction="none")
    return rest.mean() * risk + (trusted * entropy).mean()


def disagreement(logits: Tensor, others: Tensor) -> Tensor:
    """Return the mean squared difference of two networks' probabilities.

    ``others`` is what the first should agree with, and gets no gradient.
    """
    return F.mse_loss(torch.sigmoid(logits), torch.sigmoid(others.detach()))


def agreeing(loss: Tensor, difference: Tensor, alpha: float) -> Tensor:
    """Return the difference where the loss exceeds α times it, else 0.

    Students that differ much are left to differ: one of them knows better.
    """
    return torch.where(
        loss.detach() > alpha * difference.detach(), difference, 0 * difference
    )
