"""Biased SVM: U as negatives that may be wrong, P as positives that may not.

Liu, Dai, Li, Lee and Yu, "Building Text Classifiers Using Positive and Unlabeled
Examples", ICDM 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from denspu._parameters import Whole
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu.base import Rules
from denspu.methods._estimator import (
    ESTIMATOR_RULES,
    EstimatorPU,
    EstimatorTask,
    margins,
)

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
    """Make errors on P cost more than errors on U, by as much as held-out rows ask for.

    Errors on ``known_negative`` rows cost as much as those on P.

    Parameters
    ----------
    folds : int, default=3
        Parts of the rows by which the two costs are chosen.
    estimator : "auto", str or object, default="auto"
        A classifier that can weigh rows: a kernel machine, or boosted trees beyond
        10,000 rows.
    encoder, random_state, device, verbose
        As everywhere.

    Attributes
    ----------
    costs_ : Costs
    """

    _rules: ClassVar[Rules] = {**ESTIMATOR_RULES, "folds": (Whole(2, 100),)}

    def __init__(
        self,
        *,
        folds: int = 3,
        estimator: Any = "auto",
        encoder: Any = "auto",
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.folds = folds
        self.estimator = estimator
        self.encoder = encoder
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _train(self, task: EstimatorTask) -> None:
        fold = task.folds(self.folds)
        tried = [judge(task, fold, cost, r) for cost, r in product(COSTS, RATIOS)]
        self.costs_ = max(tried, key=lambda costs: costs.criterion)
        everything = np.arange(len(task.positive))
        self.estimator_ = fitted(task, everything, self.costs_, "final")

    def _score(self, rows: Any) -> FloatArray:
        return margins(self.estimator_, rows)


def judge(task: EstimatorTask, fold: IntArray, cost: float, ratio: float) -> Costs:
    """Return two costs with their criterion on rows that no classifier has seen."""
    costs = Costs(cost, cost * ratio, float("nan"))
    called = np.zeros(len(fold), dtype=bool)
    for part in np.unique(fold):
        own = np.flatnonzero(fold == part)
        rest = np.flatnonzero(fold != part)
        rest = rest if len(rest) else own  # one fold: rows judge themselves
        model = fitted(task, rest, costs, f"{cost:g}/{ratio:g}/{part}")
        called[own] = task.scores(model, own) > 0
    return Costs(cost, cost * ratio, criterion(called, task.positive))


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
