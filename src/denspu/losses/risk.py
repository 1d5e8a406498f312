"""The risk of a classifier estimated from positive and unlabelled rows.

With a margin loss l and the class prior π, the risk π E_P[l(f)] + (1 - π) E_N[l(-f)]
needs negatives. Since the sample that U stands for is a mixture, the second term is
E_U[l(-f)] - π E_P[l(-f)] (du Plessis et al. 2014), so that

    R = A + B,   A = π E_P[l(f)],   B = E_U[l(-f)] - π E_P[l(-f)].

B estimates something that cannot be negative; a flexible network makes it so by
learning P by heart. The first functions below differ in what they do about it; the
last compare the answers on P and U without a margin loss.
"""

from __future__ import annotations

import math
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


def balanced_parts(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    target: float = 0.5,
    loss: str = "sigmoid",
) -> tuple[Tensor, Tensor]:
    """Return the PU risk of a population with another share π' of positives, in parts.

    A = π' E_P[l(f)] and B = (1 - π')/(1 - π) (E_U[l(-f)] - π E_P[l(-f)]) (Su, Chen and
    Xu 2021); ``target`` is π', and with π' = π it is the ordinary risk.
    """
    as_positive, as_negative = risk_parts(positive, unlabeled, prior, loss)
    return target / prior * as_positive, (1 - target) / (1 - prior) * as_negative


CLAMP = 10.0
"""Logits are kept inside ±CLAMP where a logarithm of the answer is taken."""


def label_distribution(positive: Tensor, unlabeled: Tensor, prior: float) -> Tensor:
    """Return (1 - E_P[s]) + |E_U[s] - π| / 2π for the logits of P and of U.

    Dist-PU (Zhao et al. 2022) with s = σ(f): 2π |E_P[s] - 1| + |E_U[s] - π|, divided by
    2π as in the authors' code. A constant s = π is a trivial minimum of the part on U;
    the entropy of the answers keeps away from it.
    """
    on_unlabeled = (torch.sigmoid(unlabeled).mean() - prior).abs()
    return 1 - torch.sigmoid(positive).mean() + on_unlabeled / (2 * prior)


def entropy(logits: Tensor) -> Tensor:
    """Return the mean entropy of the answers, in nats."""
    kept = logits.clamp(-CLAMP, CLAMP)
    return F.binary_cross_entropy_with_logits(kept, torch.sigmoid(kept))


def variational(positive: Tensor, unlabeled: Tensor) -> Tensor:
    """Return log E_U[Φ] - E_P[log Φ] for log Φ on P and on U; no prior is needed.

    Φ(x) = σ(g(x)) stands for P(y = 1 | x) up to a factor (Chen, Liu, Wang, Zhao and Wu
    2020). The loss is least where Φ is proportional to the density of P over that of U,
    and a factor on Φ does not change it. All sums are taken in logarithms.
    """
    log_mean = torch.logsumexp(unlabeled, 0) - math.log(len(unlabeled))
    return log_mean - positive.mean()


def consistency(unlabeled: Tensor, between: Tensor, share: Tensor) -> Tensor:
    """Return how far log Φ on mixed rows is from the mixture of the answers.

    ``between`` is log Φ of ``share`` x_U + (1 - ``share``) x_P, where Φ(x_P) counts as
    1. The gradient flows through both sides, as in the authors' code.
    """
    target = torch.logaddexp(share.log() + unlabeled, torch.log1p(-share))
    return (target - between).square().mean()


def log_phi(logits: Tensor) -> Tensor:
    """Return log Φ; one logit says what a softmax over two would."""
    return F.logsigmoid(logits)
