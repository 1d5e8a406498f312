"""The risk of a classifier estimated from positive and unlabelled rows."""

from __future__ import annotations

import torch
from torch import Tensor


def absolute_risk(positive: Tensor, unlabeled: Tensor, prior: float) -> Tensor:
    """Return the PU risk of logits, its negative part never below zero.

    With the sigmoid loss l(t) = 1 / (1 + e^t) and the class prior π inside U,

    R = π E_P[l(f)] + | E_U[l(-f)] - π E_P[l(-f)] |.

    Without the bars this is the unbiased risk of du Plessis et al. 2014. The bracket
    estimates (1 - π) E_N[l(-f)], which cannot be negative; a network that has learned P
    by heart would make it so (Kiryo et al. 2017, nnPU). The absolute value drives it
    back (Lu et al. 2020).
    """
    right = torch.sigmoid(positive).mean()
    negative = torch.sigmoid(unlabeled).mean() - prior * right
    return prior * (1 - right) + negative.abs()
