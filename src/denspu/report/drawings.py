"""Geometry of the page's charts, in shares of their width and height.

The page draws bars and lines as SVG that stretches, and words as HTML that does not: so
both are sharp and readable on a phone and on a wide screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from denspu._typing import FloatArray
from denspu.metrics import PUReport
from denspu.report.text import (
    estimate,
    is_number,
    number,
    percent,
    percent_range,
    readable,
)
from denspu.report.words import estimator_words, figure_words
from denspu.runs.facts import Curve, IfShare, Prior

MAX_BINS = 48
OUTSIDE = 0.004
"""Share of the scores that may lie beyond each end of a histogram."""
MOST_POINTS = 400
"""Points of a line; longer ones are thinned."""
MAIN = ("recall", "precision")
"""Figures shown at once; the others fold out."""


@dataclass(frozen=True)
class Tick:
    """A number below (or beside) an axis, at a place in percent."""

    at: float
    label: str


def ticks(low: float, high: float, most: int = 5) -> list[Tick]:
    """Return round numbers between two ends."""
    width = high - low
    if not width > 0 or not math.isfinite(width):
        return [Tick(50.0, number(low))]
    raw = width / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= raw)
    steps = range(math.ceil(low / step), math.floor(high / step) + 1)
    places = max(0, -math.floor(math.log10(step)))
    return [
        Tick(_place(step * k, low, high), f"{step * k + 0.0:,.{places}f}")
        for k in steps
    ]


def _place(value: Any, low: float, high: float) -> Any:
    """Return where values lie between two ends, in percent."""
    return np.round(100 * (value - low) / ((high - low) or 1.0), 3)


# --- scores -------------------------------------------------------------------------


@dataclass(frozen=True)
class Bin:
    """One bar: its left edge and width, in percent, and how many it holds."""

    left: float
    width: float
    words: str


@dataclass(frozen=True)
class Histogram:
    """Shares of two groups by score, and the threshold."""

    positive: str
    """Outline as an SVG path in a box of 100×100."""
    unlabeled: str
    bins: list[Bin]
    ticks: list[Tick]
    threshold: float
    threshold_label: str
    n_positive: int
    n_unlabeled: int


def histogram(
    positive: FloatArray, unlabeled: FloatArray, threshold: float
) -> Histogram | None:
    """Return the bars of P and U; scores beyond the ends count in the last bars."""
    groups = [np.asarray(g, dtype=np.float64) for g in (positive, unlabeled)]
    finite = [g[np.isfinite(g)] for g in groups]
    if not any(map(len, finite)):
        return None
    edges = bin_edges([g for g in finite if len(g)], threshold)
    counts = [_counts(g, edges) for g in finite]
    shares = [c / max(1, len(g)) for c, g in zip(counts, finite, strict=True)]
    top = max(share.max() for share in shares) or 1.0
    step = 100 / (len(edges) - 1)
    bins = [
        Bin(
            i * step,
            step,
            f"score {number(float(edges[i]))} to {number(float(edges[i + 1]))}: "
            f"{n_p:,} labelled positives, {n_u:,} unlabelled",
        )
        for i, (n_p, n_u) in enumerate(zip(*counts, strict=True))
    ]
    return Histogram(
        _stairs(shares[0] / top),
        _stairs(shares[1] / top),
        bins,
        ticks(edges[0], edges[-1]),
        _place(threshold, edges[0], edges[-1]),
        number(threshold),
        len(positive),
        len(unlabeled),
    )


def bin_edges(groups: Sequence[FloatArray], threshold: float) -> FloatArray:
    """Return edges of bars, one of them at the threshold.

    A handful of extreme scores must not squeeze the rest into one bar, and few scores
    get few bars.
    """
    low = min(*(float(np.quantile(g, OUTSIDE)) for g in groups), threshold)
    high = max(*(float(np.quantile(g, 1 - OUTSIDE)) for g in groups), threshold)
    bins = min(MAX_BINS, 8 + int(1.5 * math.sqrt(min(map(len, groups)))))
    step = (high - low) / bins or max(abs(low), 1.0) / 10
    below = math.ceil((threshold - low) / step - 1e-9) + 1
    above = math.ceil((high - threshold) / step - 1e-9) + 1
    return threshold + step * np.arange(-below, above + 1)


def _counts(values: FloatArray, edges: FloatArray) -> Any:
    inside = np.clip(values, edges[0], np.nextafter(edges[-1], -np.inf))
    # A score at the threshold is not above it: bars are open on the left.
    at = np.searchsorted(edges, inside, side="left") - 1
    return np.bincount(np.maximum(at, 0), minlength=len(edges) - 1)


def _stairs(heights: FloatArray) -> str:
    """Return the outline of bars; where there are none, there is no line."""
    step = 100 / len(heights)
    parts, up = [], False
    for i, height in enumerate(heights):
        left, right = (f"{round(k * step, 3):g}" for k in (i, i + 1))
        if height > 0:
            parts += [] if up else [f"M{left} 100"]
            parts.append(f"V{round(100 - 96 * float(height), 2):g}H{right}")
        elif up:
            parts.append("V100")
        up = bool(height > 0)
    return "".join([*parts, *(["V100"] if up else [])])


# --- estimates with their intervals --------------------------------------------------


@dataclass(frozen=True)
class Whisker:
    """An estimate with its interval on a line from 0 to 100 %."""

    name: str
    meaning: str
    dot: float
    left: float
    width: float
    value: str
    interval: str
    how: str
    note: str
    main: bool


def whiskers(report: PUReport | None) -> list[Whisker]:
    """Return the figures that are shares."""
    made = []
    for figure in report or ():
        value, low, high = figure.value, figure.low, figure.high
        if figure.name == "lift" or not all(map(is_number, (value, low, high))):
            continue
        made.append(
            Whisker(
                *figure_words(figure.name),
                dot=round(100 * value, 2),
                left=round(100 * low, 2),
                width=round(100 * (high - low), 2),
                value=estimate(value),
                interval=percent_range(low, high),
                how=f"{readable(figure.name)} = {figure.how}",
                note=figure.note,
                main=figure.name in MAIN,
            )
        )
    return made


@dataclass(frozen=True)
class PriorChart:
    """Estimates of the share of positives as dots over its interval."""

    left: float
    width: float
    interval: str
    dots: list[tuple[str, float, str]]
    """Who says so, place in percent, value."""
    ticks: list[Tick]


def prior_chart(prior: Prior) -> PriorChart | None:
    """Return the share that was used, and what each estimator says."""
    if prior.value is None or prior.low is None or prior.high is None:
        return None
    found = {"used in this run": prior.value}
    found |= {estimator_words(name): v for name, v in prior.estimates.items()}
    end = min(1.0, 1.15 * max(prior.high, *found.values(), 1e-6))
    return PriorChart(
        round(100 * prior.low / end, 2),
        round(100 * (prior.high - prior.low) / end, 2),
        percent_range(prior.low, prior.high),
        [(name, round(100 * v / end, 2), percent(v)) for name, v in found.items()],
        [Tick(t.at, percent(end * t.at / 100)) for t in ticks(0.0, end, 4)],
    )


# --- lines --------------------------------------------------------------------------


@dataclass(frozen=True)
class LineChart:
    """Lines over one axis, and the numbers at its sides."""

    title: str
    lines: list[tuple[str, str]]
    """Name and SVG path in a box of 100×100."""
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    words: str


def curve_charts(curves: Sequence[Curve]) -> list[LineChart]:
    """Return one chart a training curve; those without two numbers are left out."""
    charts = []
    for curve in curves:
        known = [p for p in zip(curve.x, curve.y, strict=True) if is_number(p[1])]
        if len(known) < 2:
            continue
        x, y = np.array(known, dtype=np.float64).T
        title = f"{curve.name} · {curve.label}"
        charts.append(
            LineChart(
                title,
                [(title, _path(x, y, y.min(), y.max()))],
                ticks(x.min(), x.max(), 4),
                ticks(y.min(), y.max(), 3),
                f"{title}: from {number(float(y[0]))} to {number(float(y[-1]))} in "
                f"{len(x)} steps",
            )
        )
    return charts


def sensitivity_chart(rows: Sequence[IfShare]) -> LineChart | None:
    """Return precision and recall over the share of positives."""
    if len(rows) < 3:
        return None
    ordered = sorted(rows, key=lambda row: row.prior)
    x = np.array([row.prior for row in ordered])
    named = {
        "calls that are right": [row.precision for row in ordered],
        "positives found": [row.recall for row in ordered],
    }
    lines = [
        (name, _path(x, np.array(y, dtype=np.float64), 0, 1))
        for name, y in named.items()
    ]
    low, high = float(x[0]), float(x[-1])
    marks = [
        Tick(t.at, percent(low + t.at / 100 * (high - low)))
        for t in ticks(low, high, 4)
    ]
    words = "Estimated quality by the assumed share of positives"
    sides = [Tick(v, percent(v / 100)) for v in (0, 50, 100)]
    return LineChart(words, lines, marks, sides, words)


def _path(x: FloatArray, y: FloatArray, low: float, high: float) -> str:
    """Return a line as an SVG path in a box of 100×100; gaps stay gaps."""
    if len(x) > MOST_POINTS:
        keep = np.unique(np.linspace(0, len(x) - 1, MOST_POINTS).astype(int))
        x, y = x[keep], y[keep]
    left = _place(x, x[0], x[-1])
    height = _place(y, low, high) if low != high else np.full(len(y), 50.0)
    parts, pen = [], "M"
    for a, b in zip(left, height, strict=True):
        if math.isfinite(b):
            parts.append(f"{pen}{a:g} {round(100 - b, 3):g}")
        pen = "L" if math.isfinite(b) else "M"
    return "".join(parts)
