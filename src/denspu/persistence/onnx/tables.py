"""Tables of numbers: the fitted steps of their encoder, and these as a module."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from denspu.encoders import TabularEncoder
from denspu.persistence.onnx.parts.basics import Cast, Chain
from denspu.persistence.onnx.parts.rows import Affine, Filled
from denspu.persistence.onnx.refusal import refuse


def number_steps(encoder: TabularEncoder) -> tuple[Any, Any, Any]:
    """Return imputer, scaler and indicator of gaps (or None) of a table's numbers."""
    pipeline, indicator = encoder.pipeline_, None
    if encoder.fitted_on_frame_:
        pipeline = encoder.pipeline_.named_transformers_["numbers"]
    if hasattr(pipeline, "transformer_list"):
        (_, pipeline), (_, indicator) = pipeline.transformer_list
    imputer, scaler = (step for _, step in pipeline.steps)
    return imputer, scaler, indicator


def scaling(scaler: Any) -> tuple[Any, Any]:
    """Return what a fitted scaler subtracts from each column and divides it by."""
    spread = getattr(scaler, "spread_", None)
    if spread is None:
        return scaler.mean_, scaler.scale_
    return scaler.mean_, np.full(len(scaler.mean_), spread)


def table_twin(encoder: TabularEncoder) -> nn.Module:
    """Return the steps of a table of numbers: fill, scale, mark what was missing."""
    refuse_categories(encoder)
    imputer, scaler, indicator = number_steps(encoder)
    fill = np.nan_to_num(np.asarray(imputer.statistics_, dtype=np.float64))
    marked = [] if indicator is None else indicator.features_
    return Filled(fill, Affine(*scaling(scaler)), np.asarray(marked, dtype=np.int64))


def float_table(encoder: TabularEncoder) -> nn.Module:
    """Return a table as a network takes it, in single precision."""
    return Chain(table_twin(encoder), Cast(torch.float32))


def refuse_categories(encoder: TabularEncoder) -> None:
    """Raise if a table has columns of categories."""
    if not encoder.fitted_on_frame_:
        return
    for name, _, columns in encoder.pipeline_.transformers_:
        if name == "categories" and len(columns):
            names = encoder.feature_names_in_[columns[:8]]
            refuse(encoder, f"column(s) {', '.join(map(str, names))} hold categories, "
                   "and the graph takes numbers only; write them as numbers before "
                   "fit")  # fmt: skip
