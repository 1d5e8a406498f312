"""PNLH: rows of U without what is typical of P are negative; the rest joins a side.

Fung, Yu, Lu and Yu, "Text Classification without Negative Examples Revisit", IEEE
Transactions on Knowledge and Data Engineering 2006.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from denspu._parameters import About, Number, Whole, setting
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.methods._classical import EstimatorPU, EstimatorTask, copies_told
from denspu.methods.rocchio_svm import on_unit_sphere


class PNLH(EstimatorPU):
    """Rows of U without what is typical of P are negative; the rest joins a side.

    The paper's features are words, and a document has a word or not. Here a column of
    the embedding makes two features: a row has the first if its value is clearly above
    the column's mean, and the second if it is clearly below. Features that are more
    common in P than in U are the core of P. Rows of U without any are negative, and
    k-means parts them. Each other row of U then joins P or the negatives, whichever
    has the nearest prototype, and an ordinary classifier learns the two sides.

    Attributes
    ----------
    core_ : array of bool
        Which features are the core of P: those above the mean, then those below.
    reliable_index_ : array
        Numbers of the rows of U that were negative at first.
    positive_index_, negative_index_ : arrays
        Numbers of the rows of U that stand on either side in the end.
    """

    about = About(key="pnlh", paper="Fung et al. 2006, PNLH")

    presence: float = setting(
        1.0,
        Number(0),
        doc="Standard deviations from a column's mean that make a feature.",
    )
    n_clusters: int = setting(
        10, Whole(1), doc="Parts of the first negatives; each gives a prototype."
    )

    def _uses_embedding(self) -> bool:
        return True

    def _train(self, task: EstimatorTask) -> None:
        has = features(task.Z, self.presence)
        strength = strengths(has, task.positive)
        self.core_ = core(strength)
        typical = has[:, self.core_] @ strength[self.core_]
        first = lowest(typical, task.free, int(task.positive.sum()))
        self.reliable_index_ = task.reliable(first, typical)
        rest = np.setdiff1d(np.flatnonzero(task.free), self.reliable_index_)
        unit = on_unit_sphere(task.Z)
        seed = task.randomness.seed("clusters")
        negatives = prototypes(unit[self.reliable_index_], self.n_clusters, seed)
        toward = (
            unit[rest] @ on_unit_sphere(unit[task.positive].mean(0, keepdims=True)).T
        )
        nearer = toward[:, 0] > (unit[rest] @ negatives.T).max(axis=1)
        self.positive_index_ = rest[nearer]
        self.negative_index_ = np.union1d(self.reliable_index_, rest[~nearer])
        positive = np.concatenate([np.flatnonzero(task.positive), self.positive_index_])
        index = np.concatenate([positive, self.negative_index_])
        self.estimator_ = task.fit(
            index, np.arange(len(index)) < len(positive), "final"
        )


def features(Z: FloatArray, presence: float) -> BoolArray:
    """Tell which features rows have: values far above the mean, then far below."""
    spread = Z.std(axis=0)
    far = (Z - Z.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.hstack([far > presence, far < -presence])


def strengths(has: BoolArray, positive: BoolArray) -> FloatArray:
    """Return how much more common features are in P than in U, both scaled to 0-1."""

    def scaled(rows: BoolArray) -> FloatArray:
        share = rows.mean(axis=0)
        span = float(share.max() - share.min())
        return np.asarray((share - share.min()) / (span or 1.0))

    return scaled(has[positive]) - scaled(has[~positive])


def core(strength: FloatArray) -> BoolArray:
    """Return the features of more than mean strength that favour P."""
    return strength > max(float(strength.mean()), 0.0)


def lowest(typical: FloatArray, free: BoolArray, n_positive: int) -> BoolArray:
    """Return the free rows with no core feature at all.

    Dense features leave few such rows or none. Where there are fewer than in P, the
    rows with the least of the core are taken, as many as there are in P, at most half
    of the free ones.
    """
    chosen = free & (typical == 0)
    rows: IntArray = np.flatnonzero(free)
    count = min(n_positive, len(rows) // 2)
    if chosen.sum() < count:
        order = np.argsort(typical[rows], kind="stable")
        chosen[rows[order[:count]]] = True
    return chosen


def prototypes(unit: FloatArray, n_clusters: int, seed: int) -> FloatArray:
    """Return the directions of the clusters of some rows."""
    wanted = min(n_clusters, len(unit))
    outcome = f"n_clusters={n_clusters} cannot be made of them"
    with copies_told(unit, "first negatives", wanted, outcome):
        found = KMeans(wanted, n_init=3, random_state=seed).fit(unit)
    return on_unit_sphere(found.cluster_centers_)
