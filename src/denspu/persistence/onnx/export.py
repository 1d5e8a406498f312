"""``export_onnx``: from a fitted model to a file that was compared with it."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from denspu._files import new_file
from denspu._typing import FloatArray
from denspu._version import __version__
from denspu.exceptions import InvalidParameterError, ModelFileError
from denspu.methods._base import PUClassifier
from denspu.persistence.onnx.arithmetic import Pixels
from denspu.persistence.onnx.inputs import InputSpec, as_rows, drawn_rows, input_spec
from denspu.persistence.onnx.twins import OUTPUTS, Answers, require_onnx

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
    rows, source = _rows(model, spec, sample)
    twin = Answers(model, spec.dtype)
    tolerance = usual_tolerance(twin) if tolerance is None else float(tolerance)
    proto = graph_of(twin, rows, spec, opset, type(model))
    with _in_place(path, overwrite) as work:
        work.write_bytes(proto.SerializeToString())
        found = compare(model, work, spec, rows, tolerance)
        facts = {"rows_compared": len(rows), "rows": source, "tolerance": tolerance}
        describe(proto, model, spec, {**facts, **found})
        work.write_bytes(proto.SerializeToString())
        size = work.stat().st_size
    return OnnxExport(path, size, len(rows), source, **found)


@contextmanager
def _in_place(path: Path, overwrite: bool) -> Iterator[Path]:
    try:
        with new_file(path, overwrite=overwrite) as work:
            yield work
    except FileExistsError:
        raise ModelFileError(f"{path} exists already.") from None


def _check_arguments(
    model: Any, path: Path, opset: int, tolerance: float | None, overwrite: bool
) -> None:
    if not isinstance(model, PUClassifier):
        raise InvalidParameterError(
            f"model={type(model).__name__} is not a PU method; export_onnx takes a "
            "fitted method. A part goes to ONNX with the method that holds it."
        )
    check_is_fitted(model)
    low, high = OPSETS
    if not (isinstance(opset, int) and low <= opset <= high):
        raise InvalidParameterError(
            f"opset={opset!r} must be a whole number from {low} to {high}."
        )
    if tolerance is not None and not tolerance > 0:
        raise InvalidParameterError(f"tolerance={tolerance!r} must be above 0.")
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder. Name a file, model.onnx, say.")
    if not path.parent.is_dir():
        raise ModelFileError(f"The folder {path.parent} does not exist. Make it first.")
    if path.exists() and not overwrite:
        raise ModelFileError(
            f"{path} exists already. Pass overwrite=True, or another name."
        )


def _rows(model: Any, spec: InputSpec, sample: Any) -> tuple[NDArray[Any], str]:
    if sample is None:
        return drawn_rows(model, spec, ROWS), "drawn"
    return as_rows(sample, spec)[: 4 * ROWS], "given"


def usual_tolerance(twin: torch.nn.Module) -> float:
    """Return the largest difference allowed when none is given."""
    resizes = any(
        isinstance(part, Pixels) and part.resizes and part.levels
        for part in twin.modules()
    )
    return RESIZED_TOLERANCE if resizes else TOLERANCE


# --- the graph -----------------------------------------------------------------------


def graph_of(
    twin: torch.nn.Module, rows: NDArray[Any], spec: InputSpec, opset: int, kind: type
) -> Any:
    """Return the ONNX model of a twin."""
    # three rows are recorded: one would be taken for a fixed number
    few = torch.from_numpy(np.resize(rows, (3, *rows.shape[1:])))
    weight = sum(t.numel() * t.element_size() for t in twin.state_dict().values())
    if weight > 2e9:
        raise ModelFileError(
            f"{kind.__name__} cannot be exported to ONNX: it holds {weight / 1e9:.1f} "
            "GB, and one file holds 2. Fit on fewer rows or with a smaller network."
        )
    with _quiet():
        try:
            program = torch.onnx.export(
                twin,
                (few,),
                dynamo=True,
                opset_version=opset,
                input_names=[spec.name],
                output_names=list(OUTPUTS),
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            reason = str(error.__cause__ or error).strip().partition("\n")[0]
            raise ModelFileError(
                f"{kind.__name__} cannot be exported to ONNX: torch's exporter stopped "
                f"({reason:.200}). A network of your own may hold operations that ONNX "
                "lacks."
            ) from error
    assert program is not None
    return program.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's notes about itself from the screen."""
    logger = logging.getLogger("torch.onnx")
    disabled = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(max(disabled, logging.WARNING))
        try:
            yield
        finally:
            logging.disable(disabled)
            logger.disabled = False


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
    }
    if spec.columns is not None:
        known["columns"] = list(spec.columns)
    words = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in known.items()
    }
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
    run = session(file)
    score, probability, decision = run(rows)
    alone = [run(rows[i : i + 1])[0] for i in range(min(ALONE, len(rows)))]
    given = spec.for_model(rows)
    expected = np.asarray(model.decision_function(given), dtype=np.float64)
    size = np.maximum(1.0, np.abs(expected))
    mapped = _probability(model, score)
    found = {
        "score_difference": _largest((score - expected) / size),
        "probability_difference": _largest(
            probability - model.predict_proba(given)[:, 1]
        ),
        "batch_difference": _largest(
            (np.concatenate(alone) - score[: len(alone)]) / size[: len(alone)]
        ),
    }
    # A step of the calibration may lie between two scores that differ by rounding, so
    # its graph is held against the model's map of the graph's own scores.
    checked = {
        "score": found["score_difference"],
        "probability": _largest(probability - mapped),
        "score of a row alone": found["batch_difference"],
    }
    for what, worst in checked.items():
        if not worst <= tolerance:
            raise ModelFileError(
                f"{type(model).__name__} cannot be exported to ONNX: the graph's "
                f"{what} differs by up to {worst:.2e} on {len(rows)} rows, and "
                f"tolerance={tolerance:g}. Nothing was written."
            )
    sure = np.abs(expected - model.threshold_) > tolerance * size
    if np.any(decision[sure] != model.predict(given)[sure]):
        raise ModelFileError(
            f"{type(model).__name__} cannot be exported to ONNX: the graph decides "
            "otherwise on rows away from the threshold. Nothing was written."
        )
    return found


def _probability(model: Any, scores: FloatArray) -> FloatArray:
    found = getattr(model, "posterior_", None)
    return np.asarray(expit(scores) if found is None else found(scores))


def _largest(values: FloatArray) -> float:
    found = float(np.max(np.abs(values)))
    return found if np.isfinite(found) else float("inf")
