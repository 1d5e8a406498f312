"""Losses as pure functions of tensors."""

from denspu.losses.contrastive import nt_xent

__all__ = ["nt_xent"]
