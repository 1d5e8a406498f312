"""Rows as numbers, learned without looking at the labels.

An encoder that pulled the labelled positives together would make them unlike the
positives inside U, and every estimate too small. So encoders are fitted without ``y``.
"""

from __future__ import annotations

from typing import Any

from denspu._random import Randomness
from denspu._registry import give_time, prepare_part, refuse_kind, resolve_part
from denspu._typing import FloatArray
from denspu._validation import PUInput, check_embedding
from denspu.encoders import (
    ContrastiveEncoder,
    IdentityEncoder,
    TabularEncoder,
    TextEncoder,
)
from denspu.exceptions import InvalidInputError

SMALL_IMAGE = 32
"""Grey images up to this side are used pixel by pixel."""


def embed(
    data: PUInput,
    encoder: Any,
    randomness: Randomness,
    device: str,
    max_seconds: float | None = None,
) -> FloatArray:
    """Return one row of numbers a sample."""
    if isinstance(encoder, str) and encoder == "auto":
        return _by_default(data, randomness, device, max_seconds)
    part = resolve_part(encoder, "encoder", argument="encoder")
    refuse_kind(part, data.kind, "encoder")
    part = prepare_part(part, randomness, "encoder", device=device)
    give_time(part, max_seconds)
    return _fitted(part, data.X, randomness, device)


def _by_default(
    data: PUInput, randomness: Randomness, device: str, max_seconds: float | None
) -> FloatArray:
    if data.kind == "table":
        return _fitted(TabularEncoder(), data.X, randomness, device)
    if data.kind == "text":
        return _fitted(TextEncoder(), data.X, randomness, device)
    height, width, channels = data.X.shape[1:]
    if channels > 1 or max(height, width) > SMALL_IMAGE:
        network = ContrastiveEncoder(positive_weight=0, max_seconds=max_seconds)
        return _fitted(network, data.X, randomness, device)
    pixels = _fitted(IdentityEncoder(), data.X, randomness, device)
    return _fitted(TabularEncoder(), pixels, randomness, device)


def _fitted(part: Any, X: Any, randomness: Randomness, device: str) -> FloatArray:
    part = prepare_part(part, randomness, "encoder", device=device)
    Z = check_embedding(part.fit(X).transform(X), argument="the encoder's output")
    if len(Z) != len(X):
        raise InvalidInputError(
            f"The encoder returned {len(Z)} rows for {len(X)}; one a sample is needed."
        )
    return Z
