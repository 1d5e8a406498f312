"""Losses of networks that train each other: GenPU, PULNS and Self-PU."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from denspu.losses.risk import non_negative, sigmoid_loss


def discriminator_loss(
    real: Tensor, fake: Tensor, other: Tensor | None = None, share: float = 1.0
) -> Tensor:
    """Return the cross-entropy of telling real rows from made ones, from logits.

    With ``other`` the made rows are a mixture: ``share`` of ``fake``, the rest of
    ``other``.
    """
    made = F.softplus(fake).mean()
    if other is not None:
        made = share * made + (1 - share) * F.softplus(other).mean()
    return F.softplus(-real).mean() + made


def positive_generator_loss(
    by_p: Tensor, by_u: Tensor, prior: float, lambda_p: float, lambda_u: float
) -> Tensor:
    """Return π (λ_p E[-log D_p] + λ_u E[-log D_u]) of made positives, from logits."""
    fools_p, fools_u = F.softplus(-by_p).mean(), F.softplus(-by_u).mean()
    return prior * (lambda_p * fools_p + lambda_u * fools_u)


def negative_generator_loss(
    by_n: Tensor, by_u: Tensor, prior: float, lambda_n: float, lambda_u: float
) -> Tensor:
    """Return (1 - π) (λ_u E[-log D_u] + λ_n E[-log(1 - D_n)]) of made negatives.

    D_u is to be fooled, and D_n, which tells them from P, to be helped.
    """
    helps_n, fools_u = F.softplus(by_n).mean(), F.softplus(-by_u).mean()
    return (1 - prior) * (lambda_n * helps_n + lambda_u * fools_u)


def chosen_risk(
    positive: Tensor, unlabeled: Tensor, chosen: Tensor, prior: float
) -> Tensor:
    """Return the logistic loss of P against the chosen rows of U.

    π mean_P log(1 + e^-f) + (1 - π) mean_chosen log(1 + e^f). ``chosen`` holds 1 for
    chosen rows and 0 for others; where none is chosen the second mean is 0.
    """
    as_negative = (chosen * F.softplus(unlabeled)).sum() / chosen.sum().clamp_min(1.0)
    return prior * F.softplus(-positive).mean() + (1 - prior) * as_negative


def pu_accuracy(positive: Tensor, pool: Tensor, prior: float) -> Tensor:
    """Return 2π mean_P σ(f) + mean_pool (1 - σ(f)), from logits.

    Its expectation is the accuracy of guessing by σ(f), plus π; no true label is
    needed, since the mean over the pool is π times that over the positives and 1 - π
    times that over the negatives.
    """
    return 2 * prior * torch.sigmoid(positive).mean() + torch.sigmoid(-pool).mean()


def reinforce(scores: Tensor, chosen: Tensor, rewards: Tensor) -> Tensor:
    """Return what REINFORCE descends on, for several draws of the same choices.

    - mean_k A_k mean_i log π(a_ik | x_i), with the advantage A_k: the reward of draw k
    less the mean of all, in units of their spread. ``scores`` (n) are logits of being
    chosen; ``chosen`` (draws × n) holds 1 for chosen, 0 for not.
    """
    spread = rewards.std(unbiased=False).clamp_min(1e-12)
    advantage = ((rewards - rewards.mean()) / spread).detach()
    log_chance = -F.binary_cross_entropy_with_logits(
        scores.expand_as(chosen), chosen, reduction="none"
    )
    return -(advantage * log_chance.mean(1)).mean()


def self_paced_risk(
    positive: Tensor,
    pool: Tensor,
    target: Tensor,
    trusted: Tensor,
    prior: Tensor | float,
) -> Tensor:
    """Return cross-entropy on trusted rows of the pool and nnPU on the rest.

    Each part counts by its share τ of the rows: (1 - τ) nnPU(P, rest; π) + τ CE.
    ``positive`` and ``pool`` are logits, ``target`` soft labels of the pool, read where
    ``trusted`` is 1; π is the share of positives in the rest of the pool.
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
