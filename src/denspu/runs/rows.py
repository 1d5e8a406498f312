"""What was found out about each item: score, decision, place on the map, doubts."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.detectors.neighbours import Neighbours
from denspu.runs.facts import RunRows
from denspu.runs.projection import project
from denspu.runs.reading import RunData

COPY = "copy of a positive"
KNOWN = "known negative"
CHOSEN = "reliable negative"
NEAR = "near the threshold"
DECIDED = "decided by the model"
STAGES = (COPY, KNOWN, CHOSEN, NEAR, DECIDED)
"""What can settle an item."""

CLOSE = 0.1
"""Items near the threshold: this part of those called, on either side of the cut."""

NEIGHBOURS = 5
COMPARED = 20_000
"""Unlabelled items that stand for U when a positive looks odd among them."""

MOST_ODD = 24


Embeddings: TypeAlias = tuple[FloatArray, FloatArray] | None
"""Of P and of U, where the model has an embedding."""


def rows_of(model: Any, data: RunData, held: BoolArray, Z: Embeddings) -> RunRows:
    """Return the items with everything that is known of each."""
    P, U = data.P, data.U
    score_P, score_U = _scores(model, data)
    probability = getattr(model, "posterior_", expit)(score_U)
    called = score_U > model.threshold_
    chosen = _chosen(model, data)
    stage = _stages(score_U, called, chosen, data)
    order = np.argsort(-score_U, kind="stable")
    rank = np.empty(len(U), dtype=np.int64)
    rank[order] = np.arange(1, len(U) + 1)
    places, note = _map(Z)
    return RunRows(
        positive=P,
        unlabeled=U,
        score_positive=score_P,
        held_out=held,
        score_unlabeled=score_U,
        probability=np.where(
            data.is_copy, 1.0, np.where(data.known_negative, 0.0, probability)
        ),
        rank=rank,
        decision=np.where(
            data.is_copy, 1, np.where(data.known_negative, 0, called)
        ).astype(np.int64),
        stage=stage,
        map_positive=None if places is None else places[: len(P)],
        map_unlabeled=None if places is None else places[len(P) :],
        map_note=note,
        chosen=chosen,
        odd_positive=_odd(score_P, float(model.threshold_), held, data.is_copy, Z),
    )


def _scores(model: Any, data: RunData) -> tuple[FloatArray, FloatArray]:
    """Return the scores of P and U, by models that have not seen them if there are."""
    score_U = np.array(model.decision_function(data.U.X), dtype=np.float64)
    unseen = getattr(model, "unseen_scores_", None)
    if unseen is None:
        return np.asarray(model.decision_function(data.P.X), dtype=np.float64), score_U
    score_U[~data.is_copy] = unseen[len(data.P) :]  # copies took no part in the fit
    return unseen[: len(data.P)], score_U


def _chosen(model: Any, data: RunData) -> IntArray:
    """Return the positions in U of reliable negatives, surest first."""
    rows = np.asarray(getattr(model, "negative_index_", []), dtype=np.int64)
    fitted = np.flatnonzero(~data.is_copy)
    return fitted[rows[rows >= len(data.P)] - len(data.P)]


def _stages(
    scores: FloatArray, called: BoolArray, chosen: IntArray, data: RunData
) -> NDArray[Any]:
    """Return what settled each item, in fixed words; what is known comes first."""
    stage = np.full(len(scores), DECIDED, dtype=object)
    is_open = ~(data.is_copy | data.known_negative)
    above = np.flatnonzero(called & is_open)
    below = np.flatnonzero(~called & is_open)
    n = max(1, round(CLOSE * min(len(above), len(below))))
    stage[above[np.argsort(scores[above], kind="stable")[:n]]] = NEAR
    stage[below[np.argsort(-scores[below], kind="stable")[:n]]] = NEAR
    stage[chosen[~called[chosen]]] = CHOSEN
    stage[data.known_negative] = KNOWN
    stage[data.is_copy] = COPY
    return stage


# --- the embedding -------------------------------------------------------------------


def embeddings_of(model: Any, data: RunData) -> Embeddings:
    """Return the model's embeddings of all items, or None if it has none."""
    part = getattr(model, "encoder_", getattr(model, "table_", None))
    if part is None and data.P.kind != "embedding":
        return None
    P, U = (
        np.asarray(one.X if part is None else part.transform(one.X), dtype=np.float64)
        for one in (data.P, data.U)
    )
    return P, U


def _map(Z: Embeddings) -> tuple[FloatArray | None, str]:
    if Z is None:
        return None, "The method has no embedding to draw a map of."
    places, shares = project(np.concatenate(Z))
    return places, f"2 main directions (PCA): {shares.sum():.0%} of the variance"


# --- positives that look odd ---------------------------------------------------------


def _odd(
    scores: FloatArray,
    threshold: float,
    held: BoolArray,
    is_copy: BoolArray,
    Z: Embeddings,
) -> IntArray:
    """Return positions of labelled positives that look mislabelled, oddest first.

    With an embedding: how far the nearest other positives are, against the nearest
    unlabelled items; those far beyond the usual count. No positive vouches for itself,
    whether it was held out or not. Without: held-out ones below the threshold.
    """
    if Z is None or len(Z[0]) <= NEIGHBOURS:
        low = np.flatnonzero(held & (scores <= threshold))
        return low[np.argsort(scores[low], kind="stable")][:MOST_ODD]
    odd = _oddness(Z[0], Z[1][~is_copy])
    first, third = np.quantile(odd, [0.25, 0.75])
    far = np.flatnonzero(odd > third + 1.5 * (third - first))
    return far[np.argsort(-odd[far], kind="stable")][:MOST_ODD]


def _oddness(P: FloatArray, U: FloatArray) -> FloatArray:
    """Return the log ratio of the distances to other positives and to U."""
    U = U[:: -(-len(U) // COMPARED)]
    k = min(NEIGHBOURS, len(U))
    ours = [f.distance for f in Neighbours(P).search(P, NEIGHBOURS, exclude_self=True)]
    theirs = [f.distance for f in Neighbours(U).search(P, k)]
    tiny = 1e-12
    near, other = (np.concatenate(d).mean(axis=1) + tiny for d in (ours, theirs))
    return np.log(near) - np.log(other)
