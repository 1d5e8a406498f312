"""The PU risk of a population with another share of positives.

Training data holds a share π of positives; the risk is that of a population with a
share π' (Su, Chen and Xu 2021):

    R = A + B,   A = π' E_P[l(f)],   B = (1 - π')/(1 - π) (E_U[l(-f)] - π E_P[l(-f)]).

With π' = π it is the ordinary PU risk.
"""

from __future__ import annotations

from torch import Tensor

from denspu.losses.risk import risk_parts


def balanced_parts(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    target: float = 0.5,
    loss: str = "sigmoid",
) -> tuple[Tensor, Tensor]:
    """Return A and B for the logits of P and of U; ``target`` is π'."""
    as_positive, as_negative = risk_parts(positive, unlabeled, prior, loss)
    return target / prior * as_positive, (1 - target) / (1 - prior) * as_negative
