"""PU bagging: P against many small draws from U, averaged.

Mordelet and Vert, "A bagging SVM to learn from positive and unlabeled examples",
Pattern Recognition Letters 2014.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from denspu._parameters import About, Number, OneOf, Whole, setting
from denspu._share import cut_at
from denspu._typing import FloatArray, IntArray, Scenario
from denspu._validation import check_count
from denspu.methods._classical import EstimatorPU, EstimatorTask, margins
from denspu.methods._evidence import prior_setting, scenario_setting

KERNEL_CELLS = 10_000_000
"""(rows of a bag × rows of U) up to which ``estimator="auto"`` is a kernel machine."""


class PUBagging(EstimatorPU):
    """P against many small draws from U, averaged.

    Average classifiers of P against bootstrap draws from U.

    A hidden positive is drawn as a negative now and then, but most classifiers have not
    seen it: their mean score ranks it high. The cut puts the share of positives inside
    U above it, judged by scores out of bag.

    Attributes
    ----------
    estimators_ : list
    oob_scores_ : array
        Of the rows of U, by the bags that did not hold them.
    cut_ : float
    prior_, prior_in_unlabeled_ : float
    """

    about = About(
        key="pu_bagging",
        paper="Mordelet and Vert 2014, A bagging SVM for PU learning",
        needs_prior=True,
    )

    n_bags: int = setting(50, Whole(1))
    bag_size: float | Literal["positives"] = setting(
        "positives",
        OneOf("positives"),
        Whole(1),
        Number(0, 1, "neither"),
        doc="Rows drawn from U: as many as in P, a number, or a share of U.",
    )
    prior: float | Literal["estimate"] = prior_setting()
    scenario: Scenario = scenario_setting()

    def _train(self, task: EstimatorTask) -> None:
        positive = np.flatnonzero(task.positive)
        free = np.flatnonzero(task.free)
        known = np.flatnonzero(task.data.known_negative)
        if isinstance(self.bag_size, str):
            size = max(1, min(len(positive), len(free)))
        else:
            size = check_count(
                self.bag_size, len(free), argument="bag_size", what="rows of U"
            )
        rng = task.randomness.numpy("bags")
        task = quick(task, (len(positive) + len(known) + size) * len(free))
        self.estimators_ = []
        total, judges = np.zeros(len(free)), np.zeros(len(free))
        everyone = np.zeros(len(free))
        for i in range(self.n_bags):
            drawn = rng.choice(free, size, replace=True)
            index = np.concatenate([positive, known, drawn])
            target = np.arange(len(index)) < len(positive)
            model = task.fit(index, target, f"bag/{i}")
            self.estimators_.append(model)
            scores = task.scores(model, free)
            outside = ~seen(free, drawn, task.data.groups)
            total += np.where(outside, scores, 0.0)
            judges += outside
            everyone += scores
        self.oob_scores_ = np.where(
            judges > 0, total / np.maximum(judges, 1), everyone / self.n_bags
        )
        self.prior_, self.prior_in_unlabeled_, share = task.prior(
            self.prior, self.scenario
        )
        self.cut_ = cut_at(self.oob_scores_, share)

    def _score(self, rows: Any) -> FloatArray:
        total = np.zeros(len(rows))
        for model in self.estimators_:
            total += margins(model, rows)
        return total / len(self.estimators_) - self.cut_


def quick(task: EstimatorTask, cells: int) -> EstimatorTask:
    """Return the task with random trees for ``"auto"`` where kernels would be slow."""
    if isinstance(task.template, str) and cells > KERNEL_CELLS:
        trees = ExtraTreesClassifier(
            20, min_samples_leaf=3, class_weight="balanced", n_jobs=1
        )
        return replace(task, template=trees)
    return task


def seen(rows: IntArray, drawn: IntArray, groups: IntArray | None) -> np.ndarray:
    """Tell which rows a bag holds, or rows of their group."""
    if groups is None:
        return np.isin(rows, drawn)
    return np.isin(groups[rows], groups[drawn])
