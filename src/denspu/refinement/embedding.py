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
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit
from sklearn.exceptions import NotFittedError

from denspu._machine import Deadline
from denspu._parameters import About, Number, OneOf, Whole, check_parameters, setting
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu._validation import validate_embedding
from denspu.base import Refiner, RefinerInput, forget
from denspu.exceptions import FewRowsWarning
from denspu.priors import PriorEstimate, estimate_prior_from_scores, mixture_share
from denspu.refinement.committee import (
    Rows,
    Scale,
    Scorer,
    bagged,
    leading_axes,
    learn_scale,
    parts,
    sure,
    trained,
)
from denspu.refinement.posterior import cut_at, known_cut

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
        scores = self._final_scores(everything, kept, margin)
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

        def fit(part: Rows, rng: np.random.Generator) -> Scorer:
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
        fit: Callable[[Rows, np.random.Generator], Scorer],
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

    def _final_scores(
        self, rows: Rows, kept: IntArray, margin: FloatArray
    ) -> FloatArray:
        log_odds = np.empty(len(rows.Z))
        log_odds[kept] = margin
        others = np.setdiff1d(np.arange(len(rows.Z)), kept, assume_unique=True)
        if len(others):  # not trained on, so the final model is fair to them
            log_odds[others] = self.scale_(self.scorer_(rows.Z[others]))
        return log_odds

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
