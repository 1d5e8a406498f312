"""Pictures of a fit, the report of a run, and the demonstration.

Pictures need matplotlib and pages jinja2: ``pip install 'denspu[report]'``. What is
said about a run (``words.py``) needs neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from denspu.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from denspu.report.charts import lambda_distributions, latent_map, roles_of
    from denspu.report.style import new_figure, save, styled

__all__ = [
    "lambda_distributions",
    "latent_map",
    "new_figure",
    "roles_of",
    "save",
    "styled",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'denspu.report' has no attribute {name!r}")
    home = "style" if name in ("new_figure", "save", "styled") else "charts"
    try:
        return getattr(import_module(f"denspu.report.{home}"), name)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "Pictures need matplotlib: pip install 'denspu[report]'"
        ) from error
