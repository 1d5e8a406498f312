"""The risk of a classifier estimated from positive and unlabelled rows.

With a margin loss l and the class prior π, the risk π E_P[l(f)] + (1 - π) E_N[l(-f)]
needs negatives. Since the sample that U stands for is a mixture, the second term is
E_U[l(-f)] - π E_P[l(-f)] (du Plessis et al. 2014), so that

    R = A + B,   A = π E_P[l(f)],   B = E_U[l(-f)] - π E_P[l(-f)].

B estimates something that cannot be negative; a flexible network makes it so by
learning P by heart. The functions below differ in what they do about it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F


def sigmoid_loss(margin: Tensor) -> Tensor:
    """Return 1 / (1 + e^t): bounded, and l(t) + l(-t) = 1."""
    return torch.sigmoid(-margin)


def logistic_loss(margin: Tensor) -> Tensor:
    """Return log(1 + e^-t)."""
    return F.softplus(-margin)


MARGIN_LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": sigmoid_loss,
    "logistic": logistic_loss,
}


def risk_parts(
    positive: Tensor, unlabeled: Tensor, prior: float, loss: str = "sigmoid"
) -> tuple[Tensor, Tensor]:
    """Return A and B for the logits of P and of U."""
    of = MARGIN_LOSSES[loss]
    as_positive = prior * of(positive).mean()
    as_negative = of(-unlabeled).mean() - prior * of(-positive).mean()
    return as_positive, as_negative


def unbiased(as_positive: Tensor, as_negative: Tensor) -> Tensor:
    """Return A + B (uPU)."""
    return as_positive + as_negative


def non_negative(
    as_positive: Tensor, as_negative: Tensor, beta: float = 0.0, gamma: float = 1.0
) -> Tensor:
    """Return what nnPU descends on (Kiryo et al. 2017, algorithm 1).

    A + B while B ≥ -β, else -γ B alone: the step then undoes the overfitting and
    leaves A be. This is not the gradient of A + max(0, B), which goes on lowering A.
    """
    return torch.where(
        as_negative >= -beta, as_positive + as_negative, -gamma * as_negative
    )


def absolute(as_positive: Tensor, as_negative: Tensor) -> Tensor:
    """Return A + |B| (Lu et al. 2020; Hammoudeh and Lowd 2020)."""
    return as_positive + as_negative.abs()


def absolute_risk(positive: Tensor, unlabeled: Tensor, prior: float) -> Tensor:
    """Return A + |B| of logits, with the sigmoid loss."""
    return absolute(*risk_parts(positive, unlabeled, prior))
