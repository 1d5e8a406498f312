"""Maps from a score to a probability that never fall."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from denspu._typing import FloatArray

HALF = 0.5
"""A positive imagined below all scores, and one above, count so much."""

HALVINGS = 100


class Isotonic:
    """Any rising steps from scores to the share of rows with a label."""

    def __init__(
        self, scores: FloatArray, labelled: Any, weight: FloatArray | None = None
    ) -> None:
        self.steps = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        self.steps.fit(scores, np.asarray(labelled, dtype=np.float64), weight)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the share of rows with a label at these scores."""
        return np.asarray(self.steps.predict(scores))


class HiddenPositive:
    """P(y = 1) of rows of U by their score, from positives that score alike.

    Bayes: P(y = 1 | s) = π f_P(s) / f_U(s). The ratio of the two densities is that of
    a rising share of positives among both (isotonic regression). It is scaled so that
    the mean over U is π, also where the probability is cut off at 1. Half a positive
    is imagined below all scores and half a one above: few positives do not make a row
    surely negative.
    """

    def __init__(
        self, positive: FloatArray, unlabeled: FloatArray, prior: float
    ) -> None:
        both = np.concatenate([positive, unlabeled])
        scores = np.concatenate([both, [both.min(), both.max()]])
        labelled = np.zeros(len(scores))
        labelled[: len(positive)] = labelled[-2:] = 1.0
        weight = np.ones(len(scores))
        weight[-2:] = HALF
        self.share = Isotonic(scores, labelled, weight)
        self.factor = _factor(self._odds(unlabeled), float(prior))

    def _odds(self, scores: FloatArray) -> FloatArray:
        share = self.share(scores)
        return share / np.maximum(1 - share, 1e-12)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return P(y = 1)."""
        return np.minimum(self.factor * self._odds(scores), 1.0)


def _factor(odds: FloatArray, prior: float) -> float:
    """Return c with mean(min(c · odds, 1)) = prior; odds are above 0."""
    low, high = 0.0, 1.0 / float(odds.min())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if np.minimum(middle * odds, 1.0).mean() < prior:
            low = middle
        else:
            high = middle
    return high
