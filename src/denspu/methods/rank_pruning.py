"""Rank Pruning: estimate how many positives carry no label, and leave the surest out.

Northcutt, Wu and Chuang, "Learning with Confident Examples: Rank Pruning for Robust
Classification with Noisy Labels", UAI 2017. PU learning is the case in which no label
is false, ρ₀ = P(s = 1 | y = 0) = 0.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from denspu._parameters import About, Number, OneOf, Whole, setting
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.methods._classical import (
    CALIBRATION_RULE,
    EstimatorPU,
    EstimatorTask,
    cross_calibrated,
)

MOST = 0.9999
"""Rates are kept at or below this."""

LEAST_KEPT = 10
"""Rows of U that pruning leaves in any case."""


class RankPruning(EstimatorPU):
    """Leave out the rows of U that look most like P, weigh P up.

    Drop the rows of U that look most like P, and train on the rest.

    Attributes
    ----------
    noise_rate_ : float
    pruned_ : array
        Numbers of the rows that were left out.
    """

    about = About(
        key="rank_pruning",
        paper="Northcutt et al. 2017, Rank Pruning",
        reference_licence="MIT",
        scenario="one-sample",
    )

    noise_rate: float | None = setting(
        None,
        OneOf(None),
        Number(0, 1, "left"),
        doc="ρ₁ = P(s = 0 | y = 1); ``None`` estimates it.",
    )
    calibration: Literal["isotonic", "sigmoid"] | None = setting(
        "sigmoid",
        CALIBRATION_RULE,
        doc="How scores of held-out rows become P(s = 1 | x).",
    )
    folds: int = setting(3, Whole(2, 100))

    def _train(self, task: EstimatorTask) -> None:
        labelled, free = task.positive, task.free
        fold = task.folds(self.folds)
        scores = task.out_of_fold(task.labelled_against_rest, fold, "q")
        q = cross_calibrated(self.calibration, scores, labelled, fold)
        self.noise_rate_ = (
            noise_rate(q, labelled, free, fold)
            if self.noise_rate is None
            else min(float(self.noise_rate), MOST)
        )
        share = hidden_share(self.noise_rate_, int(labelled.sum()), int(free.sum()))
        order = np.lexsort((scores, q))  # equal q: by the score behind it
        self.pruned_ = prune(order[free[order]], share)
        index = np.setdiff1d(np.arange(len(q)), self.pruned_)
        weight = np.where(labelled[index], 1 / (1 - self.noise_rate_), 1.0)
        self.estimator_ = task.fit(
            index, labelled[index], "final", weight=weight, balanced=False
        )


def noise_rate(
    q: FloatArray, labelled: BoolArray, free: BoolArray, fold: IntArray
) -> float:
    """Return ρ₁: of the rows at least as sure as the mean of P, the share in U.

    The mean over the folds; a fold without such rows says nothing.
    """
    rates = []
    for part in np.unique(fold):
        own = fold == part
        if not (labelled & own).any() or not (free & own).any():
            continue
        bound = q[labelled & own].mean() - 1e-12  # rounding must not lose the mean
        sure = own & (q >= bound)
        in_P, in_U = (labelled & sure).sum(), (free & sure).sum()
        rates.append(np.clip(in_U / (in_P + in_U), 0.0, MOST))
    return float(np.mean(rates)) if rates else 0.0


def hidden_share(rate: float, n_positive: int, n_unlabeled: int) -> float:
    """Return π₀ = P(y = 1 | s = 0) from ρ₁, with p(y = 1) = p(s = 1) / (1 - ρ₁)."""
    p_labelled = n_positive / (n_positive + n_unlabeled)
    p_positive = p_labelled / (1 - rate)
    return float(np.clip(rate * p_positive / (1 - p_labelled), 0.0, MOST))


def prune(rising: IntArray, share: float) -> IntArray:
    """Return the last ``share`` of rows ordered by q, keeping a few in any case."""
    # A product such as 0.4 · 50000 may come out a hair below the whole number.
    count = int(np.floor(share * len(rising) + 1e-9))
    count = max(0, min(count, len(rising) - min(LEAST_KEPT, len(rising))))
    return np.sort(rising[len(rising) - count :])
