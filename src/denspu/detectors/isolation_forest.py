"""Isolation Forest (Liu et al. 2008), the paper's detector."""

from __future__ import annotations

from typing import ClassVar, Literal

import sklearn.ensemble

from denspu._parameters import OneOf, Whole
from denspu._random import Randomness
from denspu._typing import FloatArray, RandomState
from denspu.base import CONTAMINATION_RULE, Detector, Rules


class IsolationForest(Detector):
    """Score rows by how many random splits isolate them.

    Parameters
    ----------
    n_estimators : int, default=1000
        Trees. On 512-dimensional embeddings 100 trees rank poorly.
    max_samples : int, default=256
        Rows a tree sees (all, where there are fewer).
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows beyond the threshold; ``"auto"`` puts the threshold
        at the original paper's score of -0.5.
    random_state : int, generator or None
    n_jobs : int or None
        Cores used for fitting.
    """

    _rules: ClassVar[Rules] = {
        "n_estimators": (Whole(1),),
        "max_samples": (Whole(1),),
        "contamination": CONTAMINATION_RULE,
        "n_jobs": (OneOf(None), Whole()),
    }

    def __init__(
        self,
        *,
        n_estimators: int = 1000,
        max_samples: int = 256,
        contamination: float | Literal["auto"] = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.contamination = contamination
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        self.forest_ = sklearn.ensemble.IsolationForest(
            n_estimators=self.n_estimators,
            max_samples=min(self.max_samples, len(Z)),
            random_state=randomness.seed("forest"),
            n_jobs=self.n_jobs,
        ).fit(Z)

    def _score(self, Z: FloatArray) -> FloatArray:
        return self.forest_.score_samples(Z)

    def _natural_threshold(self) -> float:
        return -0.5
