"""The map of the embeddings: which points are drawn, and what each one tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from denspu._typing import FloatArray, IntArray
from denspu.report.run_items import Shower
from denspu.report.run_thumbs import MAP_SIDE, SHEET, sheet
from denspu.report.text import chance, shorten, whole
from denspu.runs.facts import RunFacts, RunRows

MOST = 2_000
MOST_POSITIVE = 600
WIDTH = 1_000
FLATTEST, TALLEST = 0.45, 0.65
CELLS = 4
"""Columns of a table that a point tells."""
MARGIN = 0.04
ROLES = {
    "rejected": "called negative",
    "called": "called positive",
    "chosen": "taken as negative to learn from",
    "positive": "labelled positive",
    "odd": "labelled positive that looks odd",
}
"""The lowest layer first."""


@dataclass(frozen=True)
class Layer:
    """The points of one role."""

    role: str
    label: str
    points: list[tuple[float, float]]


@dataclass(frozen=True)
class Map:
    """A drawing of ``WIDTH`` by ``height``, and the data behind its points."""

    height: int
    radius: float
    layers: list[Layer]
    data: dict[str, Any]
    drawn: str
    sheet: str
    """Pictures of the points as one data URI; empty without pictures."""


def make_map(facts: RunFacts, rows: RunRows, shower: Shower) -> Map | None:
    """Return the map; None where there is no embedding."""
    if rows.map_positive is None or rows.map_unlabeled is None:
        return None
    rng = np.random.default_rng(0)
    odd = np.asarray(rows.odd_positive, dtype=np.int64)
    p = _by_lot(rows.map_positive, MOST_POSITIVE, rng, odd[:MOST_POSITIVE])
    u = _by_lot(rows.map_unlabeled, MOST - len(p), rng)
    if not len(p) + len(u):
        return None
    both = np.concatenate([rows.map_positive[p], rows.map_unlabeled[u]])
    places, height = _placed(np.asarray(both, dtype=np.float64))
    roles = _roles(rows, p, u)
    order = np.argsort([list(ROLES).index(r) for r in roles], kind="stable")
    told = [_told(rows, shower, p, u, int(i)) for i in order]
    data = {
        "x": [round(float(v), 1) for v in places[order, 0]],
        "y": [round(float(v), 1) for v in places[order, 1]],
        "role": [roles[i] for i in order],
        "height": height,
        "labels": ROLES,
        "columns": [str(c) for c in shower.columns[:CELLS]],
        "side": MAP_SIDE,
        "row": SHEET,
        **{key: [t[key] for t in told] for key in told[0]},
    }
    pictures = ""
    if shower.kind == "image":
        images = [_item(rows, p, u, int(i))[0] for i in order]
        pictures = sheet(images, shower.brightness)
    return Map(
        height=height,
        radius=radius(len(roles)),
        layers=_layers(places, roles),
        data=data,
        drawn=_drawn(len(p), len(rows.positive), len(u), len(rows.unlabeled)),
        sheet=pictures,
    )


def radius(n: int) -> float:
    """Return the size of a dot: the more of them, the smaller."""
    return round(float(np.clip(120 / np.sqrt(max(n, 1)), 3.6, 7)), 1)


def _by_lot(
    places: FloatArray,
    most: int,
    rng: np.random.Generator,
    always: IntArray | None = None,
) -> IntArray:
    """Return positions with finite places: some always, others by lot."""
    known = np.flatnonzero(np.isfinite(np.asarray(places, dtype=float)).all(axis=1))
    if len(known) <= most:
        return known
    first: IntArray = np.empty(0, dtype=np.int64)
    if always is not None:
        first = always[np.isin(always, known)][:most]
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
    center = (low + high) / 2
    across = WIDTH / 2 + scale * (points[:, 0] - center[0])
    down = height / 2 - scale * (points[:, 1] - center[1])
    return np.column_stack([across, down]), height


def _roles(rows: RunRows, p: IntArray, u: IntArray) -> list[str]:
    odd, chosen = set(map(int, rows.odd_positive)), set(map(int, rows.chosen))
    of_p = ["odd" if int(i) in odd else "positive" for i in p]
    of_u = [
        "chosen" if int(i) in chosen else "called" if rows.decision[i] else "rejected"
        for i in u
    ]
    return of_p + of_u


def _layers(places: FloatArray, roles: list[str]) -> list[Layer]:
    found = np.array(roles)
    return [
        Layer(
            role,
            label,
            [
                (round(float(x), 1), round(float(y), 1))
                for x, y in places[found == role]
            ],
        )
        for role, label in ROLES.items()
        if (found == role).any()
    ]


def _item(rows: RunRows, p: IntArray, u: IntArray, i: int) -> tuple[Any, Any, int]:
    """Return the content, the items and the position of the i-th drawn point."""
    items, at = (
        (rows.positive, int(p[i]))
        if i < len(p)
        else (rows.unlabeled, int(u[i - len(p)]))
    )
    content = np.asarray(items.X[at]) if items.kind == "image" else None
    return content, items, at


def _told(
    rows: RunRows, shower: Shower, p: IntArray, u: IntArray, i: int
) -> dict[str, Any]:
    _, items, at = _item(rows, p, u, i)
    labelled = i < len(p)
    score = rows.score_positive[at] if labelled else rows.score_unlabeled[at]
    known = "" if labelled else f", chance {chance(float(rows.probability[at]))}"
    return {
        "name": shorten(shower.name(items, at), 90),
        "text": shower.line(items, at, 160),
        "cells": shower.cells(items, at)[:CELLS],
        "score": f"score {shower.score(score)}{known}",
    }


def _drawn(p: int, n_p: int, u: int, n_u: int) -> str:
    if p == n_p and u == n_u:
        return "All items are drawn."
    return (
        f"Drawn by lot: {whole(p)} of {whole(n_p)} labelled positives and {whole(u)} "
        f"of {whole(n_u)} unlabelled items."
    )


__all__ = ["Layer", "Map", "make_map"]
