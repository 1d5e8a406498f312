"""Rank Pruning: estimate how many positives carry no label, and leave the surest out.

Northcutt, Wu and Chuang, "Learning with Confident Examples: Rank Pruning for Robust
Classification with Noisy Labels", UAI 2017. PU learning is the case in which no label
is false, ρ₀ = P(s = 1 | y = 0) = 0.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from denspu._parameters import Number, OneOf, Whole
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu.base import Rules
from denspu.methods._calibration import CALIBRATION_RULE, cross_calibrated
from denspu.methods._estimator import (
    ESTIMATOR_RULES,
    EstimatorPU,
    EstimatorTask,
    margins,
)

MOST = 0.9999
"""Rates are kept at or below this."""

LEAST_KEPT = 10
"""Rows of U that pruning leaves in any case."""


class RankPruning(EstimatorPU):
    """Drop the rows of U that look most like P, and train on the rest.

    Parameters
    ----------
    noise_rate : float or None, default=None
        ρ₁ = P(s = 0 | y = 1), the share of positives without a label; estimated if
        ``None``.
    calibration : {"sigmoid", "isotonic", None}, default="sigmoid"
        How scores of held-out rows become P(s = 1 | x).
    folds : int, default=3
    estimator : "auto", str or object, default="auto"
        The classifier: a kernel machine, or boosted trees beyond 10,000 rows.
    encoder, random_state, device, verbose
        As everywhere.

    Attributes
    ----------
    noise_rate_ : float
    pruned_ : array
        Numbers of the rows that were left out.
    """

    _rules: ClassVar[Rules] = {
        **ESTIMATOR_RULES,
        "noise_rate": (OneOf(None), Number(0, 1, "left")),
        "calibration": CALIBRATION_RULE,
        "folds": (Whole(2, 100),),
    }

    def __init__(
        self,
        *,
        noise_rate: float | None = None,
        calibration: Literal["isotonic", "sigmoid"] | None = "sigmoid",
        folds: int = 3,
        estimator: Any = "auto",
        encoder: Any = "auto",
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.noise_rate = noise_rate
        self.calibration = calibration
        self.folds = folds
        self.estimator = estimator
        self.encoder = encoder
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _train(self, task: EstimatorTask) -> None:
        labelled, free = task.positive, task.free
        fold = task.folds(self.folds)
        scores = task.out_of_fold(labelled, fold, "q")
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

    def _score(self, rows: Any) -> FloatArray:
        return margins(self.estimator_, rows)


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
