"""Geometry of the report's charts, in shares of their width and height.

The page draws bars and lines as SVG that stretches, and words as HTML that does not: so
both are sharp and readable on a phone and on a wide screen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from denspu._typing import FloatArray
from denspu.report.run_text import is_number, number, percent

MAX_BINS = 48
OUTSIDE = 0.004
"""Share of the scores that may lie beyond each end of the histogram."""
TICKS = 5
MOST_POINTS = 400
"""Points of a line; longer ones are thinned."""


@dataclass(frozen=True)
class Bin:
    """One bar: its left edge and width, in percent, and how many it holds."""

    left: float
    width: float
    words: str


@dataclass(frozen=True)
class Tick:
    """A number below (or beside) an axis, at a place in percent."""

    at: float
    label: str


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
    n_above: int


def histogram(
    positive: FloatArray, unlabeled: FloatArray, threshold: float
) -> Histogram | None:
    """Return the bars of P and U; scores beyond the ends count in the last bars."""
    groups = [_finite(positive), _finite(unlabeled)]
    groups = [g for g in groups if len(g)]
    if not groups:
        return None
    edges = _edges(groups, threshold)
    p, u = (_shares(_finite(g), edges) for g in (positive, unlabeled))
    top = max(p.max(), u.max()) or 1.0
    counts = zip(
        edges[:-1],
        edges[1:],
        np.round(p * len(positive)).astype(int),
        np.round(u * len(unlabeled)).astype(int),
        strict=True,
    )
    step = 100 / (len(edges) - 1)
    bins = [
        Bin(
            i * step,
            step,
            f"score {number(float(a))} to {number(float(b))}: "
            f"{n_p:,} labelled positives, {n_u:,} unlabelled",
        )
        for i, (a, b, n_p, n_u) in enumerate(counts)
    ]
    return Histogram(
        positive=_stairs(p / top),
        unlabeled=_stairs(u / top),
        bins=bins,
        ticks=ticks(edges[0], edges[-1]),
        threshold=_place(threshold, edges[0], edges[-1]),
        threshold_label=number(threshold),
        n_positive=len(positive),
        n_unlabeled=len(unlabeled),
        n_above=int((unlabeled > threshold).sum()),
    )


def _finite(values: FloatArray) -> FloatArray:
    values = np.asarray(values, dtype=np.float64)
    return values[np.isfinite(values)]


def _edges(groups: Sequence[FloatArray], threshold: float) -> FloatArray:
    """Return edges of bars, one of them at the threshold."""
    low = min(*(float(np.quantile(g, OUTSIDE)) for g in groups), threshold)
    high = max(*(float(np.quantile(g, 1 - OUTSIDE)) for g in groups), threshold)
    few = min(len(g) for g in groups)
    bins = min(MAX_BINS, 8 + int(1.5 * math.sqrt(few)))
    step = (high - low) / bins or max(abs(low), 1.0) / 10
    below = math.ceil((threshold - low) / step - 1e-9) + 1
    above = math.ceil((high - threshold) / step - 1e-9) + 1
    return threshold + step * np.arange(-below, above + 1)


def _shares(values: FloatArray, edges: FloatArray) -> FloatArray:
    if not len(values):
        return np.zeros(len(edges) - 1)
    inside = np.clip(values, edges[0], np.nextafter(edges[-1], -np.inf))
    # A score at the threshold is not above it: bars are open on the left.
    at = np.searchsorted(edges, inside, side="left") - 1
    counts = np.bincount(np.maximum(at, 0), minlength=len(edges) - 1)
    return counts[: len(edges) - 1] / len(values)


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


def _place(value: float, low: float, high: float) -> float:
    return round(100 * (value - low) / ((high - low) or 1.0), 3)


def ticks(low: float, high: float, most: int = TICKS) -> list[Tick]:
    """Return round numbers between two ends."""
    width = high - low
    if not width > 0 or not math.isfinite(width):
        return [Tick(50.0, number(low))]
    raw = width / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= raw)
    first = math.ceil(low / step)
    values = [step * k for k in range(first, math.floor(high / step) + 1)]
    digits = max(0, -math.floor(math.log10(step)))
    return [Tick(_place(v, low, high), f"{v + 0.0:,.{digits}f}") for v in values]


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
    """Shown at once; the others fold out."""


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    name: str
    path: str


@dataclass(frozen=True)
class LineChart:
    """Lines over one axis, and the numbers at its sides."""

    title: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    words: str


def curve_charts(curves: Sequence[Mapping[str, Any]]) -> list[LineChart]:
    """Return one chart a training curve; those without two numbers are left out."""
    charts = []
    for curve in curves:
        points = [
            (float(x), float(y))
            for x, y in zip(curve.get("x", []), curve.get("y", []), strict=False)
            if is_number(x) and is_number(y)
        ]
        if len(points) < 2:
            continue
        x, y = (np.array(v) for v in zip(*points, strict=True))
        name, label = str(curve.get("name", "")), str(curve.get("label", ""))
        title = " · ".join(dict.fromkeys(t for t in (name, label) if t))
        low, high = float(y.min()), float(y.max())
        words = (
            f"{title}: from {number(float(y[0]))} to {number(float(y[-1]))} in "
            f"{len(points)} steps"
        )
        charts.append(
            LineChart(
                title,
                [Line(title, _path(x, y, (x.min(), x.max()), (low, high)))],
                ticks(float(x.min()), float(x.max()), 4),
                ticks(low, high, 3),
                words,
            )
        )
    return charts


def sensitivity_chart(rows: Sequence[Mapping[str, float]]) -> LineChart | None:
    """Return precision and recall over the prior."""
    known = sorted(
        (r for r in rows if is_number(r.get("prior"))), key=lambda r: r["prior"]
    )
    if len(known) < 3:
        return None
    x = np.array([r["prior"] for r in known])
    lines = []
    named = (("precision", "calls that are right"), ("recall", "positives found"))
    for key, name in named:
        y = np.array([r.get(key, np.nan) for r in known], dtype=np.float64)
        if np.isfinite(y).sum() >= 2:
            lines.append(Line(name, _path(x, y, (x[0], x[-1]), (0.0, 1.0))))
    x_ticks = [Tick(t.at, percent(_back(t.at, x))) for t in ticks(x[0], x[-1], 4)]
    y_ticks = [Tick(v, percent(v / 100)) for v in (0, 50, 100)]
    words = "Estimated quality by the assumed share of positives"
    return LineChart(words, lines, x_ticks, y_ticks, words)


def _back(at: float, x: FloatArray) -> float:
    return float(x[0] + at / 100 * (x[-1] - x[0]))


def _path(
    x: FloatArray, y: FloatArray, across: tuple[Any, Any], up: tuple[float, float]
) -> str:
    """Return a line as an SVG path in a box of 100×100; gaps stay gaps."""
    if len(x) > MOST_POINTS:
        keep = np.unique(np.linspace(0, len(x) - 1, MOST_POINTS).astype(int))
        x, y = x[keep], y[keep]
    parts, pen = [], "M"
    flat = up[0] == up[1]
    for a, b in zip(x, y, strict=True):
        if not math.isfinite(b):
            pen = "M"
            continue
        height = 50.0 if flat else _place(float(b), *up)
        left = _place(float(a), float(across[0]), float(across[1]))
        parts.append(f"{pen}{left:g} {round(100 - height, 3):g}")
        pen = "L"
    return "".join(parts)
