"""Losses as pure functions of tensors."""

from denspu.losses.contrastive import nt_xent
from denspu.losses.risk import absolute_risk

__all__ = ["absolute_risk", "nt_xent"]
