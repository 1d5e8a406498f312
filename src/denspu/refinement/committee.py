"""Small learners of P against draws from U, and of labels, as one committee."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.detectors import DensityRatio
from denspu.refinement.rows import Rows

TREES = 100
"""Trees in a round; a bag of round 0 grows a tenth."""

NEIGHBORS = 10
KERNEL_ROWS = 4_000
"""Rows a kernel machine is trained on at most."""

BAG_ROWS = (100, 1_000)
"""Rows drawn from U for one bag: as many as positives, within these limits."""

SURE = 0.995
"""Shares of votes are kept inside (1 - SURE, SURE) before they become log-odds."""

RAMP = 1.3
"""The most normal rows of U are drawn ever less often, the others always alike."""

LEAST_DRAW = 0.05
"""No unlabelled row is drawn less often than this, whatever the boundary says."""

Scorer = Callable[[FloatArray], FloatArray]
"""Embeddings in, one column of scores a learner out."""


class Committee:
    """Fitted learners of a few kinds; members of a kind are averaged."""

    def __init__(self, kinds: list[list[Any]]) -> None:
        self.kinds = kinds

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Return one column a kind."""
        return np.column_stack([_mean_score(members, Z) for members in self.kinds])


def _mean_score(members: list[Any], Z: FloatArray) -> FloatArray:
    if hasattr(members[0], "decision_function"):
        return np.mean([m.decision_function(Z) for m in members], axis=0)
    votes = np.mean([m.predict_proba(Z)[:, 1] for m in members], axis=0)
    return logit(np.clip(votes, 1 - SURE, SURE))


def bagged(rows: Rows, n_bags: int, rng: np.random.Generator) -> Scorer:
    """Set P against draws from the other rows."""
    positive = np.flatnonzero(rows.positive)
    other = np.flatnonzero(~rows.positive)
    size = int(np.clip(len(positive), *BAG_ROWS))
    chance = chances(rows, rng)
    chance /= chance.sum()
    trees, kernels = [], []
    for _ in range(n_bags):
        drawn = rng.choice(other, min(size, (len(other) + 1) // 2), False, chance)
        kept = positive
        if len(positive) > size:
            kept = rng.choice(positive, size, replace=False)
        Z = rows.Z[np.concatenate([kept, drawn])]
        y = np.arange(len(Z)) < len(kept)
        forest = ExtraTreesClassifier(
            TREES // 10, class_weight="balanced", random_state=_seed(rng)
        )
        trees.append(forest.fit(Z, y))
        kernel = SVC(C=1.0, class_weight="balanced", random_state=0)  # draws nothing
        kernels.append(kernel.fit(Z, y))
    return Committee([trees, kernels])


def trained(rows: Rows, rng: np.random.Generator) -> Scorer:
    """Train on the labels as if they were true."""
    Z, y = rows.Z, rows.labels
    few: IntArray = np.arange(len(Z))
    if len(Z) > KERNEL_ROWS:
        few = _stratified(y, KERNEL_ROWS, rng)
    return Committee(
        [
            [ExtraTreesClassifier(TREES, random_state=_seed(rng)).fit(Z, y)],
            [SVC(C=10.0, random_state=0).fit(Z[few], y[few])],
            [
                KNeighborsClassifier(min(NEIGHBORS, len(Z)), weights="distance").fit(
                    Z, y
                )
            ],
        ]
    )


def _stratified(y: BoolArray, size: int, rng: np.random.Generator) -> IntArray:
    """Draw rows of both classes in their shares, at least two of each."""
    kept = []
    for rows in (np.flatnonzero(y), np.flatnonzero(~y)):
        count = min(len(rows), max(2, round(size * len(rows) / len(y))))
        kept.append(rng.choice(rows, count, replace=False))
    return np.concatenate(kept)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31 - 1))


def chances(rows: Rows, rng: np.random.Generator) -> FloatArray:
    """Return how often rows that are not in P are drawn: by rank of normality."""
    chance = np.ones(len(rows.Z))
    scores = rows.scores
    if scores is None and rows.positive.sum() > 1 and rows.free.any():
        detector = DensityRatio(
            around="positives", n_positives=5, device="cpu", random_state=_seed(rng)
        )
        known = rows.positive | rows.free
        detector.fit(rows.Z[known], rows.positive[known].astype(np.int64))
        scores = detector.score_samples(rows.Z)
    if scores is not None and rows.free.any():
        scores = scores[rows.free]
        rank = np.searchsorted(np.sort(scores), scores, side="right") / len(scores)
        chance[rows.free] = np.clip(RAMP * (1 - rank), LEAST_DRAW, 1)
    return chance[~rows.positive]
