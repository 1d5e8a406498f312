"""The losses of PULNS: what choices are worth, and how to choose better."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


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
    less the mean of all, in units of their spread.

    Parameters
    ----------
    scores : Tensor of shape (n,)
        Logits of being chosen.
    chosen : Tensor of shape (draws, n)
        1 for chosen, 0 for not.
    rewards : Tensor of shape (draws,)
    """
    spread = rewards.std(unbiased=False).clamp_min(1e-12)
    advantage = ((rewards - rewards.mean()) / spread).detach()
    log_chance = -F.binary_cross_entropy_with_logits(
        scores.expand_as(chosen), chosen, reduction="none"
    )
    return -(advantage * log_chance.mean(1)).mean()
