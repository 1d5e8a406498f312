"""Risks from P, U and a third sample.

APU (Hammoudeh and Lowd 2020): positives have shifted between training and use. P and
the first unlabelled set (share π_tr of positives) come from training, the second set
(share π_te) from use; negatives are the same in both. With κ = (1 - π_te)/(1 - π_tr),
estimates that cannot be negative are taken in absolute value.

PUbN (Hsieh, Niu and Sugiyama 2019): there are negatives of some kinds only. A row is
*seen* if it is positive, or a negative of the kind that carries labels (bN); ρ is the
share of such negatives in the population, and ρ = 0 is plain PU. The first step learns
σ(x) = P(seen | x); the second trusts rows of U as negatives where σ is small, and makes
up for the others with P and bN.
"""

from __future__ import annotations

import torch
from torch import Tensor

from denspu.losses.risk import logistic_loss, sigmoid_loss


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


def reweighted_risk(
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


def seen_parts(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    negative: Tensor | None = None,
    rho: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Return A and B of the first risk, for the logits of P, U and bN.

    A = π E_P[l(f)] + ρ E_bN[l(f)];  B = E_U[l(-f)] - π E_P[l(-f)] - ρ E_bN[l(-f)].
    """
    as_seen = prior * logistic_loss(positive).mean()
    as_unseen = logistic_loss(-unlabeled).mean()
    as_unseen = as_unseen - prior * logistic_loss(-positive).mean()
    if negative is not None:
        as_seen = as_seen + rho * logistic_loss(negative).mean()
        as_unseen = as_unseen - rho * logistic_loss(-negative).mean()
    return as_seen, as_unseen


def squared_error(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    negative: Tensor | None = None,
    rho: float = 0.0,
) -> Tensor:
    """Return E[(σ - P(seen | x))²] less a constant: how wrong σ is on held-out rows.

    E_U[σ²] - 2 π E_P[σ] - 2 ρ E_bN[σ], by which the paper chooses the first network.
    """
    error = unlabeled.sigmoid().square().mean() - 2 * prior * positive.sigmoid().mean()
    if negative is not None:
        error = error - 2 * rho * negative.sigmoid().mean()
    return error


def made_up(logits: Tensor, seen: Tensor, eta: float) -> Tensor:
    """Return l(-f) (1 - σ) / σ where σ > η, else 0: what U leaves out beyond η."""
    odds = (1 - seen) / seen.clamp_min(1e-12)
    return torch.where(seen > eta, logistic_loss(-logits) * odds, 0.0)


def partly_trusting_risk(
    positive: tuple[Tensor, Tensor],
    unlabeled: tuple[Tensor, Tensor],
    prior: float,
    eta: float,
    negative: tuple[Tensor, Tensor] | None = None,
    rho: float = 0.0,
) -> Tensor:
    """Return the second risk; each set is a pair of logits f and fixed σ.

    π E_P[l(f) + 1{σ > η} l(-f) (1 - σ)/σ]
    + ρ E_bN[l(-f) + 1{σ > η} l(-f) (1 - σ)/σ]
    + E_U[1{σ ≤ η} l(-f) (1 - σ)].
    """
    logits, seen = unlabeled
    unseen = torch.where(seen <= eta, logistic_loss(-logits) * (1 - seen), 0.0)
    of_positive = logistic_loss(positive[0]) + made_up(*positive, eta)
    risk = prior * of_positive.mean() + unseen.mean()
    if negative is not None:
        of_negative = logistic_loss(-negative[0]) + made_up(*negative, eta)
        risk = risk + rho * of_negative.mean()
    return risk
