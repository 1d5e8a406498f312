"""Rare positives: a good ranking first, then a cut where the prior says.

With one positive in a thousand rows there are no two modes to cut between, and nearly
all of U is negative: U itself is the negative class, and what counts is the order of
the few rows at the top.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score

from denspu._folds import deal_folds
from denspu._machine import in_threads, n_threads
from denspu._parameters import About, OneOf, Whole, check_parameters, setting
from denspu._random import Randomness
from denspu._share import known_cut, prior_cut
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu._validation import validate_embedding
from denspu.base import Refiner, RefinerInput
from denspu.exceptions import InvalidInputError
from denspu.priors import estimate_prior_from_scores

BLOCK = 50_000
"""Rows scored at once."""

KEPT = 0.95
"""Share of held-out positives that should pass the screen."""

ROOM = 5
"""Rows that pass the screen for each positive that U is thought to hold."""

SURE = 1e-4
"""Votes of a forest are kept this far from 0 and 1."""

FOREST_COST = 4.0
"""Seconds of a forest for each second of boosting; only the clock uses it."""

EDGE = 0.1
"""Share of the passed rows, those that just passed, which say where the rest goes."""

FEW = 20
"""Labelled positives below which the ranking is no ground for a prior."""


class RankingRefiner(Refiner):
    """Rare positives: boosted trees of P against U, then against the top.

    Round one fits small boosted trees on P against a sample of U and scores all rows.
    Round two fits larger boosted trees and extremely randomised trees on P against the
    rows of U that came out on top, the hard negatives, and orders those anew; the rest
    keep their place below. Rows are dealt into folds, and no training row is scored by
    a model that saw it. Which learner ranks, or the mean of both, is chosen by the
    average precision of held-out positives against U. Where U has at most ``max_hard``
    rows all of it is looked at closely, without a screen.

    Log-odds are shifted so that the estimated share of positives in U lies above 0.

    Attributes
    ----------
    labels_ : array
        P(y = 1) of every training row: 1 for P, 0 for known negatives.
    fold_ : array
        The fold of every training row.
    hard_ : array
        Training rows of U that passed the screen.
    learner_ : str
        Who ranks: ``"screen"``, ``"boosting"``, ``"forest"`` or ``"both"``.
    prior_in_unlabeled_ : float
        The share of U that is called positive.
    prior_ : PriorEstimate or None
        That share with its interval, where it was read off the ranking.
    checks_ : dict
        Average precision of held-out positives against U, by learner.
    """

    about = About(key="ranking", uses_known_negatives=True)

    rounds: int = setting(2, Whole(1, 2), doc="1 stops after the screen.")
    learner: Literal["auto", "boosting", "forest", "both"] = setting(
        "auto",
        OneOf("auto", "boosting", "forest", "both"),
        doc="Who orders the top in round two; 'auto' chooses without labels.",
    )
    folds: int = setting(
        3, Whole(2, 100), doc="At most one for each labelled positive, or their groups."
    )
    screen_rows: int = setting(
        40_000, Whole(1), doc="Rows of U that the screen learns from in each fold."
    )
    max_hard: int = setting(
        80_000,
        Whole(1),
        doc="Rows of U that pass the screen at most; more where U is thought to hold\n"
        "many positives.",
    )
    n_trees: int = setting(60, Whole(1), doc="Trees of a forest.")
    max_iter: int = setting(
        200, Whole(1), doc="Rounds of boosting; the screen takes a third of them."
    )
    prior: Literal["refit", "start"] = setting(
        "refit",
        OneOf("refit", "start"),
        doc="Share of positives inside U that places the cut: from the cross-fitted\n"
        "ranking, or as the boundary estimated it. Fewer than 20 positives keep the\n"
        "boundary's, and a share that the user knows stands.",
    )
    n_jobs: int | None = setting(
        None,
        OneOf(None),
        Whole(1),
        Whole(high=-1),
        doc="Threads of the forest; None is all cores.",
    )
    random_state: RandomState = setting(None)

    # --- learning --------------------------------------------------------------------

    def refine(self, start: RefinerInput) -> Self:
        """Learn to rank from P and U."""
        check_parameters(self)
        Z = validate_embedding(self, start.Z, reset=True)
        if not (start.positive.any() and start.unlabeled.any()):
            missing = "unlabelled row" if start.positive.any() else "labelled positive"
            raise InvalidInputError(
                "A ranking compares labelled positives with unlabelled rows, and there "
                f"is no {missing} among {len(start.positive)} rows. Pass at least one "
                "of each."
            )
        randomness = Randomness(self.random_state)
        self.fold_ = deal_folds(
            start.positive, start.groups, self.folds, randomness.numpy("folds")
        )
        self.n_folds_ = int(self.fold_.max()) + 1
        self.checks_: dict[str, float] = {}
        self.screen_: list[Any] = []
        self.close_: dict[str, list[Any]] = {}
        self.learner_, self.screen_cut_, self.floor_ = "screen", -np.inf, 0.0
        self.hard_ = np.flatnonzero(start.unlabeled)
        scores = np.zeros(len(Z), dtype=np.float32)
        if self.rounds == 1 or len(self.hard_) > self._room(start):
            scores = self._screen(Z, start, randomness)
        if self.rounds == 2 and (not self.screen_ or start.deadline.left() > 0):
            scores = self._look_closely(Z, scores, start, randomness)
        self._place_cut(scores, start)
        return self

    def _training_folds(self) -> Iterator[tuple[int, BoolArray]]:
        """Yield each fold and the rows to learn from; a single fold learns from all."""
        for fold in range(self.n_folds_):
            yield fold, (self.fold_ != fold) | (self.n_folds_ == 1)

    def _room(self, start: RefinerInput) -> int:
        """Return how many rows of U may pass the screen."""
        n_unlabeled = int(start.unlabeled.sum())
        expected = ROOM * start.prior_in_unlabeled * n_unlabeled
        return int(min(n_unlabeled, max(self.max_hard, expected)))

    def _screen(
        self, Z: FloatArray, start: RefinerInput, randomness: Randomness
    ) -> FloatArray:
        """Round one: score all rows, and say which of U pass."""
        scores = np.empty(len(Z), dtype=np.float32)
        for fold, train in self._training_folds():
            # P, all known negatives and a sample of the other rows of U
            other = np.flatnonzero(train & start.free)
            rng = randomness.numpy(f"{fold}/U")
            drawn = rng.choice(other, min(self.screen_rows, len(other)), replace=False)
            told = np.flatnonzero(train & (start.positive | start.known_negative))
            rows = np.sort(np.concatenate([told, drawn]))
            model = self._learner("screen", randomness.seed(f"{fold}/screen"))
            model.fit(Z[rows], start.positive[rows])
            self.screen_.append(model)
            own = np.flatnonzero(self.fold_ == fold)
            scores[own] = _in_blocks(model.decision_function, Z, own)
        self.checks_["screen"] = float(average_precision_score(start.positive, scores))
        # Most positives pass, and as many rows of U as there is room for.
        unlabeled, room = scores[self.hard_], self._room(start)
        wanted = np.quantile(scores[start.positive], 1 - KEPT)
        passing = int((unlabeled >= wanted).sum())
        count = int(np.clip(passing, -(-room // 2), room))
        self.screen_cut_ = prior_cut(unlabeled, count / len(unlabeled))
        self.hard_ = self.hard_[unlabeled >= self.screen_cut_]
        return scores

    def _look_closely(
        self,
        Z: FloatArray,
        screened: FloatArray,
        start: RefinerInput,
        randomness: Randomness,
    ) -> FloatArray:
        """Round two: order P and the rows that passed anew."""
        taught = start.positive | start.known_negative
        taught[self.hard_] = True
        passed = screened >= self.screen_cut_
        names = ["boosting", "forest"]
        if self.learner in names:
            names = [self.learner]
        found: dict[str, FloatArray] = {}
        for name in names:
            began = time.perf_counter()
            found[name], self.close_[name] = screened.copy(), []
            for fold, train in self._training_folds():
                rows = np.flatnonzero(train & taught)
                model = self._learner(name, randomness.seed(f"{fold}/{name}"))
                self.close_[name].append(model.fit(Z[rows], start.positive[rows]))
                own = np.flatnonzero((self.fold_ == fold) & passed)
                found[name][own] = self._margins(name, model, Z, own)
            cost = (time.perf_counter() - began) * FOREST_COST
            if self.learner == "auto" and cost > start.deadline.left():
                break
        return self._choose(found, screened, passed, start)

    def _learner(self, name: str, seed: int) -> Any:
        if name == "forest":
            return ExtraTreesClassifier(
                self.n_trees,
                min_samples_leaf=3,
                max_features=0.6,
                class_weight="balanced",
                n_jobs=n_threads(self.n_jobs),
                random_state=seed,
            )
        screen = name == "screen"
        return HistGradientBoostingClassifier(
            learning_rate=0.15 if screen else 0.05,
            max_iter=max(1, self.max_iter // 3) if screen else self.max_iter,
            l2_regularization=1.0 if screen else 10.0,
            max_features=1.0 if screen else 0.3,
            max_leaf_nodes=8,
            early_stopping=False,
            random_state=seed,
        )

    def _margins(
        self, name: str, model: Any, Z: FloatArray, rows: IntArray
    ) -> FloatArray:
        if name == "boosting":
            return _in_blocks(model.decision_function, Z, rows)
        model.set_params(n_jobs=1)  # threads take blocks, and sums keep their order

        def votes(part: FloatArray) -> FloatArray:
            share = np.clip(model.predict_proba(part)[:, 1], SURE, 1 - SURE)
            return np.log(share) - np.log1p(-share)

        return _in_blocks(votes, Z, rows, n_threads(self.n_jobs))

    def _choose(
        self,
        found: dict[str, FloatArray],
        screened: FloatArray,
        passed: BoolArray,
        start: RefinerInput,
    ) -> FloatArray:
        """Take the learner that ranks held-out positives best against U."""
        if len(found) == 2:
            found["both"] = (found["boosting"] + found["forest"]) / 2
        floors = {}
        for name, scores in found.items():
            floors[name] = 0.0
            if self.screen_:  # what rows that just passed it score on a closer look
                edge = screened[self.hard_] <= np.quantile(screened[self.hard_], EDGE)
                floors[name] = float(scores[self.hard_][edge].mean())
            below = screened[~passed] - self.screen_cut_
            scores[~passed] = below + floors[name]
            self.checks_[name] = float(average_precision_score(start.positive, scores))
        best = max(found, key=lambda name: self.checks_[name])
        self.learner_ = best if self.learner == "auto" else self.learner
        self.floor_ = floors[self.learner_]
        return found[self.learner_]

    def _place_cut(self, scores: FloatArray, start: RefinerInput) -> None:
        """Put 0 where the estimated share of U lies above it."""
        open_rows = scores[start.free]
        if not len(open_rows):
            open_rows = scores[start.unlabeled]
        self.prior_ = None
        self.prior_in_unlabeled_ = float(start.prior_in_unlabeled)
        settled = self.prior == "start" or start.prior_known
        # Scores that were not cross-fitted say nothing of the share.
        if not settled and start.positive.sum() >= FEW and self.n_folds_ > 1:
            rng = Randomness(self.random_state).numpy("prior")
            labelled = scores[start.positive]
            self.prior_ = estimate_prior_from_scores(labelled, open_rows, rng=rng)
            self.prior_in_unlabeled_ = self.prior_.prior_in_unlabeled
        if start.prior_known and start.free.any():
            self.cut_ = known_cut(scores, start)
        else:
            cut = prior_cut(open_rows, self.prior_in_unlabeled_)
            self.cut_ = float(np.nextafter(cut, np.float32(-np.inf)))
        self.labels_ = expit(scores.astype(np.float64) - self.cut_)
        self.labels_[start.positive] = 1.0
        self.labels_[start.known_negative] = 0.0
        self.n_called_ = int((open_rows.astype(np.float64) > self.cut_).sum())

    # --- answers ---------------------------------------------------------------------

    def decision_function(self, X: Any) -> FloatArray:
        """Return log-odds; the estimated share of U lies above 0."""
        if not hasattr(self, "cut_"):
            raise NotFittedError("RankingRefiner has not learned yet: call refine.")
        Z = validate_embedding(self, X, reset=False)
        rows = np.arange(len(Z))
        scores = np.zeros(len(Z))
        for model in self.screen_:
            scores += _in_blocks(model.decision_function, Z, rows) / len(self.screen_)
        if self.learner_ == "screen":
            return scores - self.cut_
        passed = scores >= self.screen_cut_
        both = self.learner_ == "both"
        names = ("boosting", "forest") if both else (self.learner_,)
        total = np.zeros(int(passed.sum()))
        for name in names:
            for model in self.close_[name]:
                total += self._margins(name, model, Z, rows[passed])
        scores += self.floor_ - (self.screen_cut_ if self.screen_ else 0.0)
        scores[passed] = total / (len(names) * self.n_folds_)
        return scores - self.cut_

    def facts(self) -> dict[str, Any]:
        """Return who ranks, how well without labels, and how many are called."""
        return {
            "learner": self.learner_,
            "folds": self.n_folds_,
            "passed_screen": len(self.hard_),
            "average_precision_held_out_vs_unlabeled": dict(self.checks_),
            "prior_in_unlabeled": self.prior_in_unlabeled_,
            "n_called": self.n_called_,
        }


def _in_blocks(
    score: Callable[[FloatArray], FloatArray],
    Z: FloatArray,
    rows: IntArray,
    threads: int = 1,
) -> FloatArray:
    """Score some rows of ``Z``, never copying more than a few blocks of them."""
    blocks = [rows[at : at + BLOCK] for at in range(0, len(rows), BLOCK)]
    parts = in_threads(lambda block: score(Z[block]), blocks, threads)
    return np.concatenate(parts) if parts else np.empty(0)
