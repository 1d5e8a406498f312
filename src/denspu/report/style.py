"""One look for every picture: colours, fonts, sizes, and how a file is written.

Figures are plain ``matplotlib.figure.Figure`` objects. pyplot is never imported, so
no window opens, no display is needed, and nothing stays behind. Sizes are in inches at
200 dots an inch: a README shows an 8-inch picture at half its pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.transforms import ScaledTranslation

from denspu._files import new_file
from denspu.exceptions import InvalidParameterError

DPI = 200

INK = "#1f2933"
SOFT_INK = "#5f6b7a"
RULE = "#d5dae1"

# Okabe and Ito's colours, told apart by colour-blind readers too
BLUE = "#0072b2"
SKY = "#56b4e9"
GREEN = "#009e73"
ORANGE = "#d55e00"
AMBER = "#e69f00"
PINK = "#cc79a7"
GREY = "#9aa5b1"

CYCLE = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY)
"""Colours for series without a meaning of their own, in this order."""


@dataclass(frozen=True)
class Role:
    """How one kind of row looks on a map."""

    label: str
    color: str
    marker: str
    size: float
    alpha: float


ROLES: Mapping[str, Role] = {
    "negative": Role("chosen negatives Ñ", ORANGE, "x", 11, 0.75),
    "rejected": Role("unlabelled, called negative", ORANGE, "x", 11, 0.6),
    "unlabeled": Role("unlabelled, undecided", GREY, "o", 9, 0.5),
    "inlier": Role("unlabelled, inside the boundary", SKY, "o", 9, 0.6),
    "called": Role("unlabelled, called positive", SKY, "o", 9, 0.6),
    "positive": Role("labelled positives", BLUE, "o", 20, 1.0),
}
"""The roles of :func:`denspu.report.latent_map`, the lowest layer first."""

STYLE: dict[Any, Any] = {
    "axes.edgecolor": RULE,
    "axes.labelcolor": SOFT_INK,
    "axes.labelsize": 8,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlepad": 6,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "figure.constrained_layout.h_pad": 0.05,
    "figure.constrained_layout.w_pad": 0.06,
    "figure.dpi": DPI,
    "figure.facecolor": "white",
    "figure.titlesize": 9.5,
    "figure.titleweight": "bold",
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "image.cmap": "gray",
    "legend.fontsize": 7.5,
    "legend.borderaxespad": 0,
    "legend.frameon": False,
    "legend.labelcolor": SOFT_INK,
    "legend.labelspacing": 0.35,
    "savefig.facecolor": "white",
    "svg.hashsalt": "denspu",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": RULE,
    "xtick.labelcolor": SOFT_INK,
    "xtick.labelsize": 7.5,
    "ytick.color": RULE,
    "ytick.labelcolor": SOFT_INK,
    "ytick.labelsize": 7.5,
}


@contextmanager
def styled() -> Iterator[None]:
    """Apply the look inside the block and restore matplotlib's settings after."""
    with rc_context(STYLE):
        yield


def new_figure(width: float = 8, height: float = 4) -> Figure:
    """Return an empty figure in inches; 8 inches are 1,600 pixels.

    Draw into it inside ``with styled():``.
    """
    with styled():
        return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def bare(axes: Axes) -> None:
    """Take away ticks and frame: for maps and images."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def legend_below(axes: Axes, points: float, **options: Any) -> Legend:
    """Put the legend below the axes, a distance in points from their lower edge."""
    shift = ScaledTranslation(0, -points / 72, axes.figure.dpi_scale_trans)
    return axes.legend(
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=axes.transAxes + shift,
        borderpad=0,
        **options,
    )


def save(figure: Figure, path: str | Path, description: str | None = None) -> Path:
    """Write a figure as PNG or SVG, by the suffix of ``path``.

    The same figure gives the same bytes: no date and no random ids are written. A
    description goes into the file and is not seen. Missing folders are made.

    Returns
    -------
    Path
        Where the picture is.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    metadata: dict[str, Any] = {"png": {"Software": None}, "svg": {"Date": None}}
    if kind not in metadata:
        raise InvalidParameterError(
            f"{path.name!r} must end in .png or .svg to say what to write."
        )
    about = {} if description is None else {"Description": description}
    path.parent.mkdir(parents=True, exist_ok=True)
    with styled(), new_file(path) as work:
        figure.savefig(work, format=kind, metadata=metadata[kind] | about)
    return path
