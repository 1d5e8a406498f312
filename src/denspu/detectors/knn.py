"""Distance to the nearest rows: simple, local, hard to beat."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from denspu._device import resolve_device
from denspu._parameters import OneOf, Whole
from denspu._random import Randomness
from denspu._typing import FloatArray
from denspu.base import CONTAMINATION_RULE, Detector, Rules
from denspu.detectors.neighbours import Metric, Neighbours
from denspu.exceptions import InvalidInputError


class KNNDistance(Detector):
    """Score rows by minus their mean distance to the nearest training rows.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours (all other rows, where there are fewer).
    metric : {"euclidean", "cosine"}, default="euclidean"
    statistic : {"mean", "kth"}, default="mean"
        The mean distance of the neighbours, or that of the farthest.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows beyond the threshold; ``"auto"`` leaves a twentieth
        outside when each row is judged by the others.
    device : str, default="auto"
    """

    _rules: ClassVar[Rules] = {
        "n_neighbors": (Whole(1),),
        "metric": (OneOf("euclidean", "cosine"),),
        "statistic": (OneOf("mean", "kth"),),
        "contamination": CONTAMINATION_RULE,
    }

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        metric: Metric = "euclidean",
        statistic: Literal["mean", "kth"] = "mean",
        contamination: float | Literal["auto"] = "auto",
        device: str = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.statistic = statistic
        self.contamination = contamination
        self.device = device

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        if len(Z) < 2:
            raise InvalidInputError(
                "KNNDistance compares a row with others, so it needs at least 2 rows. "
                "Got 1 sample."
            )
        self.reference_ = Z
        self.n_neighbors_ = min(self.n_neighbors, len(Z) - 1)

    def _score(self, Z: FloatArray) -> FloatArray:
        return self._distances(Z, exclude_self=False)

    def _scores_by_others(self, Z: FloatArray) -> FloatArray:
        return self._distances(Z, exclude_self=True)

    def _distances(self, Z: FloatArray, exclude_self: bool) -> FloatArray:
        device = resolve_device(self.device)
        neighbours = Neighbours(self.reference_, self.metric, device)
        out = np.empty(len(Z))
        found = neighbours.search(Z, self.n_neighbors_, exclude_self=exclude_self)
        for block in found:
            distance = block.distance
            far = distance[:, -1] if self.statistic == "kth" else distance.mean(1)
            out[block.rows] = -far
        return out
