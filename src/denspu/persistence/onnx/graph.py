"""A module → an ONNX graph by torch's exporter, with facts in its metadata."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from denspu._version import __version__
from denspu.exceptions import ModelFileError
from denspu.persistence.onnx.inputs import InputSpec
from denspu.persistence.onnx.twins import OUTPUTS

TRACED_ROWS = 3
"""Rows of the pass that is recorded; one row would be taken for a fixed number."""

LARGEST = 2_000_000_000
"""Bytes an ONNX file may hold."""


def graph_of(
    twin: nn.Module, rows: NDArray[Any], spec: InputSpec, opset: int, kind: type
) -> Any:
    """Return the ONNX model of a twin."""
    few = torch.from_numpy(np.resize(rows, (TRACED_ROWS, *rows.shape[1:])))
    weight = sum(t.numel() * t.element_size() for t in twin.state_dict().values())
    if weight > LARGEST:
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
            raise ModelFileError(
                f"{kind.__name__} cannot be exported to ONNX: torch's exporter stopped "
                f"({_first_line(error)}). A network of your own may hold operations "
                "that ONNX lacks."
            ) from error
    assert program is not None
    return program.model_proto


def _first_line(error: BaseException) -> str:
    cause = error.__cause__ or error
    return next((line for line in str(cause).splitlines() if line.strip()), "")[:200]


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
