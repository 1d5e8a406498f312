"""``export_onnx``: from a fitted model to a file that was compared with it."""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from denspu import __version__
from denspu._files import new_file
from denspu._frame import Frame
from denspu._parameters import Number, OneOf, Whole, check
from denspu._typing import FloatArray
from denspu._validation import check_images, is_frame
from denspu.encoders import TabularEncoder
from denspu.exceptions import InvalidParameterError, ModelFileError
from denspu.methods._base import PUClassifier
from denspu.networks.backbones import PixelScale
from denspu.persistence.onnx.arithmetic import Pixels
from denspu.persistence.onnx.twins import (
    OUTPUTS,
    Answers,
    number_steps,
    refuse,
    require_onnx,
    scaling,
)

OPSET, OPSETS = 20, (18, 23)
TOLERANCE = 1e-3
RESIZED_TOLERANCE = 2e-2
"""Where the graph shrinks images: pixels halfway between two whole steps are rounded
either way, as in any two libraries."""
ALONE = 8
"""Rows that are also run one by one."""
ROWS = 256
"""Rows that are drawn, and of given ones compared, at most times four."""


@dataclass(frozen=True)
class OnnxExport:
    """What was written, and how near its answers are to the model's."""

    path: Path
    n_bytes: int
    rows: int
    """Rows compared."""
    source: str
    """``"given"`` or ``"drawn"``."""
    score_difference: float
    """Largest difference from ``decision_function``, relative to max(1, |score|)."""
    probability_difference: float
    """Largest difference from ``predict_proba``."""
    batch_difference: float
    """Largest difference between rows run alone and together."""

    def sentence(self) -> str:
        """Return the comparison in words."""
        return (
            f"{self.rows} {self.source} rows compared with the model: largest "
            f"difference {self.score_difference:.1e} in score, "
            f"{self.probability_difference:.1e} in probability"
        )


def export_onnx(
    model: PUClassifier,
    path: str | Path,
    *,
    sample: Any = None,
    opset: int = OPSET,
    tolerance: float | None = None,
    overwrite: bool = False,
) -> OnnxExport:
    """Write a fitted model as one ONNX file and compare its answers with the model's.

    The graph's one input has a free number of rows: ``images`` (N×H×W×C) or ``rows``
    (N×columns). Outputs: ``score`` (``decision_function``), ``probability`` (column 1
    of ``predict_proba``) and ``decision`` (``predict``), as they are now: export again
    after ``set_threshold`` or ``calibrate``.

    Parameters
    ----------
    model : PUClassifier
        A fitted method.
    path : str or Path
        The file, written whole or not at all.
    sample : array or table, optional
        Rows to compare on, and the type of numbers the graph takes (uint8, uint16,
        float32, float64). Without it rows are drawn in the range the model learned,
        and the type follows from that range.
    opset : int, default=20
        Version of the ONNX operators, 18 to 23.
    tolerance : float or None, default=None
        Largest difference allowed, relative to max(1, |score|); beyond it nothing is
        written. ``None``: 0.001, or 0.02 where images are resized inside the graph and
        rounded to whole steps, which can fall either way.
    overwrite : bool, default=False
        Replace a file that is there.

    Returns
    -------
    OnnxExport
        The differences seen; they also stand in the file's metadata.

    Raises
    ------
    ModelFileError
        A part has no graph, answers differ too much, or the file is there already.
    """
    require_onnx()
    path = Path(path)
    _check_arguments(model, path, opset, tolerance, overwrite)
    spec = input_spec(model, sample)
    if sample is None:
        rows, source = drawn_rows(model, spec, ROWS), "drawn"
    else:
        rows, source = as_rows(sample, spec)[: 4 * ROWS], "given"
    twin = Answers(model, spec.dtype)
    if tolerance is None:
        pixels = [part for part in twin.modules() if isinstance(part, Pixels)]
        rounds = any(part.resizes and part.levels for part in pixels)
        tolerance = RESIZED_TOLERANCE if rounds else TOLERANCE
    proto = graph_of(twin, rows, spec, opset, type(model).__name__)
    with new_file(path, overwrite=overwrite) as work:
        work.write_bytes(proto.SerializeToString())
        found = compare(model, work, spec, rows, tolerance)
        seen = {
            "rows_compared": len(rows),
            "rows": source,
            "tolerance": float(tolerance),
        }
        describe(proto, model, spec, {**seen, **found})
        work.write_bytes(proto.SerializeToString())
        size = work.stat().st_size
    return OnnxExport(path, size, len(rows), source, **found)


def _check_arguments(
    model: Any, path: Path, opset: int, tolerance: float | None, overwrite: bool
) -> None:
    if not isinstance(model, PUClassifier):
        raise InvalidParameterError(
            f"model={type(model).__name__} is not a PU method; export_onnx takes a "
            "fitted method. A part goes to ONNX with the method that holds it."
        )
    check_is_fitted(model)
    check("opset", opset, Whole(*OPSETS))
    check("tolerance", tolerance, Number(0, closed="neither"), OneOf(None))
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder. Name a file, model.onnx, say.")
    if not path.parent.is_dir():
        raise ModelFileError(f"The folder {path.parent} does not exist. Make it first.")
    if path.exists() and not overwrite:
        raise ModelFileError(
            f"{path} exists already. Pass overwrite=True, or another name."
        )


# --- what a graph takes, and rows to compare -----------------------------------------

IMAGE_TYPES = ("uint8", "uint16", "float32", "float64")
GAPS = 0.05
"""Share of drawn cells left empty in columns that had gaps when the model learned."""


@dataclass(frozen=True)
class InputSpec:
    """The one input of a graph; the first dimension, rows, is free."""

    kind: str
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
        return InputSpec("image", dtype, tuple(model.image_shape_), None)
    names = getattr(model, "feature_names_in_", None)
    single = names is None and getattr(sample, "dtype", None) == np.float32
    columns = None if names is None else tuple(map(str, names))
    shape = (int(model.n_features_in_),)
    return InputSpec("table", "float32" if single else "float64", shape, columns)


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


# --- the graph -----------------------------------------------------------------------


def graph_of(
    twin: torch.nn.Module, rows: NDArray[Any], spec: InputSpec, opset: int, kind: str
) -> Any:
    """Return the ONNX model of a twin."""
    # three rows are recorded: one would be taken for a fixed number
    few = torch.from_numpy(np.resize(rows, (3, *rows.shape[1:])))
    weight = sum(t.numel() * t.element_size() for t in twin.state_dict().values())
    if weight > 2e9:
        raise ModelFileError(
            f"{kind} cannot be exported to ONNX: it holds {weight / 1e9:.1f} "
            "GB, and one file holds 2. Fit on fewer rows or with a smaller network."
        )
    disabled = logging.root.manager.disable
    with warnings.catch_warnings():  # the exporter tells much about itself
        warnings.simplefilter("ignore")
        logging.disable(max(disabled, logging.WARNING))
        try:
            program = torch.onnx.export(
                twin,
                (few,),
                dynamo=True,
                opset_version=opset,
                input_names=["images" if spec.kind == "image" else "rows"],
                output_names=list(OUTPUTS),
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            reason = str(error.__cause__ or error).strip().partition("\n")[0]
            raise ModelFileError(
                f"{kind} cannot be exported to ONNX: torch's exporter stopped "
                f"({reason:.200}). A network of your own may hold operations that ONNX "
                "lacks."
            ) from error
        finally:
            logging.disable(disabled)
    assert program is not None
    return program.model_proto


def describe(proto: Any, model: Any, spec: InputSpec, facts: dict[str, Any]) -> None:
    """Write what the file is into its metadata."""
    import onnx

    known = {
        "denspu_version": __version__,
        "method": type(model).__name__,
        "input": spec.kind,
        "threshold": float(model.threshold_),
        "calibrated": hasattr(model, "posterior_"),
        **facts,
        **({"columns": spec.columns} if spec.columns else {}),
    }
    words = {k: v if isinstance(v, str) else json.dumps(v) for k, v in known.items()}
    onnx.helper.set_model_props(proto, words)
    proto.producer_name, proto.producer_version = "denspu", __version__


# --- the file's answers beside the model's -------------------------------------------


def session(file: str | Path) -> Any:
    """Return a function from rows to score, probability and decision of a file."""
    require_onnx()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = torch.get_num_threads()
    opened = onnxruntime.InferenceSession(
        str(file), options, providers=["CPUExecutionProvider"]
    )
    name = opened.get_inputs()[0].name
    return lambda rows: opened.run(list(OUTPUTS), {name: rows})


def compare(
    model: Any, file: Path, spec: InputSpec, rows: NDArray[Any], tolerance: float
) -> dict[str, float]:
    """Return the largest differences, or raise where one is too large."""
    run, given = session(file), spec.for_model(rows)
    score, probability, decision = run(rows)
    alone = np.concatenate([run(rows[i : i + 1])[0] for i in range(len(rows[:ALONE]))])
    expected = np.asarray(model.decision_function(given), dtype=np.float64)
    size = np.maximum(1.0, np.abs(expected))
    chance = model.predict_proba(given)[:, 1]
    found = {
        "score_difference": _largest((score - expected) / size),
        "probability_difference": _largest(probability - chance),
        "batch_difference": _largest((alone - score[:ALONE]) / size[:ALONE]),
    }
    # A step of the calibration may lie between two scores that differ by rounding, so
    # its graph is held against the model's map of the graph's own scores.
    mapped = getattr(model, "posterior_", expit)(score)
    sure = np.abs(expected - model.threshold_) > tolerance * size
    checked = {
        "score": found["score_difference"],
        "probability": _largest(probability - mapped),
        "score of a row alone": found["batch_difference"],
    }
    faults = [
        f"the graph's {what} differs by up to {worst:.2e} on {len(rows)} rows, and "
        f"tolerance={tolerance:g}"
        for what, worst in checked.items()
        if not worst <= tolerance
    ]
    if np.any(decision[sure] != model.predict(given)[sure]):
        faults.append("the graph decides otherwise on rows away from the threshold")
    if faults:
        raise ModelFileError(
            f"{type(model).__name__} cannot be exported to ONNX: "
            f"{'; '.join(faults)}. Nothing was written."
        )
    return found


def _largest(values: FloatArray) -> float:
    found = float(np.max(np.abs(values)))
    return found if np.isfinite(found) else float("inf")
