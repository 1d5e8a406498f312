"""Pictures of a fit, and the demonstration that draws them.

Everything here needs matplotlib, an extra: ``pip install 'denspu[report]'``.
"""

from denspu.report import _matplotlib  # noqa: F401 (first: says what to install)
from denspu.report.charts import lambda_distributions, score_histogram
from denspu.report.gallery import gallery, most_and_least_normal
from denspu.report.maps import latent_map, roles_of
from denspu.report.style import new_figure, save, styled

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
