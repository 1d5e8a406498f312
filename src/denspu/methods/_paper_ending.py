"""The paper's last two steps: sure negatives Ñ, and a classifier of P against them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from denspu._folds import groups_argument
from denspu._random import Randomness
from denspu._registry import inputs_of
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu._validation import PUInput, take_rows
from denspu.base import BoundaryResult

if TYPE_CHECKING:
    from denspu.methods.dens_pu import DensPU


def choose_negatives(
    model: DensPU, Z: FloatArray, data: PUInput, randomness: Randomness
) -> IntArray:
    """Return the rows taken as negatives, surest first, known ones behind them."""
    with model.stages_.stage("select") as facts:
        chosen = model.selector_.select(
            BoundaryResult(
                scores=model.unlabeled_scores_,
                inlier=model.unlabeled_inlier_,
                n_positive=int(data.positive.sum()),
                Z_unlabeled=Z[data.unlabeled],
                Z_positive=Z[data.positive],
            ),
            randomness.numpy("select"),
        )
        negatives = _with_known(model.unlabeled_index_[chosen], data.known_negative)
        facts["selector"] = type(model.selector_).__name__
        facts["negatives"] = len(negatives)
        facts["known_negatives"] = int(data.known_negative.sum())
    return negatives


def _with_known(chosen: IntArray, known_negative: BoolArray) -> IntArray:
    """Add rows known to be negative behind the chosen ones, each row once."""
    known = np.flatnonzero(known_negative)
    return np.concatenate([chosen, known[~np.isin(known, chosen)]])


def classify(model: DensPU, Z: FloatArray, data: PUInput) -> None:
    """Fit the model's classifier on P against the negatives."""
    classifier = model.classifier_
    positive = np.flatnonzero(data.positive)
    rows = np.concatenate([positive, model.negative_index_])
    target = np.r_[np.ones(len(positive)), np.zeros(len(rows) - len(positive))]
    source = data.X if model.classify_on_ == "input" else Z
    with model.stages_.stage("classify") as facts:
        together = groups_argument(classifier, data.groups, rows)
        classifier.fit(take_rows(source, rows), target.astype(np.int64), **together)
        facts["classifier"] = type(classifier).__name__
        facts["sees"] = model.classify_on_
        facts["positives"] = len(positive)
        facts["negatives"] = len(model.negative_index_)
        if hasattr(classifier, "facts"):
            facts.update(classifier.facts())


def seen_by(classifier: Any, asked: str, kind: str) -> str:
    """Return whether a classifier sees the input or its embedding."""
    if asked != "auto":
        return asked
    takes = inputs_of(classifier) or ()
    return "input" if kind in takes and kind == "image" else "embedding"


def classified(classifier: Any, rows: Any) -> FloatArray:
    """Return how positive a fitted classifier calls rows: its margin, or log-odds."""
    if hasattr(classifier, "decision_function"):
        return np.asarray(classifier.decision_function(rows))
    column = list(classifier.classes_).index(1)
    proba = np.clip(classifier.predict_proba(rows)[:, column], 1e-12, 1)
    return np.log(proba) - np.log1p(-np.minimum(proba, 1 - 1e-12))
