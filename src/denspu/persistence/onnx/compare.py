"""The file's answers beside the model's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit

from denspu._typing import FloatArray
from denspu.exceptions import ModelFileError
from denspu.persistence.onnx.answers import OUTPUTS
from denspu.persistence.onnx.inputs import InputSpec
from denspu.persistence.onnx.refusal import require_onnx

ALONE = 8
"""Rows that are also run one by one."""


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
