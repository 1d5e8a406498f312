"""The label frequency of Elkan and Noto (2008), estimator e1.

With P and U in one heap let s = 1 mark the rows of P. Where positives never look like
negatives, P(s=1 | x) is the same number c for every positive x, and its mean over P
gives c. P(s=1 | x) must be calibrated, and no row may judge itself: isotonic regression
on the other parts of the rows turns scores into it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.stats import rankdata
from sklearn.isotonic import IsotonicRegression

from denspu._folds import deal_even_folds
from denspu._parameters import Whole
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray
from denspu.base import Rules
from denspu.priors._base import PriorEstimator


class ElkanNoto(PriorEstimator):
    """Mean calibrated P(s=1 | x) over the labelled positives.

    Parameters
    ----------
    folds : int, default=5
        Parts for the calibration; at most one for each row of the smaller sample.
    """

    _rules: ClassVar[Rules] = {"folds": (Whole(2, 100),)}

    def __init__(self, *, folds: int = 5) -> None:
        self.folds = folds

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        scores = np.concatenate([P, U])
        labelled = np.arange(len(scores)) < len(P)
        g = calibrated(scores, labelled, self.folds, rng)
        c = float(g[labelled].mean())
        return Share.of_label_frequency(c, Counts(len(P), len(U))).value


def calibrated(
    scores: FloatArray, labelled: BoolArray, folds: int, rng: np.random.Generator
) -> FloatArray:
    """Return P(s=1 | score) of each row, learned from the other parts of the rows.

    Scores become ranks first, so that nothing but their order counts.
    """
    scores = rankdata(scores)
    fold = deal_even_folds(labelled, None, folds, rng)
    g = np.empty(len(scores))
    for k in np.unique(fold):
        own = fold == k
        others = ~own if not own.all() else own
        rising = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        rising.fit(scores[others], labelled[others])
        g[own] = rising.predict(scores[own])
    return g
