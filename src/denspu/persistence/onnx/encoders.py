"""Fitted encoders → modules from rows as they come in to embeddings."""

from __future__ import annotations

from typing import Any

from torch import nn

from denspu._registry import inputs_of
from denspu.base import Encoder
from denspu.encoders import (
    CAEEncoder,
    ContrastiveEncoder,
    IdentityEncoder,
    TabularEncoder,
)
from denspu.networks.heads import OnSphere
from denspu.persistence.onnx.networks import (
    network,
    pixel_range,
    pixels,
    resized_pixels,
)
from denspu.persistence.onnx.parts.basics import Chain
from denspu.persistence.onnx.parts.rows import FlatPixels, Unit
from denspu.persistence.onnx.refusal import refuse
from denspu.persistence.onnx.tables import float_table, table_twin


def encoder_twin(encoder: Any, dtype: str) -> nn.Module:
    """Return a module that gives an encoder's embeddings of rows as they come in."""
    if isinstance(encoder, TabularEncoder):
        return table_twin(encoder)
    if isinstance(encoder, IdentityEncoder):
        steps: list[nn.Module] = []
        if encoder.input_kind_ == "image":
            steps.append(FlatPixels(*pixel_range(encoder)))
        return Chain(*steps, *([Unit()] if encoder.normalize else []))
    if isinstance(encoder, ContrastiveEncoder):
        images = encoder.input_kind_ == "image"
        flips = images and encoder.preset_.flip
        return Chain(contrastive_rows(encoder, dtype),
                     OnSphere(network(encoder.module_), flips))  # fmt: skip
    if isinstance(encoder, CAEEncoder):
        return Chain(
            resized_pixels(encoder, encoder.image_size, encoder.channels),
            network(encoder.module_.encoder),
            nn.Flatten(),
        )
    if "text" in (inputs_of(encoder) or ()):
        refuse(encoder, "texts become numbers by tables of words, outside the graph; "
               "embed them first and fit on the embeddings")  # fmt: skip
    if isinstance(encoder, Encoder):
        refuse(encoder, "there is no graph for it")
    refuse(encoder, "it is a class of your own; embed the rows first and fit on the "
           "embeddings")  # fmt: skip


def contrastive_rows(encoder: ContrastiveEncoder, dtype: str) -> nn.Module:
    """Return how rows reach the network of a contrastive encoder."""
    if encoder.input_kind_ == "image":
        return pixels(encoder, dtype, encoder.image_size)
    return float_table(encoder.table_)
