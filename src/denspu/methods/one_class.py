"""One-class learning: a detector learns P, and U says where to cut.

Any registered detector: isolation forests (Liu et al. 2008, Hariri et al. 2019), the
local outlier factor (Breunig et al. 2000), one-class SVM (Schölkopf et al. 2001), ...
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from denspu._folds import deal_folds
from denspu._parameters import Number, OneOf, Part, Whole
from denspu._random import Randomness
from denspu._registry import prepare_part, resolve_part
from denspu._scores import quantile_cut
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray, RandomState
from denspu._validation import PUInput
from denspu.base import Rules, forget
from denspu.methods._boundary import leaves_itself_out
from denspu.methods._embedding import EmbeddingPU
from denspu.methods._estimator import RowScale
from denspu.methods._prior import PRIOR_RULE, SCENARIO_RULE, resolve_prior
from denspu.refinement.posterior import cut_at


class OneClass(EmbeddingPU):
    """Call positive what a detector of P finds normal.

    Parameters
    ----------
    detector : str or object, default="knn"
        A registered detector, or an object with ``fit`` and ``score_samples``.
    threshold : {"prior", "held_out"}, default="prior"
        ``"prior"``: the estimated share of positives inside U lies above the cut.
        ``"held_out"``: the share ``outside`` of held-out positives lies below; U is
        not looked at.
    outside : float, default=0.1
        See ``threshold``.
    folds : int, default=5
        Parts of P that are held out in turn for ``threshold="held_out"``.
    prior : float or "estimate", default="estimate"
        Share of positives in the population: in all rows (one-sample), or in U.
    scenario : {"one-sample", "two-sample"}, default="one-sample"
    encoder, random_state, device, verbose
        As everywhere.

    Attributes
    ----------
    detector_ : object
    cut_ : float
    prior_, prior_in_unlabeled_ : float
        With ``threshold="prior"``.
    """

    _rules: ClassVar[Rules] = {
        **EmbeddingPU._rules,
        "detector": (Part("detector"),),
        "threshold": (OneOf("prior", "held_out"),),
        "outside": (Number(0, 1, "neither"),),
        "folds": (Whole(2, 100),),
        "prior": PRIOR_RULE,
        "scenario": SCENARIO_RULE,
    }

    def __init__(
        self,
        *,
        detector: Any = "knn",
        threshold: Literal["prior", "held_out"] = "prior",
        outside: float = 0.1,
        folds: int = 5,
        prior: float | Literal["estimate"] = "estimate",
        scenario: Literal["one-sample", "two-sample"] = "one-sample",
        encoder: Any = "auto",
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.detector = detector
        self.threshold = threshold
        self.outside = outside
        self.folds = folds
        self.prior = prior
        self.scenario = scenario
        self.encoder = encoder
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

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
