"""From files to a run folder: model, ranked list, facts for the report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from denspu.runs.options import Reading, RunOptions

if TYPE_CHECKING:
    from denspu.runs.evaluate import Evaluation, evaluate_files
    from denspu.runs.fit import fit_run
    from denspu.runs.folder import RunFacts, RunRows, read_input
    from denspu.runs.predict import Prediction, predict_files

__all__ = [
    "Evaluation",
    "Prediction",
    "Reading",
    "RunFacts",
    "RunOptions",
    "RunRows",
    "evaluate_files",
    "fit_run",
    "predict_files",
    "read_input",
]


def __getattr__(name: str) -> Any:
    """Load what is slow to load when it is asked for: the command line is not."""
    for home in ("fit", "folder", "predict", "evaluate") if name in __all__ else ():
        module = import_module(f"denspu.runs.{home}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module 'denspu.runs' has no attribute {name!r}")
