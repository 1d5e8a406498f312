"""What an exported graph takes, and rows to compare its answers with the model's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._frame import Frame
from denspu._typing import FloatArray
from denspu._validation import check_images, is_frame
from denspu.encoders import TabularEncoder
from denspu.exceptions import InvalidParameterError
from denspu.networks.pixels import PixelScale
from denspu.persistence.onnx.twins import number_steps, refuse, scaling

IMAGE_TYPES = ("uint8", "uint16", "float32", "float64")
TABLE_TYPES = ("float32", "float64")
GAPS = 0.05
"""Share of drawn cells left empty in columns that had gaps when the model learned."""


@dataclass(frozen=True)
class InputSpec:
    """The one input of a graph; the first dimension, rows, is free."""

    kind: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    columns: tuple[str, ...] | None
    """Names, in order, where the model was fitted on named columns."""

    def for_model(self, rows: NDArray[Any]) -> Any:
        """Return rows as the model's own methods take them."""
        if self.columns is None:
            return rows
        return Frame({name: rows[:, i] for i, name in enumerate(self.columns)})


def input_spec(model: Any, sample: Any = None) -> InputSpec:
    """Return what a graph of the model takes; a sample decides the type of numbers."""
    if model.input_kind_ == "text":
        refuse(model, "texts become numbers by tables of words, outside the graph",
               "Embed the texts first and fit on the embeddings")  # fmt: skip
    if model.input_kind_ == "image":
        dtype = _image_type(model) if sample is None else str(np.asarray(sample).dtype)
        _check_type(dtype, IMAGE_TYPES, "images")
        return InputSpec("image", "images", dtype, tuple(model.image_shape_), None)
    names = getattr(model, "feature_names_in_", None)
    dtype = "float64"
    if sample is not None and names is None:
        given = np.asarray(sample)
        dtype = "float32" if given.dtype == np.float32 else "float64"
    columns = None if names is None else tuple(map(str, names))
    return InputSpec("table", "rows", dtype, (int(model.n_features_in_),), columns)


def _image_type(model: Any) -> str:
    """Guess the pixels' type by the range the model learned."""
    scale = pixel_scale(model)
    if scale is not None and scale.low == 0:
        return {255.0: "uint8", 65535.0: "uint16"}.get(scale.high, "float32")
    return "float32"


def _check_type(dtype: str, allowed: tuple[str, ...], what: str) -> None:
    if dtype not in allowed:
        raise InvalidParameterError(
            f"sample holds {what} of type {dtype}; an exported graph takes "
            f"{', '.join(allowed)}. Convert the sample, and later rows likewise."
        )


def parts_of(model: Any) -> list[Any]:
    """Return the model and the fitted parts that may know what rows look like."""
    found, names = [model], ("encoder_", "table_", "refiner_", "classifier_")
    for part in found:
        found += [getattr(part, name) for name in names if hasattr(part, name)]
    first = getattr(model, "estimators_", None) or [getattr(model, "estimator_", None)]
    return [*found, first[0]]


def pixel_scale(model: Any) -> PixelScale | None:
    """Return the range of pixels a model learned, or None."""
    scales = (getattr(part, "scale_", None) for part in parts_of(model))
    return next((scale for scale in scales if isinstance(scale, PixelScale)), None)


# --- rows to compare -----------------------------------------------------------------


def as_rows(sample: Any, spec: InputSpec) -> NDArray[Any]:
    """Return given rows as the graph takes them."""
    if spec.kind == "image":
        rows = check_images(sample)
    elif is_frame(sample):
        wanted = spec.columns or tuple(map(str, sample.columns))
        rows = np.column_stack([np.asarray(sample[n], np.float64) for n in wanted])
    else:
        rows = np.asarray(sample)
    if rows.ndim != 1 + len(spec.shape) or rows.shape[1:] != spec.shape:
        raise InvalidParameterError(
            f"sample has shape {np.shape(sample)}; the model takes rows of shape "
            f"{spec.shape}. Pass rows like those given to fit."
        )
    if not len(rows):
        raise InvalidParameterError("sample holds no row. Pass at least one, or None.")
    return np.ascontiguousarray(rows, dtype=spec.dtype)


def drawn_rows(model: Any, spec: InputSpec, n: int, seed: int = 0) -> NDArray[Any]:
    """Return random rows in the range of those the model learned from."""
    rng = np.random.default_rng(seed)
    if spec.kind == "image":
        return _drawn_images(model, spec, n, rng)
    centre, spread = _cloud(model, spec.shape[0])
    rows = centre + spread * rng.normal(size=(n, *spec.shape))
    for column in _columns_with_gaps(model):
        rows[rng.random(n) < GAPS, column] = np.nan
    return rows.astype(spec.dtype)


def _drawn_images(
    model: Any, spec: InputSpec, n: int, rng: np.random.Generator
) -> NDArray[Any]:
    """Return noise of all brightnesses and contrasts."""
    level = rng.random((n, 1, 1, 1))
    noise = rng.normal(size=(n, *spec.shape)) * rng.random((n, 1, 1, 1)) / 3
    scale = pixel_scale(model) or PixelScale(0.0, 1.0)
    values = np.clip(level + noise, 0, 1) * (scale.high - scale.low) + scale.low
    if spec.dtype.startswith("uint"):
        values = values.round().clip(0, np.iinfo(spec.dtype).max)
    return values.astype(spec.dtype)


def _cloud(model: Any, n: int) -> tuple[FloatArray, FloatArray]:
    """Return where the columns lie and how far they spread, as far as is known."""
    table = _tabular(model)
    if table is not None:
        centre, spread = scaling(number_steps(table)[1])
        if len(centre) == n:
            return np.asarray(centre), np.asarray(spread)
    scale: Any = getattr(model, "scale_", None)  # of the identity encoder's rows
    if hasattr(scale, "centre") and len(scale.centre) == n:
        return scale.centre, np.full(n, scale.spread)
    rows = getattr(getattr(model, "detector_", None), "unlabeled_", None)
    if rows is not None and rows.shape[1] == n:
        return rows.mean(axis=0), rows.std(axis=0)
    return np.zeros(n), np.ones(n)


def _tabular(model: Any) -> TabularEncoder | None:
    tables = (part for part in parts_of(model) if isinstance(part, TabularEncoder))
    return next(tables, None)


def _columns_with_gaps(model: Any) -> list[int]:
    table = _tabular(model)
    indicator = None if table is None else number_steps(table)[2]
    return [] if indicator is None else [int(i) for i in indicator.features_]
