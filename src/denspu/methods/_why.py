"""Why a row scores as it does: whom it is like, and what moved its score."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from denspu._typing import FloatArray, IntArray
from denspu._validation import PUInput, check_embedding, is_frame, take_rows
from denspu.data.kinds.table import on_sphere

KEPT_POSITIVES = 2_000
"""Labelled positives among which the nearest are looked for."""

MOST_COLUMNS = 500
"""Of tables with more columns none is told: one alone moves little."""
KEPT_TERMS = 1_000
LEAST_TEXTS = 2
"""Labelled texts in which a term must stand to speak for others."""
LIFT = 1.5
"""How many times as often as in U it must stand in labelled texts."""
LOOKED_AT = 2_000
"""Texts of U from which is learned what they usually hold."""

SCORED_AT_ONCE = 8_192


@dataclass(frozen=True)
class Near:
    """A labelled positive that a row is like."""

    row: int
    """Its row number among those given to ``fit``."""
    distance: float
    """Euclidean, in the embedding."""


@dataclass(frozen=True)
class Moved:
    """A column that moved the score of a row."""

    column: Any
    """Its name; its number where columns have none."""
    value: Any
    typical: Any
    """The median of U, or its most frequent value."""
    change: float
    """The score less what it would be with the typical value in this column."""


@dataclass(frozen=True)
class Word:
    """A term that speaks for a text."""

    term: str
    weight: float
    """What it adds to the text's mean cosine similarity with labelled positives, more
    than to that with unlabelled texts."""


@dataclass(frozen=True)
class Explanation:
    """Why a row scores as it does."""

    nearest: list[Near]
    """Nearest first."""
    columns: list[Moved]
    """The largest change first; those with the typical value are left out."""
    words: list[Word]
    """The largest weight first."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms that labelled positives hold far more often than U, the best first."""

    terms: list[str]
    weight: FloatArray
    """Mean TF-IDF weight in P less that in U."""
    in_positive: FloatArray
    """Share of the texts of P that hold it."""
    in_unlabeled: FloatArray

    @classmethod
    def of(cls, vectorizer: Any, P: Any, U: Any) -> Self:
        """Learn them from the texts of P and some of U."""
        weights = [vectorizer.transform(texts) for texts in (P, U)]
        mean = [np.asarray(one.mean(axis=0)).ravel() for one in weights]
        share = [np.asarray((one > 0).mean(axis=0)).ravel() for one in weights]
        more = mean[0] - mean[1]
        often = share[0] >= np.maximum(LEAST_TEXTS / len(P), LIFT * share[1])
        best = np.argsort(-more, kind="stable")
        best = best[(often & (more > 0))[best]][:KEPT_TERMS]
        names = vectorizer.get_feature_names_out()[best].tolist()
        return cls(names, more[best], share[0][best], share[1][best])

    def first(self, n: int, weight: FloatArray | None = None) -> IntArray:
        """Return the n terms of most weight; none holds a word of one before it."""
        weight = self.weight if weight is None else weight
        taken: set[str] = set()
        found: list[int] = []
        for i in np.argsort(-weight, kind="stable"):
            words = set(self.terms[i].split())
            if weight[i] <= 0 or len(found) == n:
                break
            if not words & taken:
                found.append(int(i))
                taken |= words
        return np.array(found, dtype=np.int64)

    def speaking(self, vectorizer: Any, texts: Any, n: int) -> list[list[Word]]:
        """Return the terms that speak for each text."""
        at = [vectorizer.vocabulary_[term] for term in self.terms]
        held = vectorizer.transform(texts)[:, at].toarray() * self.weight
        return [
            [Word(self.terms[i], float(row[i])) for i in self.first(n, row)]
            for row in held
        ]


@dataclass(frozen=True, eq=False)
class Memory:
    """What a fitted method keeps of its rows, to say why it scores others as it does.

    Known positives are those the user labelled, held out or not.
    """

    rows: IntArray
    """Row numbers of labelled positives."""
    Z: FloatArray
    """Their embeddings."""
    typical: list[Any] | None
    """A typical value of U for each column of a table."""
    terms: Terms | None

    @classmethod
    def of(cls, encoder: Any, data: PUInput) -> Self:
        """Remember some of the positives, and what is typical of U."""
        known = (
            data.positive if data.held_out is None else data.positive | data.held_out
        )
        rows = np.flatnonzero(known)
        rows = rows[:: -(-len(rows) // KEPT_POSITIVES)]
        other = np.flatnonzero(~known)
        typical = terms = None
        if data.kind == "table" and has_meaning(data.X):
            U = take_rows(data.X, other)
            typical = [typical_value(U, j) for j in range(U.shape[1])]
        if hasattr(encoder, "vectorizer_") and encoder.unit == "word":
            some = other[:: -(-len(other) // LOOKED_AT)]
            texts = (take_rows(data.X, which) for which in (rows, some))
            terms = Terms.of(encoder.vectorizer_, *texts)
        return cls(rows, embedded(encoder, take_rows(data.X, rows)), typical, terms)


def encoder_of(model: Any) -> Any:
    """Return what embeds the rows of a fitted method; None if nothing does."""
    return getattr(model, "encoder_", getattr(model, "table_", None))


def embedded(encoder: Any, X: Any) -> FloatArray:
    """Return embeddings in which rows are compared."""
    return check_embedding(encoder.transform(X), argument="the encoder's output")


def explain(model: Any, X: Any, k: int, columns: int) -> list[Explanation]:
    """Say why a fitted method scores checked rows as it does.

    Parameters
    ----------
    model : PUClassifier
        Fitted, with a memory.
    X : array, DataFrame or list of texts
    k : int
        Nearest positives, and words.
    columns : int
        Columns, at most; 0 saves the time.
    """
    memory: Memory = model.memory_
    encoder = encoder_of(model)
    near = nearest(memory, embedded(encoder, X), k)
    moved: list[list[Moved]] = [[] for _ in near]
    words: list[list[Word]] = [[] for _ in near]
    if memory.typical is not None and columns:
        moved = moved_by(model, X, memory.typical, columns)
    if memory.terms is not None:
        words = memory.terms.speaking(encoder.vectorizer_, X, k)
    return [Explanation(*parts) for parts in zip(near, moved, words, strict=True)]


def nearest(memory: Memory, Z: FloatArray, k: int) -> list[list[Near]]:
    """Return the k nearest labelled positives of each embedding."""
    found = []
    for at in range(0, len(Z), SCORED_AT_ONCE):
        distance = cdist(Z[at : at + SCORED_AT_ONCE], memory.Z)
        order = np.argsort(distance, axis=1, kind="stable")[:, :k]
        found += [
            [Near(int(memory.rows[i]), float(row[i])) for i in first]
            for row, first in zip(distance, order, strict=True)
        ]
    return found


# --- columns -------------------------------------------------------------------------


def has_meaning(X: Any) -> bool:
    """Tell whether a single column of a table can say something."""
    return X.shape[1] <= MOST_COLUMNS and not on_sphere(X)


def column_of(X: Any, j: int) -> Any:
    """Return a column: floats, or objects with None for a gap."""
    if not is_frame(X):
        return X[:, j]
    column = X[X.columns[j]]
    if column.dtype.kind in "biuf":
        return np.asarray(column.astype(np.float64))
    there = np.asarray(column.notna())
    values = np.empty(len(column), dtype=object)
    values[there] = np.asarray(column, dtype=object)[there]
    return values


def typical_value(X: Any, j: int) -> Any:
    """Return the lower median of a column of numbers, else its most frequent value."""
    values = column_of(X, j)
    if values.dtype == object:
        return Counter(values.tolist()).most_common(1)[0][0]
    known = values[~np.isnan(values)]
    middle = np.quantile(known, 0.5, method="lower") if len(known) else np.nan
    return float(middle)


def moved_by(model: Any, X: Any, typical: list[Any], most: int) -> list[list[Moved]]:
    """Return the columns that moved each row's score, the largest change first."""
    table = [column_of(X, j) for j in range(len(typical))]
    names = list(X.columns) if is_frame(X) else list(range(len(typical)))
    pairs = [
        (j, i)
        for j, (values, usual) in enumerate(zip(table, typical, strict=True))
        for i in np.flatnonzero(differs(values, usual))
    ]
    score = np.asarray(model._decide(X))
    found: list[list[Moved]] = [[] for _ in score]
    for at in range(0, len(pairs), SCORED_AT_ONCE):
        part = pairs[at : at + SCORED_AT_ONCE]
        other = np.asarray(model._decide(replaced(X, table, part, typical)))
        for (j, i), less in zip(part, other, strict=True):
            value = table[j][i]
            value = value.item() if isinstance(value, np.generic) else value
            change = float(score[i] - less)
            found[i].append(Moved(names[j], value, typical[j], change))
    return [sorted(row, key=lambda one: -abs(one.change))[:most] for row in found]


def differs(values: Any, usual: Any) -> Any:
    """Tell which values are not the usual one; gaps are alike."""
    if values.dtype == object:
        return np.array([value != usual for value in values.tolist()], dtype=bool)
    usual = values.dtype.type(usual)
    return (values != usual) & ~(np.isnan(values) & np.isnan(usual))


def replaced(
    X: Any, table: list[Any], pairs: list[tuple[int, Any]], typical: list[Any]
) -> Any:
    """Return a row for each (column, row), with the typical value in that column."""
    rows = np.array([i for _, i in pairs])
    at = np.array([j for j, _ in pairs])
    made = take_rows(X, rows).copy()
    for j in np.unique(at).tolist():
        if not is_frame(X):
            made[at == j, j] = typical[j]
            continue
        values = table[j][rows]
        values[at == j] = typical[j]
        made[X.columns[j]] = values
    return made
