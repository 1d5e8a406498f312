"""The variational PU loss, which needs no class prior (Chen, Liu, Wang, Zhao, Wu 2020).

Φ(x) = σ(g(x)) stands for P(y = 1 | x) up to a factor. The loss

    log E_U[Φ] - E_P[log Φ]

is least where Φ is proportional to the density of P over that of U, and a factor on Φ
does not change it. All sums are taken in logarithms.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def variational(positive: Tensor, unlabeled: Tensor) -> Tensor:
    """Return the loss for log Φ on P and on U."""
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
