"""``export_onnx``: from a fitted model to a file that was compared with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from denspu._files import new_file
from denspu.exceptions import InvalidParameterError, ModelFileError
from denspu.methods._base import PUClassifier
from denspu.persistence.onnx.answers import answers_twin
from denspu.persistence.onnx.compare import compare
from denspu.persistence.onnx.graph import describe, graph_of
from denspu.persistence.onnx.inputs import InputSpec, as_rows, drawn_rows, input_spec
from denspu.persistence.onnx.parts.rows import Pixels
from denspu.persistence.onnx.refusal import require_onnx

OPSET, OPSETS = 20, (18, 23)
TOLERANCE = 1e-3
RESIZED_TOLERANCE = 2e-2
"""Where the graph shrinks images: pixels halfway between two whole steps are rounded
either way, as in any two libraries."""
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
    twin = answers_twin(model, spec.dtype)
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


def usual_tolerance(twin: nn.Module) -> float:
    """Return the largest difference allowed when none is given."""
    resizes = any(
        isinstance(part, Pixels) and part.resizes and part.levels
        for part in twin.modules()
    )
    return RESIZED_TOLERANCE if resizes else TOLERANCE
