"""One-class learning: a detector learns P, and the share of positives in U cuts.

Any registered detector: isolation forests (Liu et al. 2008, Hariri et al. 2019), the
local outlier factor (Breunig et al. 2000), one-class SVM (Schölkopf et al. 2001), ...
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from denspu._parameters import About, Part, setting
from denspu._random import Randomness
from denspu._registry import prepare_part, resolve_part
from denspu._share import cut_at
from denspu._typing import BoolArray, FloatArray, Scenario
from denspu._validation import PUInput
from denspu.methods._classical import EmbeddingPU, RowScale, shares
from denspu.methods._evidence import prior_setting, scenario_setting


class OneClass(EmbeddingPU):
    """A detector of P, cut at the share of positives in U.

    Call positive what a detector of P finds normal.

    Attributes
    ----------
    detector_ : object
    cut_ : float
    prior_, prior_in_unlabeled_ : float
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
    prior: float | Literal["estimate"] = prior_setting()
    scenario: Scenario = scenario_setting()

    def _learn(self, Z: FloatArray, data: PUInput, randomness: Randomness) -> None:
        self.scale_ = RowScale.of(Z)
        Z = self.scale_(Z)
        part = resolve_part(self.detector, "detector", argument="detector")
        part = prepare_part(part, randomness, "detector", device=self.device_)
        free = data.unlabeled & ~data.known_negative
        self.detector_ = fit_detector(part, Z, data.positive, free)
        inner = self.detector_.score_samples(Z[free])
        self.spread_ = float(np.std(inner)) or 1.0
        self.prior_, self.prior_in_unlabeled_, inside = shares(
            self.prior, self.scenario, Z, data, randomness, self.device_
        )
        self.cut_ = cut_at(inner, inside)

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
