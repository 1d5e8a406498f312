"""One-class learning: a detector learns P, and U says where to cut.

Any registered detector: isolation forests (Liu et al. 2008, Hariri et al. 2019), the
local outlier factor (Breunig et al. 2000), one-class SVM (Schölkopf et al. 2001), ...
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from denspu._folds import deal_folds
from denspu._parameters import About, Number, OneOf, Part, Whole, setting
from denspu._random import Randomness
from denspu._registry import prepare_part, resolve_part
from denspu._scores import cut_at, quantile_cut
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray, Scenario
from denspu._validation import PUInput
from denspu.base import forget
from denspu.methods._boundary import leaves_itself_out
from denspu.methods._classical import EmbeddingPU, RowScale
from denspu.methods._evidence import prior_setting, resolve_prior, scenario_setting


class OneClass(EmbeddingPU):
    """A detector of P, cut at the share of positives in U.

    Call positive what a detector of P finds normal.

    Attributes
    ----------
    detector_ : object
    cut_ : float
    prior_, prior_in_unlabeled_ : float
        With ``threshold="prior"``.
    """

    about = About(
        key="one_class",
        paper="Khan and Madden 2014, One-class classification (a survey)",
        needs_prior=True,
    )

    detector: Any = setting(
        "knn",
        Part("detector"),
        doc="A key, or an object with ``fit`` and ``score_samples``.",
    )
    threshold: Literal["prior", "held_out"] = setting(
        "prior",
        OneOf("prior", "held_out"),
        doc="Above the cut lies the share of positives inside U, or below it the "
        "share ``outside`` of held-out positives.",
    )
    outside: float = setting(0.1, Number(0, 1, "neither"), doc="See ``threshold``.")
    folds: int = setting(5, Whole(2, 100), doc="Parts of P held out in turn.")
    prior: float | Literal["estimate"] = prior_setting()
    scenario: Scenario = scenario_setting()

    def _learns_from_prior(self) -> bool:
        return bool(self.threshold == "prior")

    def _learn(self, Z: FloatArray, data: PUInput, randomness: Randomness) -> None:
        for name in ("prior_", "prior_in_unlabeled_"):
            forget(self, name)
        self.scale_ = RowScale.of(Z)
        Z = self.scale_(Z)
        part = resolve_part(self.detector, "detector", argument="detector")
        template = prepare_part(part, randomness, "detector", device=self.device_)
        free = data.unlabeled & ~data.known_negative
        self.detector_ = fit_detector(template, Z, data.positive, free)
        inner = self.detector_.score_samples(Z[free])
        self.spread_ = float(np.std(inner)) or 1.0
        if self.threshold == "prior":
            self.prior_, self.prior_in_unlabeled_ = resolve_prior(
                self.prior, data, self.scenario, randomness, rows=Z, device=self.device_
            )
            inside = self.prior_in_unlabeled_
            share = Share.exactly(inside, "unlabeled", Counts.seen(data)).to("open")
            self.cut_ = cut_at(inner, share.value)
        else:
            scores = self._held_out(template, Z, data, free, randomness)
            self.cut_ = quantile_cut(scores, self.outside)

    def _held_out(
        self,
        template: Any,
        Z: FloatArray,
        data: PUInput,
        free: BoolArray,
        randomness: Randomness,
    ) -> FloatArray:
        """Return scores of P, each row judged without its own (or its group's) help."""
        if data.groups is None and leaves_itself_out(self.detector_):
            return np.asarray(self.detector_._scores_by_others(Z[data.positive]))
        rng = randomness.numpy("folds")
        fold = deal_folds(data.positive, data.groups, self.folds, rng)
        scores = np.full(len(Z), np.nan)
        for k in np.unique(fold[data.positive]):
            rest = fold != k if len(np.unique(fold)) > 1 else np.ones(len(Z), bool)
            if (data.positive & rest).sum() < 2:
                continue
            fitted = fit_detector(template, Z, data.positive & rest, free & rest)
            own = data.positive & (fold == k)
            scores[own] = fitted.score_samples(Z[own])
        held: FloatArray = scores[data.positive & ~np.isnan(scores)]
        if len(held):
            return held
        return np.asarray(self.detector_.score_samples(Z[data.positive]))

    def _score(self, Z: FloatArray) -> FloatArray:
        scores = self.detector_.score_samples(self.scale_(Z))
        return np.asarray((scores - self.cut_) / self.spread_)


def fit_detector(
    template: Any, Z: FloatArray, positive: BoolArray, free: BoolArray
) -> Any:
    """Return a detector fitted on P, and on U too if it compares the two."""
    fitted = clone(template, safe=False)
    if getattr(fitted, "needs_unlabeled", False):
        rows = positive | free
        return fitted.fit(Z[rows], positive[rows].astype(np.int64))
    return fitted.fit(Z[positive])
