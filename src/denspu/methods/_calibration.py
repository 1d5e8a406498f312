"""From scores to P(s = 1 | x), the chance that a row carries a label."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from denspu._parameters import OneOf, Rule
from denspu._scores import Isotonic
from denspu._typing import BoolArray, FloatArray, IntArray

Calibration = Callable[[FloatArray], FloatArray]

CALIBRATION_RULE: tuple[Rule, ...] = (OneOf("isotonic", "sigmoid", None),)


def learn_calibration(
    kind: str | None, scores: FloatArray, labelled: BoolArray
) -> Calibration:
    """Return a rising map from scores to P(s = 1).

    ``"isotonic"``: any rising steps. ``"sigmoid"``: the logistic function of a line
    (Platt). ``None``: the scores are log-odds already.
    """
    if kind is None:
        return as_log_odds
    return (Isotonic if kind == "isotonic" else Sigmoid)(scores, labelled)


def as_log_odds(scores: FloatArray) -> FloatArray:
    """Return the probabilities of log-odds."""
    return np.asarray(expit(scores))


class Sigmoid:
    """The logistic function of a line through the scores."""

    def __init__(self, scores: FloatArray, labelled: BoolArray) -> None:
        self.spread = float(scores.std()) or 1.0
        self.line = LogisticRegression(C=1e4)
        self.line.fit(scores[:, None] / self.spread, labelled)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return P(s = 1)."""
        found = self.line.predict_proba(scores[:, None] / self.spread)
        return np.asarray(found[:, 1])


def cross_calibrated(
    kind: str | None, scores: FloatArray, labelled: BoolArray, fold: IntArray
) -> FloatArray:
    """Return P(s = 1) of every row by a map that was learned without its fold."""
    found = np.empty(len(scores))
    for part in np.unique(fold):
        own = fold == part
        rest = ~own if not own.all() else own
        found[own] = learn_calibration(kind, scores[rest], labelled[rest])(scores[own])
    return found
