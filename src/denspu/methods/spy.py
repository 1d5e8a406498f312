"""Spies: some positives are hidden in U, and where they end up shows what is negative.

Liu, Lee, Yu and Li, "Partially Supervised Classification of Text Documents" (S-EM),
ICML 2002.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.special import expit

from denspu._parameters import About, Number, OneOf, Whole, setting
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.base import in_fixed_rows
from denspu.methods._classical import EstimatorPU, EstimatorTask
from denspu.methods.biased_svm import criterion

LEAST_SPREAD = 1e-2
"""Share of the mean variance that is added to every variance of naive Bayes."""


class Spy(EstimatorPU):
    """Positives hidden in U show which of U are negative.

    Find reliable negatives below the spies, then set P against them.

    Attributes
    ----------
    spy_threshold_ : float
        The spies' score below which rows of U are reliable negatives.
    negative_index_ : array
        Numbers of the reliable negatives.
    """

    about = About(key="spy", paper="Liu et al. 2002, S-EM")

    variant: Literal["classifier", "em"] = setting(
        "classifier",
        OneOf("classifier", "em"),
        doc="Who takes both steps: ``estimator``, or Gaussian naive Bayes with "
        "expectation maximisation, as in S-EM.",
    )
    spy_share: float = setting(
        0.15, Number(0, 1, "neither"), doc="Share of P that is hidden in U."
    )
    noise_level: float = setting(
        0.15,
        Number(0, 1, "left"),
        doc="Share of the spies below the threshold for reliable negatives.",
    )
    max_steps: int = setting(20, Whole(1), doc="Steps of expectation maximisation.")

    def _uses_embedding(self) -> bool:
        return self.variant == "em"

    def _train(self, task: EstimatorTask) -> None:
        spies = mark_positives(
            task.positive,
            task.data.groups,
            self.spy_share,
            task.randomness.numpy("spies"),
        )
        overt = task.positive & ~spies
        scores = self._first_scores(task, overt)
        self.spy_threshold_ = float(np.quantile(scores[spies], self.noise_level))
        self.negative_index_ = task.reliable(scores < self.spy_threshold_, scores)
        if self.variant == "classifier":
            self.estimator_ = task.positives_against(self.negative_index_, "final")
            return
        start = np.full(len(scores), np.nan)
        start[self.negative_index_] = 0.0
        fixed = task.positive | task.data.known_negative
        found = em(task.Z, task.positive, fixed, start, self.max_steps)
        self.estimator_ = best_by_recall(found, task.Z, task.positive)

    def _first_scores(self, task: EstimatorTask, overt: BoolArray) -> FloatArray:
        """Score all rows by a model of the overt positives against U and the spies."""
        if self.variant == "classifier":
            model = task.fit(np.arange(len(overt)), overt, "spies")
            return task.scores(model, np.arange(len(overt)))
        start = np.where(overt, 1.0, 0.0)
        fixed = overt | task.data.known_negative
        return em(task.Z, overt, fixed, start, self.max_steps)[-1].decision_function(
            task.Z
        )

    def _decide(self, X: Any) -> FloatArray:
        if self.variant == "em":
            return in_fixed_rows(self._score, self.scale_(self._embed(X)))
        return super()._decide(X)


class GaussianBayes:
    """Naive Bayes with Gaussian columns, from weights of both classes.

    Parameters
    ----------
    Z : array of shape (n, d)
    positive : array of shape (n,)
        P(y = 1) of each row; ``nan`` leaves a row out.
    """

    def __init__(self, Z: FloatArray, positive: FloatArray) -> None:
        used = ~np.isnan(positive)
        rows, weight = Z[used], positive[used]
        least = LEAST_SPREAD * max(float(Z.var(axis=0).mean()), 1e-12)
        self.mean, self.var, log_prior = [], [], []
        for w in (1 - weight, weight):
            total = max(float(w.sum()), 1e-9)
            mean = w @ rows / total
            self.mean.append(mean)
            self.var.append(w @ (rows - mean) ** 2 / total + least)
            log_prior.append(np.log(total))
        self.offset = float(log_prior[1] - log_prior[0])

    def decision_function(self, Z: FloatArray) -> FloatArray:
        """Return the log-odds of rows."""
        likelihood = [
            -0.5 * (np.log(var) + (Z - mean) ** 2 / var).sum(axis=1)
            for mean, var in zip(self.mean, self.var, strict=True)
        ]
        return np.asarray(likelihood[1] - likelihood[0] + self.offset)


def em(
    Z: FloatArray,
    positive: BoolArray,
    fixed: BoolArray,
    start: FloatArray,
    max_steps: int,
) -> list[GaussianBayes]:
    """Return the model after every step of expectation maximisation.

    ``start`` holds the first P(y = 1) of rows, ``nan`` where a row joins after the
    first step; ``fixed`` rows keep theirs, 1 for positives and 0 for others.
    """
    label = np.where(positive, 1.0, start)
    models = [GaussianBayes(Z, label)]
    for _ in range(max_steps):
        guess = expit(models[-1].decision_function(Z))
        guess = np.where(fixed, positive.astype(np.float64), guess)
        models.append(GaussianBayes(Z, guess))
        if np.nanmax(np.abs(guess - label)) < 1e-3 and not np.isnan(label).any():
            break
        label = guess
    return models


def best_by_recall(
    models: list[GaussianBayes], Z: FloatArray, positive: BoolArray
) -> GaussianBayes:
    """Return the model with the best criterion (Lee and Liu 2003)."""
    return max(models, key=lambda m: criterion(m.decision_function(Z) > 0, positive))


def mark_positives(
    positive: BoolArray, groups: IntArray | None, share: float, rng: np.random.Generator
) -> BoolArray:
    """Mark about a share of the positives, whole groups at a time.

    At least one positive is marked and one is left, if groups allow it.
    """
    rows = np.flatnonzero(positive)
    unit = np.arange(len(rows)) if groups is None else groups[rows]
    names = rng.permutation(np.unique(unit))
    wanted = max(1, round(share * len(rows)))
    marked = np.zeros(len(positive), dtype=bool)
    for name in names[: max(1, len(names) - 1)]:
        marked[rows[unit == name]] = True
        if marked.sum() >= wanted:
            break
    if marked.sum() == len(rows):  # a single group holds all positives
        marked[rows[: max(1, len(rows) - wanted)]] = False
    return marked
