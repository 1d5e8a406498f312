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
from numpy.typing import NDArray

from denspu._progress import (
    chance,
    is_number,
    number,
    percent,
    short_name,
    shorten,
    whole,
)
from denspu._typing import FloatArray, IntArray
from denspu.report.items import Shower, data_uri
from denspu.runs.folder import Curve, IfShare, RunRows

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


# --- the map ------------------------------------------------------------------------

MOST, MOST_POSITIVE = 2_000, 600
"""Points drawn, and labelled positives among them."""
WIDTH, MARGIN = 1_000, 0.04
FLATTEST, TALLEST = 0.45, 0.65
"""Height over width."""
CELLS = 4
"""Columns of a table that a point tells."""
SIDE, SHEET = 48, 40
"""Side in pixels of a picture on the sheet behind the map, and pictures in a row."""
ROLES = {
    "rejected": "called negative",
    "called": "called positive",
    "chosen": "taken as negative to learn from",
    "positive": "labelled positive",
    "odd": "labelled positive that looks odd",
}
"""The lowest layer first."""


def make_map(rows: RunRows, shower: Shower) -> dict[str, Any] | None:
    """Return the drawing and the data behind it; None where there is no embedding."""
    if rows.map_positive is None or rows.map_unlabeled is None:
        return None
    rng = np.random.default_rng(0)
    p = _by_lot(rows.map_positive, MOST_POSITIVE, rng, rows.odd_positive)
    u = _by_lot(rows.map_unlabeled, MOST - len(p), rng)
    if not len(p) + len(u):
        return None
    odd, chosen = set(map(int, rows.odd_positive)), set(map(int, rows.chosen))
    points = []
    for i in p.tolist():
        score = f"score {shower.score(rows.score_positive[i])}"
        role = "odd" if i in odd else "positive"
        points.append((role, rows.positive, i, score, rows.map_positive[i]))
    for i in u.tolist():
        score = f"score {shower.score(rows.score_unlabeled[i])}"
        score += f", chance {chance(float(rows.probability[i]))}"
        role = "called" if rows.decision[i] else "rejected"
        role = "chosen" if i in chosen else role
        points.append((role, rows.unlabeled, i, score, rows.map_unlabeled[i]))
    points.sort(key=lambda point: list(ROLES).index(point[0]))
    roles, items, at, scores, places = zip(*points, strict=True)
    spots, height = _placed(np.array(places, dtype=np.float64))
    x, y = np.round(spots, 1).T.tolist()
    both = list(zip(items, at, strict=True))
    n_p, n_u = len(rows.positive), len(rows.unlabeled)
    drawn = "All items are drawn."
    if len(points) < n_p + n_u:
        drawn = (
            f"Drawn by lot: {whole(len(p))} of {whole(n_p)} labelled positives and "
            f"{whole(len(u))} of {whole(n_u)} unlabelled items."
        )
    return {
        "height": height,
        "radius": round(float(np.clip(120 / np.sqrt(len(points)), 3.6, 7)), 1),
        "layers": [
            {
                "role": role,
                "label": label,
                "points": [(x[i], y[i]) for i, r in enumerate(roles) if r == role],
            }
            for role, label in ROLES.items()
            if role in roles
        ],
        "drawn": drawn,
        "data": {
            "x": x,
            "y": y,
            "role": roles,
            "height": height,
            "labels": ROLES,
            "columns": [str(c) for c in shower.columns[:CELLS]],
            "row": SHEET,
            "name": [shorten(short_name(one.ids[i]), 90) for one, i in both],
            "text": [shower.line(one, i, 160) for one, i in both],
            "cells": [shower.cells(one, i)[:CELLS] for one, i in both],
            "score": scores,
        },
        "sheet": _sheet([shower.pixels(one, i) for one, i in both])
        if shower.shows == "picture"
        else "",
    }


def _by_lot(
    places: FloatArray,
    most: int,
    rng: np.random.Generator,
    always: IntArray | tuple[()] = (),
) -> IntArray:
    """Return positions with finite places: some always, others by lot."""
    known = np.flatnonzero(np.isfinite(np.asarray(places, dtype=float)).all(axis=1))
    if len(known) <= most:
        return known
    first = np.intersect1d(np.asarray(always[:most], dtype=np.int64), known)
    others = np.setdiff1d(known, first)
    lot = rng.choice(others, most - len(first), replace=False)
    return np.sort(np.r_[first, lot])


def _placed(points: FloatArray) -> tuple[FloatArray, int]:
    """Return places in the drawing, one scale for both directions, and its height."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = high - low
    wide = max(float(size[0]), float(size[1]) / TALLEST) or 1.0
    tall = min(max(float(size[1]), FLATTEST * wide), TALLEST * wide)
    scale = WIDTH * (1 - 2 * MARGIN) / wide
    height = round(scale * tall + 2 * MARGIN * WIDTH)
    from_center = (points - (low + high) / 2) * (scale, -scale)
    return np.array([WIDTH, height]) / 2 + from_center, height


def _sheet(images: list[NDArray[np.uint8]]) -> str:
    """Return small pictures on one sheet, ``SHEET`` in a row, as a data URI."""
    from PIL import Image

    size = (SIDE * min(len(images), SHEET), SIDE * -(-len(images) // SHEET))
    page = Image.new("L" if images[0].ndim == 2 else "RGB", size)
    for i, pixels in enumerate(images):
        small = Image.fromarray(pixels)
        scale = SIDE / max(small.size)
        sides = [max(1, round(scale * side)) for side in small.size]
        small = small.resize(sides, Image.Resampling.BICUBIC)
        left, top = SIDE * (i % SHEET), SIDE * (i // SHEET)
        page.paste(small, (left + (SIDE - sides[0]) // 2, top + (SIDE - sides[1]) // 2))
    return data_uri(page, lossless=False)
