"""Labels for all of U by cross-fitted rounds of small learners on embeddings.

Round 0 sets P against draws from U, rows far from the dense positive region being
drawn more often. Its scores for held-out positives and held-out U give the share of
positives inside U, hence a cut. Every later round trains on the labels of the round
before, the least sure rows left out, and labels each row by a model that has not seen
it, so that a wrong label can be undone.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit, logit
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from denspu._machine import Deadline
from denspu._parameters import About, Number, OneOf, Whole, check_parameters, setting
from denspu._random import Randomness
from denspu._share import cut_at, known_cut
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu._validation import validate_embedding
from denspu.base import FIXED_ROWS, Refiner, RefinerInput, forget
from denspu.detectors import DensityRatio
from denspu.exceptions import FewRowsWarning
from denspu.priors import PriorEstimate, estimate_prior_from_scores, mixture_share

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

PULL = 0.6
"""How far the mixture may move from the ratio, in half-widths of its interval."""

SLOPES = (-2.0, 2.5)
"""Where the logarithm of the slope of the log-odds is sought."""


class EmbeddingRefiner(Refiner):
    """Cross-fitted trees, kernels and neighbours on the embedding.

    Attributes
    ----------
    labels_ : array
        P(y = 1) of every training row: 1 for P, 0 for known negatives.
    prior_ : PriorEstimate
        The share of positives inside U with its interval.
    estimated_ : PriorEstimate
        What the cross-fitted scores say of it, also where it is known; only where rows
        could be held out and with ``prior="refit"``.
    changed_ : list of float
        Share of U that changed its label in each round after the first.
    unseen_scores_ : array
        Log-odds of every training row by models that have not seen it; only where
        rows could be held out. ``decision_function`` knows the training rows by heart
        and gives them larger ones.
    """

    about = About(key="embedding", uses_known_negatives=True)

    rounds: int = setting(
        2, Whole(0), doc="Rounds after the first at most; 0 keeps the bagged start."
    )
    folds: int = setting(
        5, Whole(2), doc="Parts of the rows; a row's label comes from the others'."
    )
    n_bags: int = setting(20, Whole(1), doc="Draws from U in round 0.")
    leave_out: float = setting(
        0.1,
        Number(0, 1, "left"),
        doc="Share of U, on either side, too near the cut to be trained on.",
    )
    tolerance: float = setting(
        0.005, Number(0, 1), doc="Stop when a smaller share of U changes its label."
    )
    draws: Literal["crossfit", "start"] = setting(
        "crossfit",
        OneOf("crossfit", "start"),
        doc="Which normality steers the draws of round 0: a density ratio found anew\n"
        "without the rows that are to be judged, or the boundary's scores. The\n"
        "boundary has seen all positives, which lowers the estimated prior.",
    )
    prior: Literal["refit", "start"] = setting(
        "refit",
        OneOf("refit", "start"),
        doc="Share of positives inside U: from the cross-fitted scores, or as the\n"
        "boundary estimated it. A share that the user knows stands in any case.",
    )
    max_unlabeled: int = setting(
        10_000,
        Whole(2),
        doc="Unlabelled rows that are trained on; a sample stands for more.",
    )
    random_state: RandomState = setting(None)

    # --- the rounds ------------------------------------------------------------------

    def refine(self, start: RefinerInput) -> Self:
        """Learn from the boundary's guess."""
        check_parameters(self)
        Z = validate_embedding(self, start.Z, reset=True)
        randomness = Randomness(self.random_state)
        self.axes_ = leading_axes(Z, randomness.seed("axes"))
        Z = self.axes_(Z)
        everything = Rows(
            Z=Z,
            positive=start.positive,
            free=start.free,
            labels=start.positive,
            scores=start.scores if self.draws == "start" else None,
            groups=start.groups,
        )
        kept = self._sample(everything, randomness.numpy("sample"))
        rows = everything.take(kept)
        margin = self._first_round(rows, start, randomness)
        margin = self._later_rounds(rows, margin, start, randomness)
        scores = np.empty(len(Z))
        scores[kept] = margin
        others = np.setdiff1d(np.arange(len(Z)), kept, assume_unique=True)
        if len(others):  # not trained on, so the final model is fair to them
            scores[others] = self.scale_(self.scorer_(Z[others]))
        if start.prior_known and start.free.any():
            # So far the sample was cut, held-out positives counted.
            ahead = known_cut(scores, start)
            cut = self.scale_.cut + ahead / self.scale_.slope
            self.scale_: Scale = replace(self.scale_, cut=cut)
            scores = scores - ahead
        known = start.positive.astype(np.float64)
        self.labels_ = np.where(everything.free, expit(scores), known)
        forget(self, "unseen_scores_")
        if self.cross_fitted_:
            self.unseen_scores_ = scores
        self.prior_: PriorEstimate = replace(
            self.prior_, n_unlabeled=int(everything.free.sum())
        )
        return self

    def _sample(self, rows: Rows, rng: np.random.Generator) -> IntArray:
        """Return P, the known negatives, and as many rows of U as can be trained on."""
        free = np.flatnonzero(rows.free)
        if len(free) <= self.max_unlabeled:
            return np.arange(len(rows.Z))
        drawn = rng.choice(free, self.max_unlabeled, replace=False)
        return np.sort(np.concatenate([np.flatnonzero(~rows.free), drawn]))

    def _first_round(
        self, rows: Rows, start: RefinerInput, randomness: Randomness
    ) -> FloatArray:
        self.n_bags_ = self._affordable_bags(rows, start.deadline, randomness)
        self.changed_: list[float] = []
        self.ratios_: list[PriorEstimate] = []
        forget(self, "estimated_")

        def fit(part: Rows, rng: np.random.Generator) -> Committee:
            return bagged(part, self.n_bags_, rng)

        columns = self._round(rows, fit, randomness, "round 0")
        if not self.cross_fitted_:
            whose = "you gave" if start.prior_known else "the boundary estimated"
            warnings.warn(
                "Too few positives or groups to hold any out: the share of positives "
                f"among the unlabelled stays as {whose} it, and nothing can be said of "
                "the quality of the labels.",
                FewRowsWarning,
                stacklevel=2,
            )
        margin = self._cut(
            rows, self.scale_(columns), start, randomness.numpy("prior 0")
        )
        # Later rounds learn from labels that go back to the very positives they judge.
        self.held_out_recall_ = float(np.mean(margin[rows.positive] > 0))
        self.held_out_called_ = float(np.mean(margin[rows.free] > 0))
        return margin

    def _affordable_bags(
        self, rows: Rows, deadline: Deadline, randomness: Randomness
    ) -> int:
        """Return how many bags fit into half of the time that is left."""
        if deadline.seconds is None:
            return self.n_bags
        began = time.perf_counter()
        bagged(rows, 1, randomness.numpy("clock"))(rows.Z)
        one = (time.perf_counter() - began) * (self.folds + 1)
        return int(np.clip(deadline.left() / 2 / one, 1, self.n_bags))

    def _later_rounds(
        self,
        rows: Rows,
        margin: FloatArray,
        start: RefinerInput,
        randomness: Randomness,
    ) -> FloatArray:
        took = 0.0
        for i in range(1, self.rounds + 1):
            began = time.perf_counter()
            labels = rows.positive | (rows.free & (margin > 0))
            use = ~rows.free | sure(margin, rows.free, self.leave_out)
            if (
                start.deadline.left() <= took
                or min(np.bincount(labels[use], minlength=2)) < 2
            ):
                break
            columns = self._round(
                replace(rows, labels=labels), trained, randomness, f"round {i}", use
            )
            rng = randomness.numpy(f"prior {i}")
            margin = self._cut(rows, self.scale_(columns), start, rng)
            self.changed_.append(
                float(np.mean((margin > 0) != labels, where=rows.free))
            )
            took = time.perf_counter() - began
            if self.changed_[-1] < self.tolerance:
                break
        return margin

    def _round(
        self,
        rows: Rows,
        fit: Callable[[Rows, np.random.Generator], Committee],
        randomness: Randomness,
        name: str,
        use: BoolArray | None = None,
    ) -> FloatArray:
        """Fit on all rows in ``use``; return what models without a row say of it."""
        use = np.ones(len(rows.Z), dtype=bool) if use is None else use
        rng = randomness.numpy(name)
        self.scorer_ = fit(rows.take(use), rng)
        columns = self.scorer_(rows.Z)
        splits = list(parts(rows, use, self.folds, randomness.seed(name)))
        self.cross_fitted_ = len(splits) > 0
        for train, test in splits:
            columns[test] = fit(rows.take(train), rng)(rows.Z[test])
        self.scale_ = learn_scale(columns, rows)
        return columns

    # --- the cut ---------------------------------------------------------------------

    def _cut(
        self,
        rows: Rows,
        margin: FloatArray,
        start: RefinerInput,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Move the margin so that 0 is the cut and its slope a log-odds."""
        positive, unlabeled = margin[rows.positive], margin[rows.free]
        found = estimate_prior_from_scores(positive, unlabeled, rng=rng)
        self.ratios_.append(found)
        share = start.prior_in_unlabeled
        if self.prior == "refit" and self.cross_fitted_:
            share = combined_share(positive, unlabeled, self.ratios_)
            self.estimated_ = around(share, self.ratios_[0])
        if start.prior_known:
            share = start.prior_in_unlabeled
            self.prior_ = found.with_share(share)
        else:
            self.prior_ = around(share, self.ratios_[0])
        cut = cut_at(unlabeled, share)
        slope = log_odds_slope(
            positive - cut, unlabeled - cut, self.prior_.label_frequency
        )
        self.scale_ = replace(self.scale_, cut=cut, slope=slope)
        return slope * (margin - cut)

    # --- answers ---------------------------------------------------------------------

    def decision_function(self, X: Any) -> FloatArray:
        """Return the log-odds of embeddings; above 0 is positive."""
        if not hasattr(self, "scorer_"):
            raise NotFittedError("EmbeddingRefiner has not refined yet: call refine.")
        Z = self.axes_(validate_embedding(self, X, reset=False))
        return self.scale_(self.scorer_(Z))

    def facts(self) -> dict[str, Any]:
        """Return the rounds, what they changed, and the estimated prior."""
        held_out = {}
        if self.cross_fitted_:
            held_out["held_out_recall"] = self.held_out_recall_
            held_out["held_out_called"] = self.held_out_called_
        return {
            "rounds": len(self.changed_),
            "changed": [round(share, 4) for share in self.changed_],
            "bags": self.n_bags_,
            "prior_in_unlabeled": self.prior_.prior_in_unlabeled,
            "prior_interval": [self.prior_.low, self.prior_.high],
            **held_out,
            "learner_weights": [round(float(w), 3) for w in self.scale_.weight],
        }


# --- the share and the slope ---------------------------------------------------------


def combined_share(
    positive: FloatArray, unlabeled: FloatArray, ratios: list[PriorEstimate]
) -> float:
    """Return the mean of three estimates, whose errors have little in common.

    The ratio of round 0 has no bias but is noisy; that of the present round is
    steadier but a little low, since its labels go back to the very positives it
    judges; the mixture is steadiest but presumes a form of the negatives, and may not
    go far from the first.
    """
    first, last = ratios[0], ratios[-1]
    reach = PULL * (first.high - first.low) / 2
    centre = first.prior_in_unlabeled
    mixture = mixture_share(positive, unlabeled, centre)
    mixture = float(np.clip(mixture, centre - reach, centre + reach))
    return (centre + last.prior_in_unlabeled + mixture) / 3


def around(share: float, found: PriorEstimate) -> PriorEstimate:
    """Return the estimate with another centre and the same width."""
    half = (found.high - found.low) / 2
    share = float(np.clip(share, 0, 1))
    return replace(
        found,
        prior_in_unlabeled=share,
        low=max(0.0, share - half),
        high=min(1.0, share + half),
    )


def log_odds_slope(
    positive: FloatArray, unlabeled: FloatArray, label_frequency: float
) -> float:
    """Return the slope a for which c·σ(a·margin) explains best which rows are in P.

    σ(a·margin) is then P(y = 1), 1/2 at the cut, learned from labels that are true.
    """

    def loss(log_slope: float) -> float:
        slope = np.exp(log_slope)
        labelled = np.log(label_frequency) + log_expit(slope * positive)
        not_labelled = np.log1p(-label_frequency * expit(slope * unlabeled) + 1e-12)
        return -float(labelled.sum() + not_labelled.sum())

    return float(np.exp(minimize_scalar(loss, bounds=SLOPES, method="bounded").x))


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
        some: dict[str, Any] = {
            name: None if column is None else column[index]
            for name, column in vars(self).items()
        }
        return Rows(**some)


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
        columns = []
        for members in self.kinds:
            if hasattr(members[0], "decision_function"):
                columns.append(np.mean([m.decision_function(Z) for m in members], 0))
            else:
                votes = np.mean([m.predict_proba(Z)[:, 1] for m in members], axis=0)
                columns.append(logit(np.clip(votes, 1 - SURE, SURE)))
        return np.column_stack(columns)


def bagged(rows: Rows, n_bags: int, rng: np.random.Generator) -> Committee:
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


def trained(rows: Rows, rng: np.random.Generator) -> Committee:
    """Train on the labels as if they were true."""
    Z, y = rows.Z, rows.labels
    few: IntArray = np.arange(len(Z))
    if len(Z) > KERNEL_ROWS:
        few = _stratified(y, KERNEL_ROWS, rng)
    trees = ExtraTreesClassifier(TREES, random_state=_seed(rng)).fit(Z, y)
    kernel = SVC(C=10.0, random_state=0).fit(Z[few], y[few])
    near = KNeighborsClassifier(min(NEIGHBORS, len(Z)), weights="distance").fit(Z, y)
    return Committee([[trees], [kernel], [near]])


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
