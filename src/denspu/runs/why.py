"""The column ``why``: whom an item is like, and what moved its score, in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from denspu._progress import clean, percent, short_name, shorten
from denspu._typing import FloatArray, IntArray
from denspu.data import Items
from denspu.data.kinds import kind_of
from denspu.data.kinds.table import cell_words, is_date
from denspu.methods._why import Explanation, Moved, explain
from denspu.runs.folder import RunRows, Tell

CALLED, UNDECIDED = 200, 100
"""Items that get a reason: those called positive with the highest scores, and those
nearest to the threshold."""
SCORED = 6_000
"""Scores spent on reasons: one for each item and column."""
FEWEST = 10
"""Undecided items that get a reason, however many columns there are."""

NEAREST, REASONS = 3, 3
NAMED = 2
"""Positives named in a sentence."""
LEAST = 0.1
"""Columns and words that count less than this part of the first are not named."""
COLUMNS, WORDS = 5, 12
"""Columns and words that tell positives from the rest."""


# --- which items ---------------------------------------------------------------------


def looked_at(scores: FloatArray, threshold: float, share: float = 1.0) -> IntArray:
    """Return positions of the items a person looks at: called, or undecided.

    Those of a part that hold for the whole are among those of the part. ``share`` of
    the usual number are enough.
    """
    n_called, n_near = (round(share * n) for n in (CALLED, UNDECIDED))
    best = np.argsort(-scores, kind="stable")[:n_called]
    best = best[~(scores[best] <= threshold)]  # a threshold not known yet calls all
    near = np.argsort(np.abs(scores - threshold), kind="stable")[:n_near]
    return np.union1d(best, near if np.isfinite(threshold) else best)


def columns_told(model: Any, kind: str) -> int:
    """Return how many columns could be told of; those of embeddings say nothing."""
    return 0 if kind_of(kind).is_embedding else len(model.memory_.typical or ())


def share_of_items(model: Any, kind: str) -> float:
    """Return which part of the usual number of items gets a reason; 0 for none."""
    if not hasattr(model, "memory_"):
        return 0.0
    usual = columns_told(model, kind) * (CALLED + UNDECIDED)
    return float(np.clip(SCORED / max(usual, 1), FEWEST / UNDECIDED, 1.0))


# --- reasons -------------------------------------------------------------------------


def explained(model: Any, items: Items) -> list[Explanation]:
    """Return the reasons of some items, with all columns."""
    if not len(items):
        return []
    return explain(model, items.X, NEAREST, columns_told(model, items.kind))


def names_of_positives(model: Any, ids: Sequence[str]) -> list[str]:
    """Return the names of the positives that a model remembers."""
    memory = getattr(model, "memory_", None)
    return [] if memory is None else [ids[i] for i in memory.rows]


class Watch:
    """Keeps, of items that come in parts, those that are to get a reason."""

    def __init__(
        self,
        model: Any,
        kind: str,
        names: Sequence[str],
        threshold: float,
        share: float,
    ) -> None:
        self.model, self.threshold = model, threshold
        self.share = share * share_of_items(model, kind)
        rows = model.memory_.rows.tolist() if self.share else []
        self.names = dict(zip(rows, names, strict=False))
        self._seen = 0
        self._items: Items | None = None
        self._scores, self._at = np.empty(0), np.empty(0, dtype=np.int64)

    def add(self, items: Items, scores: FloatArray) -> None:
        """Look at the next items."""
        if self.share and len(items):
            kept = looked_at(scores, self.threshold, self.share)
            parts = [items.take(kept)]
            if self._items is not None:
                parts.insert(0, self._items)
            self._scores = np.append(self._scores, scores[kept])
            self._at = np.append(self._at, self._seen + kept)
            self._items = Items.together(parts)
            self._keep(self.threshold)
        self._seen += len(items)

    def _keep(self, threshold: float) -> None:
        kept = looked_at(self._scores, threshold, self.share)
        if self._items is not None:
            self._items = self._items.take(kept)
        self._scores, self._at = self._scores[kept], self._at[kept]

    def why(self, threshold: float) -> dict[int, str]:
        """Return the sentences by position, now that the threshold is known."""
        self._keep(threshold)
        if self._items is None:
            return {}
        found = explained(self.model, self._items)
        told = (sentence(one, self._items.plan, self.names) for one in found)
        return dict(zip(self._at.tolist(), told, strict=True))


def sentence(
    reason: Explanation, plan: Mapping[str, Any], names: Mapping[int, str]
) -> str:
    """Return a line such as ``amount 9,120 (high), country NL; like p_017, p_203``."""
    kinds = plan.get("columns", {})
    strong = [c for c in reason.columns if abs(c.change) > 0][:REASONS]
    strong = [c for c in strong if abs(c.change) >= LEAST * abs(strong[0].change)]
    for_it = [_cell(c, kinds) for c in strong if c.change > 0]
    against = [_cell(c, kinds) for c in strong if c.change < 0]
    enough = LEAST * max((one.weight for one in reason.words), default=0)
    words = [clean(one.term) for one in reason.words if one.weight >= enough]
    like = [short_name(names[n.row]) for n in reason.nearest[:NAMED] if n.row in names]
    parts = {"": for_it, "against it ": against, "words ": words, "like ": like}
    return "; ".join(start + ", ".join(held) for start, held in parts.items() if held)


def _cell(moved: Moved, kinds: Mapping[str, str]) -> str:
    name = shorten(clean(str(moved.column)), 40)
    kind = kinds.get(moved.column, "")
    value = cell_words(moved.value, kind)
    if value == "–":
        return f"{name} missing"
    return f"{name} {value}{_side(moved.value, moved.typical, kind)}"


def _side(value: Any, typical: Any, kind: str) -> str:
    """Say on which side of the typical value a number lies."""
    if not isinstance(value, int | float) or not isinstance(typical, int | float):
        return ""
    high, low = ("late", "early") if is_date(kind) else ("high", "low")
    return f" ({high})" if value > typical else f" ({low})" if value < typical else ""


# --- a whole run ---------------------------------------------------------------------


def with_reasons(model: Any, rows: RunRows) -> tuple[RunRows, list[Tell]]:
    """Add the reasons of some items, and return what tells positives from the rest."""
    U = rows.unlabeled
    share = share_of_items(model, U.kind)
    if not share:
        return rows, []
    at = looked_at(rows.score_unlabeled, float(model.threshold_), share)
    found = dict(zip(at.tolist(), explained(model, U.take(at)), strict=True))
    names = dict(enumerate(rows.positive.ids))
    why = {i: sentence(one, U.plan, names) for i, one in found.items()}
    near = {i: [n.row for n in one.nearest] for i, one in found.items()}
    called = {i: one for i, one in found.items() if rows.decision[i]}
    memory = model.memory_
    tells = telling_words(memory.terms) if memory.terms is not None else []
    if called and columns_told(model, U.kind):
        tells = telling_columns(U, called, memory.typical)
    return replace(rows, why=why, near=near), tells


def telling_words(terms: Any) -> list[Tell]:
    """Return the words that labelled positives hold far more often than U."""
    return [
        Tell(
            clean(terms.terms[i]),
            float(terms.weight[i]),
            percent(float(terms.in_positive[i])),
            percent(float(terms.in_unlabeled[i])),
        )
        for i in terms.first(WORDS)
    ]


def telling_columns(
    U: Items, called: Mapping[int, Explanation], typical: Sequence[Any]
) -> list[Tell]:
    """Return the columns that moved the scores of called items most, on average."""
    total: Counter[Any] = Counter()
    for one in called.values():
        total.update({moved.column: moved.change for moved in one.columns})
    best = sorted(total, key=lambda name: -abs(total[name]))[:COLUMNS]
    best = [name for name in best if abs(total[name]) > LEAST * abs(total[best[0]])]
    usual = dict(zip(U.X.columns, typical, strict=True))
    found = []
    for name in best:
        values, kind = U.X[name][list(called)].tolist(), U.plan["columns"][name]
        if isinstance(values[0], float):
            known = [v for v in values if v == v]
            middle = float(np.quantile(known, 0.5, method="lower")) if known else np.nan
            mine = cell_words(middle, kind) + _side(middle, usual[name], kind)
        else:
            value, n = Counter(values).most_common(1)[0]
            mine = f"{cell_words(value, kind)} ({percent(n / len(values))})"
        change = total[name] / len(called)
        found.append(Tell(name, change, mine, cell_words(usual[name], kind)))
    return found
