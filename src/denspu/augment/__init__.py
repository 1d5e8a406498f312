"""Random views of rows, as batched tensor code on the device that holds them."""

from denspu.augment.images import PRESETS, ImageAugment, ImagePreset
from denspu.augment.rows import RowAugment

__all__ = ["PRESETS", "ImageAugment", "ImagePreset", "RowAugment"]
