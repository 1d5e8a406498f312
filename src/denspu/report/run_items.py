"""How one item is shown: a picture, an excerpt, its telling columns, its neighbours."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from denspu._typing import FloatArray, IntArray
from denspu.data import Items
from denspu.report.run_thumbs import Brightness, Picture, picture
from denspu.report.text import clean, number, shorten
from denspu.runs.facts import RunFacts, RunRows

EXCERPT = 220
"""Characters of a text in a gallery."""
WHOLE = 4_000
"""Characters of a text that folds out."""
LINE = 110
"""Characters of a text in the table of items and on the map."""
NAME = 200
"""Characters of a name; longer ones are cut in the middle."""
CELL = 60
TELLING = 6
"""Columns of a table shown in a gallery."""
LOOKED_AT = 5_000
"""Rows of each side by which telling columns are chosen."""
NEIGHBOURS = 3


@dataclass(frozen=True)
class Card:
    """One item in a gallery."""

    name: str
    score: str
    chance: str
    """P(y = 1) in words; empty for labelled positives."""
    decision: str
    """``positive``, ``negative`` or ``labelled``."""
    stage: str
    picture: Picture | None = None
    text: str = ""
    rest: str = ""
    """The whole text, where the excerpt is not all of it."""
    cells: list[str] = field(default_factory=list)
    near: list[str] = field(default_factory=list)


class Shower:
    """Knows how to show the items of one run."""

    def __init__(self, facts: RunFacts, rows: RunRows) -> None:
        self.kind = facts.kind
        self.rows = rows
        self.columns: list[str] = []
        if self.kind == "image":
            self.brightness = Brightness.of(rows.positive.X, rows.unlabeled.X)
        elif self.kind == "table":
            self.columns = telling_columns(rows)
        self.decimals = decimals(rows.score_unlabeled)
        self.numeric = [
            clean(str(name))
            for name in self.columns
            if rows.unlabeled.X[name].to_numpy().dtype.kind in "biuf"
        ]

    def name(self, items: Items, i: int) -> str:
        """Return an item's name, cut in the middle if it is very long."""
        return short_name(items.ids[i])

    def score(self, value: Any) -> str:
        """Return a score with as many decimals as all the others."""
        number = round(float(value), self.decimals) + 0.0
        return f"{number:,.{self.decimals}f}" if np.isfinite(number) else "–"

    def picture(self, items: Items, i: int) -> Picture | None:
        """Return an image's picture; None for other kinds."""
        if self.kind != "image":
            return None
        return picture(np.asarray(items.X[i]), self.brightness)

    def text(self, items: Items, i: int) -> str:
        """Return a whole text, up to a limit; empty for other kinds."""
        if self.kind != "text":
            return ""
        return clean(str(items.X[i])[: 2 * WHOLE])

    def line(self, items: Items, i: int, length: int = LINE) -> str:
        """Return the beginning of a text as one line; empty for other kinds."""
        if self.kind != "text":
            return ""
        return shorten(clean(str(items.X[i])[: 4 * length]), length)

    def cells(self, items: Items, i: int) -> list[str]:
        """Return a row's values in the telling columns; empty for other kinds."""
        return [self.cell(items, name, i) for name in self.columns]

    def cell(self, items: Items, name: str, i: int) -> str:
        """Return one value of a table; days since 1970 as a date."""
        value, kind = items.X[name][i], items.plan.get("columns", {}).get(name, "")
        if (kind == "date" or "%" in kind) and value is not None and value == value:
            return as_date(float(value))
        return cell(value)

    def near(self, items: Items, i: int) -> list[str]:
        """Return the nearest labelled positives of an embedding, by name."""
        if self.kind != "embedding":
            return []
        P = np.asarray(self.rows.positive.X, dtype=np.float64)
        distance = np.linalg.norm(P - np.asarray(items.X[i], dtype=np.float64), axis=1)
        if items is self.rows.positive:
            distance[i] = np.inf
        order = np.argsort(distance, kind="stable")[:NEIGHBOURS]
        near = [j for j in order if np.isfinite(distance[j])]
        return [self.name(self.rows.positive, j) for j in near]


def decimals(scores: FloatArray) -> int:
    """Return how many decimals tell scores apart: four digits of their spread.

    Examples
    --------
    >>> decimals(np.array([-20.0, 14.5])), decimals(np.array([0.1, 0.9]))
    (2, 4)
    """
    known = np.asarray(scores, dtype=np.float64)
    known = known[np.isfinite(known)]
    spread = float(known.max() - known.min()) if len(known) else 0.0
    if not spread > 0:
        return 2
    return int(np.clip(4 - np.ceil(np.log10(spread)), 0, 9))


def short_name(name: Any) -> str:
    """Return a name on one line, of at most ``NAME`` characters."""
    text = " ".join(clean(str(name)).split())
    half = NAME // 2
    return text if len(text) <= NAME else f"{text[:half]}…{text[-half + 1 :]}"


def cell(value: Any) -> str:
    """Return a value of a table as a short text; a gap as a dash."""
    if value is None or value != value:
        return "–"
    if isinstance(value, int | float | np.integer | np.floating):
        return number(float(value), 4)
    return shorten(clean(str(value)), CELL)


def as_date(days: float) -> str:
    """Return days since 1970-01-01 as a date, with the time where there is one."""
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(days=days)
    except (OverflowError, ValueError):
        return number(days, 4)
    return f"{moment:%Y-%m-%d}" if days % 1 == 0 else f"{moment:%Y-%m-%d %H:%M}"


def telling_columns(rows: RunRows) -> list[str]:
    """Return the columns that tell positives from the rest of U best.

    Numbers by their AUC, words by the difference of their shares.
    """
    P, U = rows.positive.X, rows.unlabeled.X
    rest = np.flatnonzero(rows.decision == 0)
    if not len(rest):
        rest = np.arange(len(rows.unlabeled))
    p, u = _some(np.arange(len(rows.positive))), _some(rest)
    names = list(P.columns)
    strength = [_telling(_take(P, n, p), _take(U, n, u)) for n in names]
    order = np.argsort(-np.array(strength), kind="stable")
    return [names[i] for i in order[:TELLING]]


def _some(positions: IntArray) -> IntArray:
    step = max(1, len(positions) // LOOKED_AT)
    return positions[::step][:LOOKED_AT]


def _take(table: Any, name: str, positions: IntArray) -> NDArray[Any]:
    return np.asarray(table[name].to_numpy())[positions]


def _telling(p: NDArray[Any], u: NDArray[Any]) -> float:
    if not len(p) or not len(u):
        return 0.0
    if p.dtype.kind in "biuf" and u.dtype.kind in "biuf":
        return _distance(p.astype(np.float64), u.astype(np.float64))
    words = {str(v) for v in (*p, *u)}
    if len(words) > 200:
        return 0.0
    shares = [{w: (g.astype(str) == w).mean() for w in words} for g in (p, u)]
    return float(sum(abs(shares[0][w] - shares[1][w]) for w in words) / 2)


def _distance(p: FloatArray, u: FloatArray) -> float:
    """Return how far the AUC is from chance, on a scale from 0 to 1."""
    p, u = p[np.isfinite(p)], u[np.isfinite(u)]
    if not len(p) or not len(u):
        return 0.0
    ranks = rankdata(np.r_[p, u])[: len(p)].sum()
    auc = (ranks - len(p) * (len(p) + 1) / 2) / (len(p) * len(u))
    return float(2 * abs(auc - 0.5))
