"""The losses of GenPU: three discriminators and two generators."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def discriminator_loss(
    real: Tensor, fake: Tensor, other: Tensor | None = None, share: float = 1.0
) -> Tensor:
    """Return the cross-entropy of telling real rows from made ones, from logits.

    With ``other`` the made rows are a mixture: ``share`` of ``fake``, the rest of
    ``other``.
    """
    made = F.softplus(fake).mean()
    if other is not None:
        made = share * made + (1 - share) * F.softplus(other).mean()
    return F.softplus(-real).mean() + made


def positive_generator_loss(
    by_p: Tensor, by_u: Tensor, prior: float, lambda_p: float, lambda_u: float
) -> Tensor:
    """Return π (λ_p E[-log D_p] + λ_u E[-log D_u]) of made positives, from logits."""
    fools_p, fools_u = F.softplus(-by_p).mean(), F.softplus(-by_u).mean()
    return prior * (lambda_p * fools_p + lambda_u * fools_u)


def negative_generator_loss(
    by_n: Tensor, by_u: Tensor, prior: float, lambda_n: float, lambda_u: float
) -> Tensor:
    """Return (1 - π) (λ_u E[-log D_u] + λ_n E[-log(1 - D_n)]) of made negatives.

    D_u is to be fooled, and D_n, which tells them from P, to be helped.
    """
    helps_n, fools_u = F.softplus(by_n).mean(), F.softplus(-by_u).mean()
    return (1 - prior) * (lambda_n * helps_n + lambda_u * fools_u)
