"""Distributions: normality of P and U around the threshold, and λ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from denspu._typing import FloatArray
from denspu.exceptions import InvalidInputError
from denspu.report.style import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    legend_below,
    new_figure,
    only_axes,
    styled,
)

MAX_BINS = 40
LAMBDA_BINS = 50
CLOSE_UP = 0.005
"""Share of scores that may lie beyond each side of the histogram."""


def score_histogram(
    scores_positive: Any,
    scores_unlabeled: Any,
    threshold: float,
    *,
    title: str = "How normal is each row?",
    positive_label: str = "labelled positives",
) -> Figure:
    """Draw the normality of positives and of unlabelled rows, and the threshold.

    Parameters
    ----------
    scores_positive : array
        Normality of labelled positives, higher = more normal. Scores of rows that the
        boundary was fitted on look better than they are: prefer held-out ones.
    scores_unlabeled : array
        Normality of the unlabelled rows.
    threshold : float
        Rows below it lie outside the boundary.
    title, positive_label : str
        Heading of the picture, and what the legend calls the positives.
    """
    figure = new_figure(4.6, 3.4)
    scores = scores_positive, scores_unlabeled
    with styled():
        draw_score_histogram(figure, *scores, threshold, title, positive_label)
    return figure


def draw_score_histogram(
    figure: FigureBase,
    scores_positive: Any,
    scores_unlabeled: Any,
    threshold: float,
    title: str,
    positive_label: str,
) -> Axes:
    """Draw the histogram into a figure or a part of one."""
    positive = _numbers(scores_positive, "scores_positive")
    unlabeled = _numbers(scores_unlabeled, "scores_unlabeled")
    axes = only_axes(figure)
    axes.set_title(title)
    edges = _edges(positive, unlabeled, threshold)
    draw_density(axes, unlabeled, edges, GREY, f"unlabelled ({len(unlabeled):,})")
    draw_density(axes, positive, edges, BLUE, f"{positive_label} ({len(positive):,})")
    axes.axvline(threshold, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.set(xlim=(edges[0], edges[-1]), yticks=[])
    axes.set_xlabel("normality (higher = more like positives)")
    axes.spines["left"].set_visible(False)
    axes.margins(y=0.3)
    _sides(axes, threshold, int((unlabeled < threshold).sum()), len(unlabeled))
    legend_below(axes, 36, handlelength=1.2)
    return axes


def _edges(positive: FloatArray, unlabeled: FloatArray, threshold: float) -> FloatArray:
    """Return bin edges over both groups, one of them at the threshold.

    A handful of extreme scores must not squeeze the rest into one bar, and few scores
    get few bars.
    """
    groups = (positive, unlabeled)
    low = min(*(float(np.quantile(s, CLOSE_UP)) for s in groups), threshold)
    high = max(*(float(np.quantile(s, 1 - CLOSE_UP)) for s in groups), threshold)
    bins = min(MAX_BINS, 6 + int(1.5 * np.sqrt(min(map(len, groups)))))
    step = (high - low) / bins or 1.0
    below = np.ceil((threshold - low) / step) + 1
    above = np.ceil((high - threshold) / step) + 1
    return threshold + step * np.arange(-below, above + 1)


def draw_density(
    axes: Axes,
    values: FloatArray,
    edges: FloatArray,
    color: str,
    label: str,
    *,
    fill: float = 0.3,
) -> None:
    """Draw one histogram whose area is the share of the values in sight."""
    counts, _ = np.histogram(values, edges)
    heights = counts / (len(values) * np.diff(edges))
    axes.stairs(heights, edges, fill=True, color=color, alpha=fill)
    axes.stairs(heights, edges, color=color, linewidth=1.3, label=label)


def _sides(axes: Axes, threshold: float, n_outside: int, n: int) -> None:
    """Say how many unlabelled rows lie on either side of the threshold."""
    words = (
        ("right", -4, f"outside\n{n_outside:,} of U"),
        ("left", 4, f"inside\n{n - n_outside:,} of U"),
    )
    for side, shift, text in words:
        axes.annotate(
            text,
            (threshold, 1),
            xytext=(shift, -1),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha=side,
            va="top",
            color=INK,
            fontsize=7.5,
        )


def lambda_distributions(panels: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw how interpolation weights λ are distributed on (0, 1).

    Parameters
    ----------
    panels : mapping of title → {label: samples of λ}
        One panel a title, one distribution a label.

    Examples
    --------
    >>> figure = lambda_distributions({"Two weights": {"k = 0.2": [0.45, 0.55]}})
    >>> len(figure.axes)
    1
    """
    if not panels or not all(panels.values()):
        raise InvalidInputError("Pass at least one panel, each with samples of λ.")
    figure = new_figure(4 * len(panels), 3.2)
    with styled():
        row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (title, series) in zip(row, panels.items(), strict=True):
            _lambda_panel(axes, title, series)
        row[0].set_ylabel("density")
    return figure


def _lambda_panel(axes: Axes, title: str, series: Mapping[str, Any]) -> None:
    edges = np.linspace(0, 1, LAMBDA_BINS + 1)
    for i, (label, values) in enumerate(series.items()):
        weights = _numbers(values, label)
        color = CYCLE[i % len(CYCLE)]
        draw_density(axes, weights, edges, color, label, fill=0.12)
    axes.set_title(title)
    axes.set(xlim=(0, 1), xlabel="λ")
    axes.tick_params(labelleft=True)
    legend_below(axes, 36, handlelength=1.2)


def _numbers(values: Any, argument: str) -> FloatArray:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise InvalidInputError(
            f"{argument} must be a list of finite numbers and hold at least one; it "
            f"has shape {numbers.shape}."
        )
    return numbers
