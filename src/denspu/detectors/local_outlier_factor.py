"""Local Outlier Factor (Breunig et al. 2000), for new points."""

from __future__ import annotations

from typing import ClassVar, Literal

import sklearn.neighbors

from denspu._parameters import OneOf, Whole
from denspu._random import Randomness
from denspu._typing import FloatArray
from denspu.base import CONTAMINATION_RULE, Detector, Rules
from denspu.exceptions import InvalidInputError


class LocalOutlierFactor(Detector):
    """Compare a row's density with that of its nearest neighbours.

    Parameters
    ----------
    n_neighbors : int, default=20
        Neighbours (all other rows, where there are fewer).
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows beyond the threshold; ``"auto"`` puts the threshold
        at the original paper's factor of 1.5.
    n_jobs : int or None
        Cores used.
    """

    _rules: ClassVar[Rules] = {
        "n_neighbors": (Whole(1),),
        "contamination": CONTAMINATION_RULE,
        "n_jobs": (OneOf(None), Whole()),
    }

    def __init__(
        self,
        *,
        n_neighbors: int = 20,
        contamination: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.contamination = contamination
        self.n_jobs = n_jobs

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        if len(Z) < 2:
            raise InvalidInputError(
                "LocalOutlierFactor compares a row with its neighbours, so it needs "
                "at least 2 rows. Got 1 sample."
            )
        self.model_ = sklearn.neighbors.LocalOutlierFactor(
            n_neighbors=max(1, min(self.n_neighbors, len(Z) - 1)),
            novelty=True,
            n_jobs=self.n_jobs,
        ).fit(Z)

    def _score(self, Z: FloatArray) -> FloatArray:
        return self.model_.score_samples(Z)

    def _natural_threshold(self) -> float:
        return -1.5
