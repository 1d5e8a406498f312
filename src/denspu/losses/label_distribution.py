"""Dist-PU's loss: the mean answers on P and U against the label distribution.

Zhao et al. 2022. With s = σ(f) and the class prior π,

    2π |E_P[s] - 1| + |E_U[s] - π|,

divided by 2π as in the authors' code. A constant s = π is a trivial minimum of the part
on U; the entropy of the answers keeps away from it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

CLAMP = 10.0
"""Logits are kept inside ±CLAMP where a logarithm of the answer is taken."""


def label_distribution(positive: Tensor, unlabeled: Tensor, prior: float) -> Tensor:
    """Return (1 - E_P[s]) + |E_U[s] - π| / 2π for the logits of P and of U."""
    on_unlabeled = (torch.sigmoid(unlabeled).mean() - prior).abs()
    return 1 - torch.sigmoid(positive).mean() + on_unlabeled / (2 * prior)


def entropy(logits: Tensor) -> Tensor:
    """Return the mean entropy of the answers, in nats."""
    kept = logits.clamp(-CLAMP, CLAMP)
    return F.binary_cross_entropy_with_logits(kept, torch.sigmoid(kept))


def mixup_loss(between: Tensor, first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """Return the cross-entropy of mixed rows with the labels of both parents."""
    of = F.binary_cross_entropy_with_logits
    return share * of(between, first) + (1 - share) * of(between, second)
