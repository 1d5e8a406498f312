"""Roc-SVM: prototypes find reliable negatives, a classifier in rounds adds more.

Li and Liu, "Learning to Classify Texts Using Positive and Unlabeled Data", IJCAI 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from denspu._parameters import About, Number, OneOf, Whole, setting
from denspu._typing import FloatArray
from denspu.methods._classical import EstimatorPU, EstimatorTask, copies_told
from denspu.methods._evidence import POSITIVE

FEW_JOIN = 1e-3
"""Rounds end when fewer than this share of U join the negatives."""


class RocchioSVM(EstimatorPU):
    """Prototypes find negatives, a classifier in rounds adds more.

    Rows of U nearer to the prototype of U than to that of P, then rounds of SVMs.

    Attributes
    ----------
    negative_index_ : array
        Numbers of the first reliable negatives.
    n_rounds_ : int
    rejected_ : float
        Share of P that the last classifier calls negative.
    kept_ : {"first", "last"}
        Which classifier answers.
    """

    about = About(key="rocchio_svm", paper="Li and Liu 2003, Roc-SVM")

    alpha: float = setting(
        16.0,
        POSITIVE,
        doc="A prototype is ``alpha`` own means minus ``beta`` means of the others.",
    )
    beta: float = setting(4.0, Number(0), doc="See ``alpha``.")
    n_clusters: int | None = setting(
        None,
        OneOf(None),
        Whole(1),
        doc="Clusters that purify the first negatives; the paper takes 10.",
    )
    max_rejected: float = setting(
        0.08,
        Number(0, 1),
        doc="Share of P that the last classifier may reject, or the first is kept.",
    )
    max_rounds: int = setting(
        100,
        Whole(1),
        doc="Rounds at most; they end when fewer than 0.1 % of U would join.",
    )

    def _uses_embedding(self) -> bool:
        return True

    def _train(self, task: EstimatorTask) -> None:
        unit = on_unit_sphere(task.Z * self.scale_.spread + self.scale_.centre)
        scores = self._first_scores(unit, task)
        negative = self.negative_index_ = task.reliable(scores <= 0, scores)
        first = last = task.positives_against(negative, "round/0")
        self.n_rounds_ = 0
        while self.n_rounds_ < self.max_rounds:
            self.n_rounds_ += 1
            rest = np.setdiff1d(np.flatnonzero(task.free), negative)
            joined = rest[task.scores(last, rest) <= 0] if len(rest) else rest
            if len(joined) < max(1, FEW_JOIN * task.free.sum()):
                break
            negative = np.union1d(negative, joined)
            last = task.positives_against(negative, f"round/{self.n_rounds_}")
        positive = np.flatnonzero(task.positive)
        self.rejected_ = float(np.mean(task.scores(last, positive) <= 0))
        self.kept_ = "first" if self.rejected_ > self.max_rejected else "last"
        self.estimator_ = first if self.kept_ == "first" else last

    def _first_scores(self, unit: FloatArray, task: EstimatorTask) -> FloatArray:
        """Return how much nearer rows are to the positive prototype."""
        P, U = unit[task.positive], unit[~task.positive]
        scores = nearness(unit, P, [U], self.alpha, self.beta)
        chosen = np.flatnonzero((scores <= 0) & ~task.positive)
        n = self.n_clusters
        if n is None or len(chosen) <= n:
            return scores
        rows, outcome = unit[chosen], f"n_clusters={n} cannot be made of them"
        clusters = KMeans(n, n_init=3, random_state=task.randomness.seed("clusters"))
        with copies_told(rows, "first negatives", n, outcome):
            member = clusters.fit_predict(rows)
        parts = [rows[member == j] for j in np.unique(member)]
        parted = nearness(unit, P, parts, self.alpha, self.beta)
        return np.where(scores <= 0, parted, np.maximum(parted, scores))


def on_unit_sphere(Z: FloatArray) -> FloatArray:
    """Return rows divided by their length."""
    length = np.linalg.norm(Z, axis=1, keepdims=True)
    return np.asarray(Z / np.maximum(length, 1e-12))


def prototype(own: FloatArray, other: FloatArray, alpha: float, beta: float) -> Any:
    """Return alpha · mean(own) - beta · mean(other)."""
    return alpha * own.mean(axis=0) - beta * other.mean(axis=0)


def cosine(unit: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the cosine of rows of length 1 with a direction."""
    return np.asarray(unit @ direction / max(float(np.linalg.norm(direction)), 1e-12))


def nearness(
    unit: FloatArray, P: FloatArray, sets: list[FloatArray], alpha: float, beta: float
) -> FloatArray:
    """Return max cos(c⁺, x) - max cos(c⁻, x): at most 0 for reliable negatives.

    Each set of negatives N gives one pair of prototypes, of P and of N. A row stays
    negative if some negative prototype is nearer than all positive ones.
    """
    toward = [cosine(unit, prototype(P, N, alpha, beta)) for N in sets]
    away = [cosine(unit, prototype(N, P, alpha, beta)) for N in sets]
    return np.asarray(np.max(toward, axis=0) - np.max(away, axis=0))
