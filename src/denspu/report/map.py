"""The page's map of the embeddings: which points are drawn, and what each one tells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._typing import FloatArray, IntArray
from denspu.report.items import Shower, data_uri
from denspu.report.text import chance, short_name, shorten, whole
from denspu.runs.facts import RunRows

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
