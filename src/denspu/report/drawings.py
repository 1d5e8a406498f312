"""Geometry of the page's charts, in shares of their width and height.

The page draws bars and lines as SVG that stretches, and words as HTML that does not: so
both are sharp and readable on a phone and on a wide screen. Each chart is a dictionary
for the template; places are in percent, paths in a box of 100×100.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from denspu._typing import FloatArray
from denspu.report.text import is_number, number, percent
from denspu.runs.facts import Curve, IfShare

Chart = dict[str, Any]

MAX_BINS = 48
OUTSIDE = 0.004
"""Share of the scores that may lie beyond each end of a histogram."""
MOST_POINTS = 400
"""Points of a line; longer ones are thinned."""


def ticks(low: float, high: float, most: int = 5) -> list[Chart]:
    """Return round numbers between two ends, each with its place."""
    width = high - low
    if not width > 0 or not math.isfinite(width):
        return [{"at": 50.0, "label": number(low)}]
    raw = width / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= raw)
    places = max(0, -math.floor(math.log10(step)))
    values = [
        step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1)
    ]
    return [
        {"at": _place(v, low, high), "label": f"{v + 0.0:,.{places}f}"} for v in values
    ]


def percent_ticks(low: float, high: float) -> list[Chart]:
    """Return round shares between two ends."""
    marks = ticks(low, high, 4)
    width = high - low
    return [m | {"label": percent(low + width * m["at"] / 100)} for m in marks]


def _place(value: Any, low: float, high: float) -> Any:
    return np.round(100 * (value - low) / ((high - low) or 1.0), 3)


# --- scores -------------------------------------------------------------------------


def histogram(
    positive: FloatArray, unlabeled: FloatArray, threshold: float
) -> Chart | None:
    """Return the bars of P and U; scores beyond the ends count in the last bars."""
    groups = [np.asarray(g, dtype=np.float64) for g in (positive, unlabeled)]
    finite = [g[np.isfinite(g)] for g in groups]
    if not any(map(len, finite)):
        return None
    edges = bin_edges([g for g in finite if len(g)], threshold)
    counts = []
    for group in finite:
        inside = np.clip(group, edges[0], np.nextafter(edges[-1], -np.inf))
        # A score at the threshold is not above it: bars are open on the left.
        at = np.maximum(np.searchsorted(edges, inside, side="left") - 1, 0)
        counts.append(np.bincount(at, minlength=len(edges) - 1))
    shares = [c / max(1, c.sum()) for c in counts]
    top = max(share.max() for share in shares)
    step = 100 / (len(edges) - 1)
    bins = [
        {
            "left": i * step,
            "width": step,
            "words": f"score {number(float(edges[i]))} to "
            f"{number(float(edges[i + 1]))}: {n_p:,} labelled positives, "
            f"{n_u:,} unlabelled",
        }
        for i, (n_p, n_u) in enumerate(zip(*counts, strict=True))
    ]
    return {
        "positive": _stairs(shares[0] / top),
        "unlabeled": _stairs(shares[1] / top),
        "bins": bins,
        "ticks": ticks(edges[0], edges[-1]),
        "threshold": _place(threshold, edges[0], edges[-1]),
        "threshold_label": number(threshold),
        "n_positive": len(positive),
        "n_unlabeled": len(unlabeled),
    }


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


def _stairs(heights: FloatArray) -> str:
    """Return the outline of bars; where there are none, there is no line."""
    step, path, up = 100 / len(heights), "", False
    for i, height in enumerate(heights):
        left, right = (f"{round(k * step, 3):g}" for k in (i, i + 1))
        if height > 0:
            path += "" if up else f"M{left} 100"
            path += f"V{round(100 - 96 * float(height), 2):g}H{right}"
        elif up:
            path += "V100"
        up = bool(height > 0)
    return f"{path}V100" if up else path


# --- lines --------------------------------------------------------------------------


def curve_charts(curves: Sequence[Curve]) -> list[Chart]:
    """Return one chart a training curve; those without two numbers are left out."""
    charts = []
    for curve in curves:
        known = [p for p in zip(curve.x, curve.y, strict=True) if is_number(p[1])]
        if len(known) < 2:
            continue
        x, y = np.array(known, dtype=np.float64).T
        title = f"{curve.name} · {curve.label}"
        ends = f"from {number(float(y[0]))} to {number(float(y[-1]))}"
        charts.append(
            {
                "title": title,
                "lines": [(title, _path(x, y, y.min(), y.max()))],
                "x_ticks": ticks(x.min(), x.max(), 4),
                "y_ticks": ticks(y.min(), y.max(), 3),
                "words": f"{title}: {ends} in {len(x)} steps",
            }
        )
    return charts


def sensitivity_chart(rows: Sequence[IfShare]) -> Chart | None:
    """Return precision and recall over the share of positives."""
    if len(rows) < 3:
        return None
    ordered = sorted(rows, key=lambda row: row.prior)
    x = np.array([row.prior for row in ordered])
    right = np.array([row.precision for row in ordered], dtype=np.float64)
    found = np.array([row.recall for row in ordered], dtype=np.float64)
    return {
        "lines": [
            ("calls that are right", _path(x, right, 0, 1)),
            ("positives found", _path(x, found, 0, 1)),
        ],
        "x_ticks": percent_ticks(float(x[0]), float(x[-1])),
        "y_ticks": [{"at": v, "label": percent(v / 100)} for v in (0, 50, 100)],
        "words": "Estimated quality by the assumed share of positives",
    }


def _path(x: FloatArray, y: FloatArray, low: float, high: float) -> str:
    """Return a line as an SVG path; gaps stay gaps."""
    if len(x) > MOST_POINTS:
        keep = np.unique(np.linspace(0, len(x) - 1, MOST_POINTS).astype(int))
        x, y = x[keep], y[keep]
    height = _place(y, low, high) if low != high else np.full(len(y), 50.0)
    path, pen = "", "M"
    for a, b in zip(_place(x, x[0], x[-1]), height, strict=True):
        if math.isfinite(b):
            path += f"{pen}{a:g} {round(100 - b, 3):g}"
        pen = "L" if math.isfinite(b) else "M"
    return path
