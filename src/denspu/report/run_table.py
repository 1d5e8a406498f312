"""The rows of the item table, as columns of plain data for the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from denspu._typing import IntArray
from denspu.report.run_items import Shower
from denspu.report.text import clean, whole
from denspu.report.words import noun
from denspu.runs.facts import RunFacts, RunRows

MOST = 20_000
"""Rows in the page; the others are in scores.csv."""
COLUMNS = 3
"""Columns of a table shown beside the score."""


@dataclass(frozen=True)
class ItemTable:
    """Columns of the item table, and a sentence on what is in it."""

    data: dict[str, Any]
    sentence: str


def item_table(
    facts: RunFacts, rows: RunRows, shower: Shower, most: int | None = None
) -> ItemTable:
    """Return the items by rank; of many, the highest and those near the threshold."""
    limit = MOST if most is None else most
    at = _chosen(rows, facts.threshold.value, limit)
    words, stage = np.unique(
        np.array([str(rows.stage[i]) for i in at], dtype=np.str_), return_inverse=True
    )
    items = rows.unlabeled
    extra = [
        {
            "name": clean(str(name)),
            "values": [shower.cell(items, name, i) for i in at],
            "right": clean(str(name)) in shower.numeric,
        }
        for name in shower.columns[:COLUMNS]
    ]
    if shower.kind == "text":
        lines = [shower.line(items, i) for i in at]
        extra.append({"name": "Text", "values": lines, "right": False, "long": True})
    data = {
        "rank": [int(rows.rank[i]) for i in at],
        "item": [shower.name(items, i) for i in at],
        "score": [_rounded(rows.score_unlabeled[i], shower.decimals) for i in at],
        "decimals": shower.decimals,
        "chance": [_digits(rows.probability[i], 4) for i in at],
        "decision": [int(rows.decision[i]) for i in at],
        "stage": [int(k) for k in stage],
        "stages": [clean(w) for w in words.tolist()],
        "extra": extra,
    }
    return ItemTable(data, _sentence(facts, len(at), len(items), limit))


def _chosen(rows: RunRows, threshold: float, most: int) -> IntArray:
    """Return positions by rank; half of the limit is kept for the threshold."""
    best = np.argsort(rows.rank, kind="stable")
    if len(best) <= most:
        return best
    top = best[: most // 2]
    gap = np.abs(rows.score_unlabeled - threshold)
    gap[top] = np.inf
    near = np.argsort(gap, kind="stable")[: most - len(top)]
    both = np.r_[top, near]
    return both[np.argsort(rows.rank[both], kind="stable")]


def _digits(value: Any, digits: int) -> float | None:
    number = float(value)
    return float(f"{number:.{digits}g}") if np.isfinite(number) else None


def _rounded(value: Any, decimals: int) -> float | None:
    number = float(value)
    return round(number, decimals) + 0.0 if np.isfinite(number) else None


def _sentence(facts: RunFacts, shown: int, n: int, most: int) -> str:
    things = noun(facts.kind, n)
    if shown == n:
        return f"All {whole(n)} unlabelled {things}." if n > 1 else ""
    return (
        f"This page holds {whole(shown)} of {whole(n)} unlabelled {things}: the "
        f"{whole(most // 2)} with the highest scores and those nearest the threshold. "
        "All of them are in scores.csv."
    )
