"""Biased SVM: U as negatives that may be wrong, P as positives that may not.

Liu, Dai, Li, Lee and Yu, "Building Text Classifiers Using Positive and Unlabeled
Examples", ICDM 2003.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from denspu._parameters import About, Whole, setting
from denspu._typing import BoolArray, IntArray
from denspu.methods._classical import EstimatorPU, EstimatorTask

COSTS = (0.1, 1.0)
"""Costs tried for a row of U on the wrong side."""

RATIOS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""How many times as much a row of P on the wrong side costs."""


@dataclass(frozen=True)
class Costs:
    """What errors cost, and how well that did on held-out rows."""

    unlabeled: float
    positive: float
    criterion: float


class BiasedSVM(EstimatorPU):
    """Errors on P cost more than errors on U.

    Make errors on P cost more than errors on U, by as much as held-out rows ask for.

    Errors on ``known_negative`` rows cost as much as those on P.

    Attributes
    ----------
    costs_ : Costs
    """

    about = About(
        key="biased_svm", paper="Liu et al. 2003, Biased SVM", scenario="one-sample"
    )

    folds: int = setting(3, Whole(2, 100), doc="Parts by which costs are chosen.")

    def _train(self, task: EstimatorTask) -> None:
        fold = task.folds(self.folds)
        tried = [judge(task, fold, cost, r) for cost, r in product(COSTS, RATIOS)]
        self.costs_ = max(tried, key=lambda costs: costs.criterion)
        everything = np.arange(len(task.positive))
        self.estimator_ = fitted(task, everything, self.costs_, "final")


def judge(task: EstimatorTask, fold: IntArray, cost: float, ratio: float) -> Costs:
    """Return two costs with their criterion on rows that no classifier has seen."""
    costs = Costs(cost, cost * ratio, float("nan"))
    scores = task.out_of_fold(
        lambda rest, name: fitted(task, rest, costs, name), fold, f"{cost:g}/{ratio:g}"
    )
    return replace(costs, criterion=criterion(scores > 0, task.positive))


def fitted(task: EstimatorTask, index: IntArray, costs: Costs, name: str) -> Any:
    """Return a classifier of P against U under two costs; known labels cost more."""
    labelled = task.positive[index]
    sure = labelled | task.data.known_negative[index]
    weight = np.where(sure, costs.positive, costs.unlabeled)
    return task.fit(index, labelled, name, weight=weight, balanced=False)


def criterion(called: BoolArray, labelled: BoolArray) -> float:
    """Return r² / P(called), which rises with precision times recall.

    Recall r is known from P; precision is not, but r² / P(called) = r · precision /
    P(y = 1), and the last is the same for all classifiers.
    """
    share = float(called.mean())
    recall = float(called[labelled].mean())
    return recall**2 / share if share else 0.0
