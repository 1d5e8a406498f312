"""What mixup needs inside a loss: no branch on values, so that a step can be captured.

Zhang, Cisse, Dauphin and Lopez-Paz, "mixup: Beyond Empirical Risk Minimization", 2018.
"""

from __future__ import annotations

import torch
from torch import Tensor

EDGE = 1e-6
"""A share is kept inside [EDGE, 1 - EDGE]: its logarithm is taken."""


def beta_share(alpha: float, device: torch.device) -> Tensor:
    """Draw one number from Beta(α, α)."""
    pair = torch._standard_gamma(torch.full((2,), alpha, device=device))
    return (pair[0] / pair.sum()).nan_to_num(0.5).clamp(EDGE, 1 - EDGE)


def mixed(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """Return ``share`` of the first rows and the rest of the second."""
    return share * first + (1 - share) * second


def random_order(n: int, device: torch.device) -> Tensor:
    """Return the numbers 0 to n - 1 in random order."""
    return torch.rand(n, device=device).argsort()
