"""Risks for positives that have shifted between training and use.

Hammoudeh and Lowd 2020. P and the first unlabelled set (share π_tr of positives) come
from training, the second set (share π_te) from use; negatives are the same in both.
With κ = (1 - π_te)/(1 - π_tr), estimates that cannot be negative are taken in absolute
value.
"""

from __future__ import annotations

from torch import Tensor

from denspu.losses.risk import sigmoid_loss


def recursive_risk(
    positive: Tensor,
    first: Tensor,
    second: Tensor,
    prior: float,
    second_prior: float,
) -> Tensor:
    """Return PURR's risk |E_2[l(f)] - N⁺| + N⁻ for logits.

    N± = κ |E_1[l(±f)] - π_tr E_P[l(±f)]| is the risk of the negatives, called positive
    or negative.
    """
    kappa = (1 - second_prior) / (1 - prior)

    def of_negatives(sign: int) -> Tensor:
        on_first = sigmoid_loss(sign * first).mean()
        return kappa * (on_first - prior * sigmoid_loss(sign * positive).mean()).abs()

    as_positive = (sigmoid_loss(second).mean() - of_negatives(1)).abs()
    return as_positive + of_negatives(-1)


def weighted_risk(
    positive: Tensor,
    first: Tensor,
    second: Tensor,
    negative_share: Tensor,
    prior: float,
    second_prior: float,
    rho: float = 1.0,
) -> Tensor:
    """Return aPNU's risk for logits, and wUU's with ρ = 1.

    (1 - ρ) π_te E_P[l(f)] + W⁻ + |ρ (E_2[l(f)] - W⁺)|, where W± = κ E_1[w l(±f)] and
    w = ``negative_share`` is the probability that a row of the first set is negative.
    """
    kappa = (1 - second_prior) / (1 - prior)
    called_positive = kappa * (negative_share * sigmoid_loss(first)).mean()
    called_negative = kappa * (negative_share * sigmoid_loss(-first)).mean()
    on_second = rho * (sigmoid_loss(second).mean() - called_positive)
    on_positive = (1 - rho) * second_prior * sigmoid_loss(positive).mean()
    return on_positive + called_negative + on_second.abs()
