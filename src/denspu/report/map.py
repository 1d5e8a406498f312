"""The page's map of the embeddings: which points are drawn, and what each one tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._typing import FloatArray, IntArray
from denspu.data import Items
from denspu.report.items import Shower, data_uri, pillow
from denspu.report.text import chance, shorten, whole
from denspu.runs.facts import RunRows

MOST, MOST_POSITIVE = 2_000, 600
"""Points drawn, and labelled positives among them."""
WIDTH, MARGIN = 1_000, 0.04
FLATTEST, TALLEST = 0.45, 0.65
"""Height over width."""
CELLS = 4
"""Columns of a table that a point tells."""
SIDE = 48
"""Side in pixels of a picture on the sheet behind the map."""
SHEET = 40
"""Pictures in a row of it."""
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


@dataclass(frozen=True)
class _Point:
    """An item that is drawn."""

    items: Items
    at: int
    role: str
    score: str


def make_map(rows: RunRows, shower: Shower) -> Map | None:
    """Return the map; None where there is no embedding."""
    if rows.map_positive is None or rows.map_unlabeled is None:
        return None
    rng = np.random.default_rng(0)
    p = _by_lot(rows.map_positive, MOST_POSITIVE, rng, rows.odd_positive)
    u = _by_lot(rows.map_unlabeled, MOST - len(p), rng)
    if not len(p) + len(u):
        return None
    points = _points(rows, shower, p, u)
    order = sorted(range(len(points)), key=lambda i: list(ROLES).index(points[i].role))
    points = [points[i] for i in order]
    places = np.concatenate([rows.map_positive[p], rows.map_unlabeled[u]])[order]
    spots, height = _placed(np.asarray(places, dtype=np.float64))
    x, y = np.round(spots, 1).T.tolist()
    data = {
        "x": x,
        "y": y,
        "role": [point.role for point in points],
        "height": height,
        "labels": ROLES,
        "columns": [str(c) for c in shower.columns[:CELLS]],
        "row": SHEET,
        "name": [shorten(shower.name(one.items, one.at), 90) for one in points],
        "text": [shower.line(one.items, one.at, 160) for one in points],
        "cells": [shower.cells(one.items, one.at)[:CELLS] for one in points],
        "score": [point.score for point in points],
    }
    images = []
    if shower.shows == "picture":
        images = [shower.pixels(one.items, one.at) for one in points]
    return Map(
        height=height,
        radius=round(float(np.clip(120 / np.sqrt(len(points)), 3.6, 7)), 1),
        layers=_layers(points, x, y),
        data=data,
        drawn=_drawn(len(p), len(rows.positive), len(u), len(rows.unlabeled)),
        sheet=_sheet(images),
    )


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


def _points(rows: RunRows, shower: Shower, p: IntArray, u: IntArray) -> list[_Point]:
    odd, chosen = set(map(int, rows.odd_positive)), set(map(int, rows.chosen))
    made = []
    for i in p.tolist():
        role = "odd" if i in odd else "positive"
        score = f"score {shower.score(rows.score_positive[i])}"
        made.append(_Point(rows.positive, i, role, score))
    for i in u.tolist():
        role = "called" if rows.decision[i] else "rejected"
        likely = chance(float(rows.probability[i]))
        score = f"score {shower.score(rows.score_unlabeled[i])}, chance {likely}"
        made.append(_Point(rows.unlabeled, i, "chosen" if i in chosen else role, score))
    return made


def _placed(points: FloatArray) -> tuple[FloatArray, int]:
    """Return places in the drawing, one scale for both directions, and its height."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = high - low
    wide = max(float(size[0]), float(size[1]) / TALLEST) or 1.0
    tall = min(max(float(size[1]), FLATTEST * wide), TALLEST * wide)
    scale = WIDTH * (1 - 2 * MARGIN) / wide
    height = round(scale * tall + 2 * MARGIN * WIDTH)
    down = np.array([1, -1])
    return np.array([WIDTH, height]) / 2 + scale * down * (
        points - (low + high) / 2
    ), height


def _layers(points: list[_Point], x: list[float], y: list[float]) -> list[Layer]:
    made = []
    for role, label in ROLES.items():
        at = [i for i, point in enumerate(points) if point.role == role]
        if at:
            made.append(Layer(role, label, [(x[i], y[i]) for i in at]))
    return made


def _sheet(images: list[NDArray[np.uint8]]) -> str:
    """Return small pictures on one sheet, ``SHEET`` in a row, as a data URI."""
    if not images:
        return ""
    Image = pillow()
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


def _drawn(p: int, n_p: int, u: int, n_u: int) -> str:
    if p == n_p and u == n_u:
        return "All items are drawn."
    return (
        f"Drawn by lot: {whole(p)} of {whole(n_p)} labelled positives and {whole(u)} "
        f"of {whole(n_u)} unlabelled items."
    )
