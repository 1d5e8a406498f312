"""Losses as pure functions of tensors."""

from denspu.losses.contrastive import nt_xent
from denspu.losses.risk import (
    MARGIN_LOSSES,
    absolute,
    absolute_risk,
    logistic_loss,
    non_negative,
    risk_parts,
    sigmoid_loss,
    unbiased,
)

__all__ = [
    "MARGIN_LOSSES",
    "absolute",
    "absolute_risk",
    "logistic_loss",
    "non_negative",
    "nt_xent",
    "risk_parts",
    "sigmoid_loss",
    "unbiased",
]
