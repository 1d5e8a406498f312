"""From files to a run folder: model, ranked list, facts for the report."""

from denspu.runs.evaluate import Evaluation, evaluate_files
from denspu.runs.facts import RunFacts, RunRows
from denspu.runs.fit import fit_run
from denspu.runs.folder import read_input
from denspu.runs.options import Reading, RunOptions
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
