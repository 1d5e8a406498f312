"""The two risks of PUbN: positives, unlabelled rows, and negatives of some kinds only.

Hsieh, Niu and Sugiyama 2019. A row is *seen* if it is positive, or a negative of the
kind that carries labels (bN); ρ is the share of such negatives in the population, and
ρ = 0 is plain PU. The first step learns σ(x) = P(seen | x); the second trusts rows of U
as negatives where σ is small, and makes up for the others with P and bN.
"""

from __future__ import annotations

import torch
from torch import Tensor

from denspu.losses.risk import logistic_loss


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


def weighted_risk(
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
