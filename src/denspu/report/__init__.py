"""Pictures of a fit, the report of a run, and the demonstration.

Pictures need matplotlib and pages jinja2: ``pip install 'denspu[report]'``. What is
said about a run (``words.py``) needs neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from denspu.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from denspu.report.charts import gallery as gallery
    from denspu.report.charts import lambda_distributions as lambda_distributions
    from denspu.report.charts import latent_map as latent_map
    from denspu.report.charts import most_and_least_normal as most_and_least_normal
    from denspu.report.charts import roles_of as roles_of
    from denspu.report.charts import score_histogram as score_histogram
    from denspu.report.style import new_figure as new_figure
    from denspu.report.style import save as save
    from denspu.report.style import styled as styled

_HOME = {
    "gallery": "charts",
    "lambda_distributions": "charts",
    "latent_map": "charts",
    "most_and_least_normal": "charts",
    "new_figure": "style",
    "roles_of": "charts",
    "save": "style",
    "score_histogram": "charts",
    "styled": "style",
}

__all__ = [
    "gallery",
    "lambda_distributions",
    "latent_map",
    "most_and_least_normal",
    "new_figure",
    "roles_of",
    "save",
    "score_histogram",
    "styled",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'denspu.report' has no attribute {name!r}")
    try:
        return getattr(import_module(f"denspu.report.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "Pictures need matplotlib: pip install 'denspu[report]'"
        ) from error
