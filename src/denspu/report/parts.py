"""Parts of a run's page: items, galleries, the table of items, charts and the map.

The page draws bars and lines as SVG that stretches, and words as HTML that does not: so
both are sharp and readable on a phone and on a wide screen. Each chart is a dictionary
for the template; places are in percent, paths in a box of 100×100.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from denspu._progress import (
    chance,
    clean,
    is_number,
    number,
    percent,
    short_name,
    shorten,
    whole,
)
from denspu._typing import FloatArray, IntArray
from denspu.data.kinds import Items, kind_of
from denspu.data.kinds.table import cell_words
from denspu.report.words import noun
from denspu.runs.folder import Curve, IfShare, RunFacts, RunRows

Chart = dict[str, Any]

EXCERPT, WHOLE = 220, 4_000
"""Characters of a text in a gallery: at once, and folded out."""
LINE = 110
"""Characters of a text in the table of items."""
TELLING = 6
"""Columns of a table shown in a gallery."""
LOOKED_AT = 5_000
"""Rows of each side, about, by which telling columns are chosen."""
MOST_TYPICAL = 12
"""Labelled positives shown as the most typical ones."""
GALLERY = 24
"""Items in a gallery, at most."""
MOST_ROWS = 20_000
"""Rows in the page; the others are in scores.csv."""
SIDE = 128
"""Longer side in pixels of a picture in a gallery."""


# --- one item -----------------------------------------------------------------------


class Shower:
    """Knows how to show the items of one run."""

    def __init__(self, facts: RunFacts, rows: RunRows) -> None:
        self.kind = kind_of(facts.kind)
        self.shows = self.kind.shows
        self.rows = rows
        self.decimals = decimals(rows.score_unlabeled)
        self.columns: list[str] = []
        self.numeric: list[str] = []
        if self.shows == "picture":
            self.brightness = brightness_of(rows.positive.X, rows.unlabeled.X)
        elif self.shows == "cells":
            X = rows.unlabeled.X
            self.columns = telling_columns(rows)
            of_numbers = [n for n in self.columns if _is_numeric(X[n].to_numpy())]
            self.numeric = [clean(str(name)) for name in of_numbers]

    def score(self, value: Any) -> str:
        """Return a score with as many decimals as all the others."""
        near = round(float(value), self.decimals) + 0.0
        return f"{near:,.{self.decimals}f}" if np.isfinite(near) else "–"

    def pixels(self, items: Items, i: int) -> NDArray[np.uint8]:
        """Return an image in 8 bits."""
        return in_8_bits(self.kind.picture(items.X[i]), *self.brightness)

    def text(self, items: Items, i: int, length: int = 2 * WHOLE) -> str:
        """Return the beginning of a text; empty for other kinds."""
        if self.shows != "text":
            return ""
        return clean(self.kind.text(items.X[i])[:length])

    def line(self, items: Items, i: int, length: int) -> str:
        """Return the beginning of a text as one line; empty for other kinds."""
        return shorten(self.text(items, i, 4 * length), length)

    def cells(self, items: Items, i: int) -> list[str]:
        """Return a row's values in the telling columns; empty for other kinds."""
        return [self.cell(items, name, i) for name in self.columns]

    def cell(self, items: Items, name: str, i: int) -> str:
        """Return one value of a table."""
        kind = items.plan.get("columns", {}).get(name, "")
        return cell_words(items.X[name][i], kind)

    def near(self, items: Items, i: int) -> list[str]:
        """Return the nearest labelled positives of an embedding, by name."""
        if self.shows != "neighbours":
            return []
        P = np.asarray(self.rows.positive.X, dtype=np.float64)
        distance = np.linalg.norm(P - np.asarray(items.X[i], dtype=np.float64), axis=1)
        if items is self.rows.positive:
            distance[i] = np.inf
        near = [j for j in np.argsort(distance)[:3] if np.isfinite(distance[j])]
        return [short_name(self.rows.positive.ids[j]) for j in near]


def decimals(scores: FloatArray) -> int:
    """Return how many decimals tell scores apart: four digits of their spread."""
    known = np.asarray(scores, dtype=np.float64)
    known = known[np.isfinite(known)]
    spread = float(known.max() - known.min()) if len(known) else 0.0
    if not spread > 0:
        return 2
    return int(np.clip(4 - np.ceil(np.log10(spread)), 0, 9))


# --- columns of a table --------------------------------------------------------------


def telling_columns(rows: RunRows) -> list[str]:
    """Return the columns that tell positives from the rest of U best.

    Numbers by their AUC, words by the difference of their shares.
    """
    P, U = rows.positive.X, rows.unlabeled.X
    rest = np.flatnonzero(rows.decision == 0)
    if not len(rest):
        rest = np.arange(len(rows.unlabeled))
    p = np.arange(len(rows.positive))[:: max(1, len(rows.positive) // LOOKED_AT)]
    u = rest[:: max(1, len(rest) // LOOKED_AT)]
    strength = {n: _telling(P[n].to_numpy()[p], U[n].to_numpy()[u]) for n in P.columns}
    return sorted(strength, key=lambda name: -strength[name])[:TELLING]


def _telling(p: NDArray[Any], u: NDArray[Any]) -> float:
    """Return how far a column parts two groups, from 0 to 1."""
    if _is_numeric(p) and _is_numeric(u):
        p, u = (np.asarray(g, dtype=np.float64) for g in (p, u))
        p, u = p[np.isfinite(p)], u[np.isfinite(u)]
        if not len(p) or not len(u):
            return 0.0
        test = mannwhitneyu(p, u, method="asymptotic")
        return float(2 * abs(test.statistic / (len(p) * len(u)) - 0.5))
    words = {str(v) for v in (*p, *u)}
    if len(words) > 200:  # free text, which tells nothing
        return 0.0
    ours, theirs = p.astype(str), u.astype(str)
    return sum(abs((ours == w).mean() - (theirs == w).mean()) for w in words) / 2


def _is_numeric(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "biuf"


# --- pictures -----------------------------------------------------------------------


def brightness_of(*images: Any) -> tuple[float, float]:
    """Return what is black and what is white, for all images alike.

    8 bits are as they are; others are judged by the range of some 200 images.
    """
    arrays = [np.asarray(X) for X in images if len(X)]
    if all(X.dtype == np.uint8 for X in arrays):
        return 0.0, 255.0
    picked = [X[:: max(1, len(X) // 200)].astype(np.float64) for X in arrays]
    pixels = np.concatenate([p.ravel() for p in picked])
    pixels = pixels[np.isfinite(pixels)]
    if not len(pixels):
        return 0.0, 1.0
    low, high = np.percentile(pixels, (0.5, 99.5))  # a few pixels may be wild
    if low == high:
        low, high = pixels.min(), pixels.max()
    return float(low), float(high)


def in_8_bits(image: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """Return one image as H×W or H×W×3 bytes."""
    if image.ndim == 3:
        image = image[..., :3] if image.shape[-1] in (3, 4) else image[..., 0]
    if image.dtype == np.uint8:
        return np.ascontiguousarray(image)
    light = np.nan_to_num((image.astype(np.float64) - low) / ((high - low) or 1.0))
    return np.round(255 * np.clip(light, 0, 1)).astype(np.uint8)


def picture(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    """Return one image for an ``img`` element, made smaller where it is large."""
    from PIL import Image

    made = Image.fromarray(pixels)
    tiny = max(made.size) < SIDE // 2  # its pixels are better shown as squares
    made.thumbnail((SIDE, SIDE))
    uri = data_uri(made, lossless=tiny)
    return {"uri": uri, "width": made.width, "height": made.height, "tiny": tiny}


def data_uri(image: Any, *, lossless: bool) -> str:
    """Return a data URI: PNG for tiny pictures, else WebP."""
    kind = "png" if lossless else "webp"
    options: dict[str, Any] = {"optimize": True} if lossless else {"quality": 72}
    buffer = BytesIO()
    image.save(buffer, format=kind.upper(), **options)
    return f"data:image/{kind};base64,{b64encode(buffer.getvalue()).decode()}"


# --- galleries ----------------------------------------------------------------------


def galleries(facts: RunFacts, rows: RunRows, shower: Shower) -> list[dict[str, Any]]:
    """Return the galleries that have something to show, in reading order."""
    things = noun(facts.kind)
    copies = {copy.unlabeled for copy in facts.copies}
    fresh = np.array([name not in copies for name in rows.unlabeled.ids], dtype=bool)
    called, best = rows.decision == 1, np.argsort(rows.rank, kind="stable")
    gap = np.abs(rows.score_unlabeled - facts.threshold.value)
    near = np.argsort(gap, kind="stable")[: GALLERY if len(gap) > 1 else 0]
    at_odds = (rows.probability[near] > 0.5) != called[near]
    # the highest score first: there an error would show
    chosen = np.asarray(rows.chosen, dtype=np.int64)
    chosen = chosen[np.argsort(rows.rank[chosen], kind="stable")]
    told = {
        "sure": (
            "Surest positives",
            "The highest scores of all."
            + (" Copies of labelled positives are left out." if copies else ""),
            best[called[best] & fresh[best]],
        ),
        "undecided": (
            "Undecided",
            "Here the model is least sure and a second look is worth most; the "
            "nearest to the threshold comes first."
            + (
                " The call follows the threshold and the chance is an estimate of its "
                "own; where they contradict each other, only a look decides."
                if at_odds.any()
                else ""
            ),
            near,
        ),
        "odd": (
            "Labelled positives that look odd",
            f"You labelled these {things} positive, but they look unlike the other "
            "positives. Check whether the label is right; the oddest comes first.",
            rows.odd_positive,
        ),
        "negatives": (
            "Surest negatives",
            "The lowest scores of all.",
            best[::-1][~called[best[::-1]]],
        ),
        "chosen": (
            "Chosen as negatives",
            f"{whole(len(chosen))} unlabelled {things} were taken as negatives to "
            "learn from (the paper's Ñ). A positive among them misleads the model; the "
            "likeliest comes first.",
            chosen,
        ),
    }
    return [
        {
            "key": key,
            "title": title,
            "sentence": sentence,
            "cards": [_card(rows, shower, int(i), key == "odd") for i in at[:GALLERY]],
            # a second look is worth most at these
            "first": 12 if key in ("undecided", "odd") else 6,
        }
        for key, (title, sentence, at) in told.items()
        if len(at)
    ]


def _card(rows: RunRows, shower: Shower, i: int, labelled: bool) -> dict[str, Any]:
    """Return how an item looks, and what is known of it."""
    if labelled:
        items, score = rows.positive, rows.score_positive[i]
        known = {"chance": "", "decision": "labelled"}
        apart = rows.held_out[i] and not rows.held_out.all()
        known["stage"] = "held out" if apart else ""
    else:
        items, score = rows.unlabeled, rows.score_unlabeled[i]
        known = {
            "chance": chance(float(rows.probability[i])),
            "decision": "positive" if rows.decision[i] else "negative",
            "stage": clean(str(rows.stage[i])),
        }
    text = shower.text(items, i)
    rest = ""
    if len(" ".join(text.split())) > EXCERPT:
        rest = text if len(text) <= WHOLE else text[:WHOLE].rstrip() + " …"
    pictured = shower.shows == "picture"
    return known | {
        "name": short_name(items.ids[i]),
        "score": shower.score(score),
        "picture": picture(shower.pixels(items, i)) if pictured else None,
        "text": shorten(text, EXCERPT),
        "rest": rest,
        "cells": shower.cells(items, i),
        "near": shower.near(items, i),
        "why": "" if labelled or shower.shows == "neighbours" else rows.why.get(i, ""),
        "like": [] if labelled else like_pictures(rows, shower, rows.near.get(i, [])),
    }


def like_pictures(
    rows: RunRows, shower: Shower, positives: Sequence[int]
) -> list[dict[str, Any]]:
    """Return pictures of labelled positives; none where items are no pictures."""
    if shower.shows != "picture":
        return []
    P = rows.positive
    return [
        picture(shower.pixels(P, i)) | {"name": short_name(P.ids[i])} for i in positives
    ]


# --- what tells positives from the rest ----------------------------------------------


def typical_positives(rows: RunRows, shower: Shower) -> list[dict[str, Any]]:
    """Return the labelled positives that most items called positive are like."""
    count = Counter(
        i for item, near in rows.near.items() if rows.decision[item] for i in near
    )
    best = count.most_common(MOST_TYPICAL)
    shown = like_pictures(rows, shower, [i for i, _ in best])
    return [one | {"n": n} for one, (_, n) in zip(shown, best, strict=False)]


# --- the table of items -------------------------------------------------------------


def item_table(
    facts: RunFacts, rows: RunRows, shower: Shower
) -> tuple[dict[str, Any], str]:
    """Return the items by rank for the script, and a sentence on what is shown.

    Of many items, those with the highest scores and those near the threshold.
    """
    items, at = rows.unlabeled, np.argsort(rows.rank, kind="stable")
    n, things = len(at), noun(facts.kind, len(at))
    sentence = f"All {whole(n)} unlabelled {things}." if n > 1 else ""
    if n > MOST_ROWS:
        top = at[: MOST_ROWS // 2]
        gap = np.abs(rows.score_unlabeled - facts.threshold.value)
        gap[top] = np.inf
        at = np.r_[top, np.argsort(gap, kind="stable")[: MOST_ROWS - len(top)]]
        at = at[np.argsort(rows.rank[at], kind="stable")]
        sentence = (
            f"This page holds {whole(len(at))} of {whole(n)} unlabelled {things}: the "
            f"{whole(len(top))} with the highest scores and those nearest the "
            "threshold. All of them are in scores.csv."
        )
    words, stage = np.unique(
        np.array([str(rows.stage[i]) for i in at], dtype=np.str_), return_inverse=True
    )
    extra: list[dict[str, Any]] = [
        {
            "name": clean(str(name)),
            "values": [shower.cell(items, name, i) for i in at],
            "right": clean(str(name)) in shower.numeric,
        }
        for name in shower.columns[:3]
    ]
    if shower.shows == "text":
        lines = [shower.line(items, i, LINE) for i in at]
        extra.append({"name": "Text", "values": lines, "right": False, "long": True})
    data = {
        "rank": rows.rank[at].tolist(),
        "item": [short_name(items.ids[i]) for i in at],
        "score": _numbers(np.round(rows.score_unlabeled[at], shower.decimals) + 0.0),
        "decimals": shower.decimals,
        "chance": _numbers([float(f"{p:.4g}") for p in rows.probability[at]]),
        "decision": rows.decision[at].tolist(),
        "stage": stage.tolist(),
        "stages": [clean(w) for w in words.tolist()],
        "extra": extra,
        "why": {k: rows.why[i] for k, i in enumerate(at.tolist()) if i in rows.why},
    }
    return data, sentence


def _numbers(values: Any) -> list[float | None]:
    """Return numbers for JSON, which knows no infinity."""
    return [float(v) if np.isfinite(v) else None for v in values]


# --- ticks and scores ----------------------------------------------------------------

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
SMALL, SHEET = 48, 40
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
    from PIL import Image, ImageOps

    size = (SMALL * min(len(images), SHEET), SMALL * -(-len(images) // SHEET))
    page = Image.new("L" if images[0].ndim == 2 else "RGB", size)
    for i, pixels in enumerate(images):
        small = ImageOps.pad(Image.fromarray(pixels), (SMALL, SMALL))
        page.paste(small, (SMALL * (i % SHEET), SMALL * (i // SHEET)))
    return data_uri(page, lossless=False)
