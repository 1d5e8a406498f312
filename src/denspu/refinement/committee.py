"""Small learners of P against draws from U, and of labels, as one committee."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.base import FIXED_ROWS
from denspu.detectors import DensityRatio

WIDE, N_AXES = 128, 64
"""Embeddings wider than the first number are reduced to the second by PCA."""

WIDE_ROWS = 20_000
"""Rows from which the axes are learned."""

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

SHARPNESS = 50.0
"""A learner whose held-out AUC is 0.02 lower than the best weighs exp(-1)."""

Scorer = Callable[[FloatArray], FloatArray]
"""Embeddings in, one column of scores a learner out."""


# --- rows ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that are trained on."""

    Z: FloatArray
    positive: BoolArray
    free: BoolArray
    """Unlabelled and not known to be negative: the rows whose label is sought."""
    labels: BoolArray
    """What each row counts as."""
    scores: FloatArray | None
    """Normality by the boundary; None: to be found anew from the rows at hand."""
    groups: IntArray | None

    def take(self, index: IntArray | BoolArray) -> Rows:
        """Return some of the rows."""
        return Rows(
            self.Z[index],
            self.positive[index],
            self.free[index],
            self.labels[index],
            None if self.scores is None else self.scores[index],
            None if self.groups is None else self.groups[index],
        )


@dataclass(frozen=True, eq=False)
class Axes:
    """The directions in which wide embeddings spread most; narrow ones stay as is."""

    mean: FloatArray
    directions: FloatArray | None

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Return coordinates, the same whatever rows come together."""
        if self.directions is None:
            return Z
        out = np.empty((len(Z), self.directions.shape[1]), dtype=Z.dtype)
        block = np.zeros((FIXED_ROWS, Z.shape[1]), dtype=Z.dtype)
        for first in range(0, len(Z), FIXED_ROWS):
            rows = Z[first : first + FIXED_ROWS]
            block[: len(rows)] = rows - self.mean
            out[first : first + FIXED_ROWS] = (block @ self.directions)[: len(rows)]
        return out


def leading_axes(Z: FloatArray, seed: int) -> Axes:
    """Return the principal axes of embeddings wider than learners of distances like."""
    if Z.shape[1] <= WIDE or len(Z) <= N_AXES:
        return Axes(Z[:0], None)
    found = PCA(N_AXES, svd_solver="randomized", random_state=seed)
    found.fit(Z[:: max(1, len(Z) // WIDE_ROWS)])
    return Axes(found.mean_, np.ascontiguousarray(found.components_.T))


def parts(
    rows: Rows, use: BoolArray, folds: int, seed: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield rows to train on and rows to judge; no group is on both sides.

    Nothing is yielded where a part would leave one class without a row.
    """
    counts = np.bincount(rows.labels, minlength=2)
    folds = min(folds, *counts)
    splitter: Any = StratifiedKFold
    if rows.groups is not None:
        folds, splitter = min(folds, len(np.unique(rows.groups))), StratifiedGroupKFold
    if folds < 2:
        return
    split = splitter(folds, shuffle=True, random_state=seed)
    found = [
        (train[use[train]], test)
        for train, test in split.split(rows.Z, rows.labels, rows.groups)
    ]
    if all(min(np.bincount(rows.labels[train], minlength=2)) > 0 for train, _ in found):
        yield from found


def sure(margin: FloatArray, free: BoolArray, leave_out: float) -> BoolArray:
    """Return the rows of U that are not among the nearest to the cut, side by side."""
    answer = np.zeros(len(margin), dtype=bool)
    for side in (free & (margin > 0), free & (margin <= 0)):
        if side.any():
            distance = np.abs(margin[side])
            answer[side] = distance >= np.quantile(distance, leave_out)
    return answer


# --- learners ------------------------------------------------------------------------


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


# --- from columns to a margin --------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scale:
    """How the learners' columns become one margin with the cut at 0."""

    mean: FloatArray
    spread: FloatArray
    weight: FloatArray
    cut: float = 0.0
    slope: float = 1.0

    def __call__(self, columns: FloatArray) -> FloatArray:
        """Return the margin."""
        terms = (columns - self.mean) / self.spread * self.weight
        margin = np.zeros(len(columns))
        for term in terms.T:  # in this order whatever rows come together
            margin += term
        return self.slope * (margin - self.cut)


def learn_scale(columns: FloatArray, rows: Rows) -> Scale:
    """Return the weights of the learners, by how they rank held-out P above U.

    That AUC is an affine function of the true one, so no label of U is needed.
    """
    known = rows.positive | rows.free
    spread = np.maximum(columns.std(axis=0), 1e-12)
    auc = np.array([roc_auc_score(rows.positive[known], c[known]) for c in columns.T])
    weight = np.exp(SHARPNESS * (auc - auc.max()))
    return Scale(columns.mean(axis=0), spread, weight / weight.sum())
