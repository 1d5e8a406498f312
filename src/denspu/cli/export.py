"""``denspu export``: a saved model as one ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from denspu.cli.predict import model_folder
from denspu.exceptions import InvalidParameterError


def export(
    model: Annotated[
        Path, typer.Option(help="The folder of a saved model: RUN/model.")
    ],
    onnx: Annotated[Path, typer.Option(help="The file to write.")],
    rows: Annotated[
        Path | None,
        typer.Option(
            help="An .npy file of rows to compare on; its type of numbers becomes the "
            "graph's. Without it rows are drawn."
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Largest difference allowed; by default 0.001."),
    ] = None,
    opset: Annotated[int, typer.Option(help="Version of the ONNX operators.")] = 20,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is there.")
    ] = False,
) -> None:
    """Write a saved model as an ONNX file, compared with the model before it is kept.

    The graph takes images or a table of numbers and gives score, probability and
    decision.
    """
    from denspu.persistence import load
    from denspu.persistence.onnx import export_onnx

    found = export_onnx(
        load(model_folder(model), device="cpu"),
        onnx,
        sample=None if rows is None else _read(rows),
        tolerance=tolerance,
        opset=opset,
        overwrite=overwrite,
    )
    print(f"wrote     {found.path} ({found.n_bytes / 1e6:.1f} MB)")
    print(f"parity    {found.sentence()}")


def _read(path: Path) -> object:
    import numpy as np

    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidParameterError(
            f"--rows {path} cannot be read as an .npy file ({error}). Save rows with "
            "numpy.save."
        ) from error
