"""What an exported graph takes, and rows to compare its answers with the model's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._frame import Frame
from denspu._validation import check_images, is_frame
from denspu.encoders import TabularEncoder
from denspu.exceptions import InvalidParameterError
from denspu.networks.backbones import PixelScale
from denspu.persistence.onnx.twins import number_steps, refuse, scaling

IMAGE_TYPES = ("uint8", "uint16", "float32", "float64")
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
        if dtype not in IMAGE_TYPES:
            raise InvalidParameterError(
                f"sample holds images of type {dtype}; an exported graph takes "
                f"{', '.join(IMAGE_TYPES)}. Convert the sample, and later rows "
                "likewise."
            )
        return InputSpec("image", "images", dtype, tuple(model.image_shape_), None)
    names = getattr(model, "feature_names_in_", None)
    single = names is None and getattr(sample, "dtype", None) == np.float32
    dtype = "float32" if single else "float64"
    columns = None if names is None else tuple(map(str, names))
    shape = (int(model.n_features_in_),)
    return InputSpec(
        "table", "rows", "float32" if single else "float64", shape, columns
    )


def _image_type(model: Any) -> str:
    """Guess the pixels' type by the range the model learned."""
    scale = pixel_scale(model)
    whole = {255.0: "uint8", 65535.0: "uint16"} if scale.low == 0 else {}
    return whole.get(scale.high, "float32")


def parts_of(model: Any) -> list[Any]:
    """Return the model and the fitted parts that may know what rows look like."""
    found, names = [model], ("encoder_", "table_", "refiner_", "classifier_")
    for part in found:
        found += [getattr(part, name) for name in names if hasattr(part, name)]
    return found


def pixel_scale(model: Any) -> PixelScale:
    """Return the range of pixels a model learned."""
    scales = (getattr(part, "scale_", None) for part in parts_of(model))
    known = (scale for scale in scales if isinstance(scale, PixelScale))
    return next(known, PixelScale(0.0, 1.0))


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
    if spec.kind == "image":  # noise of all brightnesses and contrasts
        level = rng.random((n, 1, 1, 1))
        noise = rng.normal(size=(n, *spec.shape)) * rng.random((n, 1, 1, 1)) / 3
        scale = pixel_scale(model)
        values = np.clip(level + noise, 0, 1) * (scale.high - scale.low) + scale.low
        if spec.dtype.startswith("uint"):
            values = values.round().clip(0, np.iinfo(spec.dtype).max)
        return values.astype(spec.dtype)
    centre, spread, gaps = 0.0, 1.0, []
    table = next((p for p in parts_of(model) if isinstance(p, TabularEncoder)), None)
    unlabeled = getattr(getattr(model, "detector_", None), "unlabeled_", None)
    if table is not None:
        _, scaler, indicator = number_steps(table)
        centre, spread = scaling(scaler)
        gaps = [] if indicator is None else list(indicator.features_)
    elif unlabeled is not None and unlabeled.shape[1:] == spec.shape:
        centre, spread = unlabeled.mean(axis=0), unlabeled.std(axis=0)
    rows = centre + spread * rng.normal(size=(n, *spec.shape))
    for column in gaps:
        rows[rng.random(n) < GAPS, column] = np.nan
    return rows.astype(spec.dtype)
