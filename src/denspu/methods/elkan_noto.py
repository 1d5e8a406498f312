"""Elkan-Noto: a classifier of labelled against unlabelled, divided by a constant.

Elkan and Noto, "Learning Classifiers from Only Positive and Unlabeled Data", KDD 2008.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.special import logit

from denspu._parameters import About, OneOf, Whole, setting
from denspu._typing import BoolArray, FloatArray, Scenario
from denspu.base import forget
from denspu.methods._classical import (
    CALIBRATION_RULE,
    EstimatorPU,
    EstimatorTask,
    cross_calibrated,
    learn_calibration,
    margins,
)
from denspu.methods._evidence import PRIOR_RULE, scenario_setting

MARGIN = 1e-3
"""Probabilities are kept inside (MARGIN, 1 - MARGIN) before they become log-odds."""

TIE = 1e-3
"""How much the score behind equal probabilities counts: it settles their order only."""


class ElkanNoto(EstimatorPU):
    """P against U with probabilities, divided by the label frequency.

    Learn g(x) = P(s = 1 | x), P against U, and divide by c = P(s = 1 | y = 1).

    Attributes
    ----------
    label_frequency_ : float
        c, the mean of g over held-out labelled positives (e1).
    """

    about = About(
        key="elkan_noto",
        paper="Elkan and Noto 2008, Learning from only positive and unlabeled data",
    )

    variant: Literal["adjusted", "weighted"] = setting(
        "weighted",
        OneOf("adjusted", "weighted"),
        doc='``"adjusted"``: p(y = 1 | x) = g(x) / c, so that the cut is g = c / 2. '
        '``"weighted"``: every row of U enters a second training twice, as a positive '
        "of weight w(x) and as a negative of weight 1 - w(x).",
    )
    calibration: Literal["isotonic", "sigmoid"] | None = setting(
        "isotonic",
        CALIBRATION_RULE,
        doc="How held-out scores become g; ``None``: the classifier's probabilities.",
    )
    folds: int = setting(
        5,
        Whole(2, 100),
        doc="Parts of the rows; g of a row comes from a classifier of other parts.",
    )
    scenario: Scenario = scenario_setting()
    prior: float | Literal["estimate"] = setting(
        "estimate",
        *PRIOR_RULE,
        doc="Share of positives in U; used in the two-sample scenario only.",
    )

    def _learns_from_known_negatives(self) -> bool:
        return self.variant == "weighted"

    def _learns_from_prior(self) -> bool:
        return self.scenario == "two-sample"

    def _train(self, task: EstimatorTask) -> None:
        labelled = task.positive
        fold = task.folds(self.folds, self.scenario)
        scores = task.out_of_fold(task.labelled_against_rest, fold, "g")
        g = cross_calibrated(self.calibration, scores, labelled, fold)
        self.label_frequency_ = float(np.clip(g[labelled].mean(), MARGIN, 1 - MARGIN))
        self.ratio_ = self._ratio(task)
        if self.variant == "weighted":
            self.estimator_ = self._reweighted(g, task)
            return
        self.calibration_ = learn_calibration(self.calibration, scores, labelled)
        self.estimator_ = task.fit(np.arange(len(labelled)), labelled, "final")
        self.spread_ = float(scores.std()) or 1.0

    def _ratio(self, task: EstimatorTask) -> float:
        """Return the number of positives in U for each one in P."""
        forget(self, "prior_")
        if self.scenario == "one-sample":
            return (1 - self.label_frequency_) / self.label_frequency_
        self.prior_, inside, _ = task.prior(self.prior, self.scenario)
        return inside * float((~task.positive).sum() / task.positive.sum())

    def _reweighted(self, g: FloatArray, task: EstimatorTask) -> Any:
        weight = np.minimum(hidden_weight(g, self.ratio_), 1 - MARGIN)  # two classes
        weight[task.data.known_negative] = 0.0
        index, target, weights = twice(weight, task.positive)
        if self.scenario == "two-sample":  # U alone stands for the population
            kept = ~task.positive[index]
            index, target, weights = index[kept], target[kept], weights[kept]
        return task.fit(index, target, "final", weight=weights, balanced=False)

    def _score(self, rows: Any) -> FloatArray:
        scores = margins(self.estimator_, rows)
        if self.variant == "weighted":
            return scores
        g = self.calibration_(scores)
        if self.scenario == "one-sample":
            probability = g / self.label_frequency_
        else:
            probability = hidden_weight(g, self.ratio_)
        odds = logit(np.clip(probability, MARGIN, 1 - MARGIN))
        return np.asarray(odds + TIE * np.tanh(scores / self.spread_))


def hidden_weight(g: FloatArray, ratio: float) -> FloatArray:
    """Return P(y = 1 | x, in U) = ratio · g / (1 - g), at most 1.

    ``ratio`` is the number of positives in U for each one in P: (1 - c) / c where P
    was taken out of the sample, π n_U / n_P where it was drawn apart.
    """
    odds = g / np.maximum(1 - g, 1e-12)
    return np.asarray(np.clip(ratio * odds, 0.0, 1.0))


def twice(
    weight: FloatArray, positive: BoolArray
) -> tuple[np.ndarray, np.ndarray, FloatArray]:
    """Return row numbers, targets and weights: P once, each row of U as both classes.

    Rows that would weigh nothing are left out.
    """
    P, U = np.flatnonzero(positive), np.flatnonzero(~positive)
    index = np.concatenate([P, U, U])
    target = np.arange(len(index)) < len(P) + len(U)
    weights = np.concatenate([np.ones(len(P)), weight[U], 1 - weight[U]])
    kept = weights > 0
    return index[kept], target[kept], weights[kept]
