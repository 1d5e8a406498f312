"""Where labelled positives are dense relative to everything: no prior, no training."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from denspu._device import resolve_device
from denspu._parameters import OneOf, Whole, check_parameters
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, RandomState
from denspu._validation import validate_embedding, validate_labels
from denspu.base import CONTAMINATION_RULE, Detector, Rules
from denspu.detectors.neighbours import Metric, Neighbours
from denspu.exceptions import InvalidInputError, LabelError


class DensityRatio(Detector):
    """Score rows by the share of labelled positives among their nearest of P ∪ U.

    Under SCAR the share is near the label frequency inside the positive region and
    near zero outside. Above ``max_unlabeled`` rows a random sample stands for U, and
    each of its rows counts for as many as it represents, so that the cost of scoring
    a row stays bounded.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Neighbours looked at; ``"auto"`` is 1 % of the reference rows, from 10 to 500.
    metric : {"cosine", "euclidean"}, default="euclidean"
    max_unlabeled : int or None, default=50_000
        Unlabelled rows kept as reference.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the labelled positives beyond the threshold; ``"auto"`` leaves a
        twentieth outside when none vouches for itself.
    random_state : int, generator or None
        Draws the sample of U.
    device : str, default="auto"
    """

    needs_unlabeled: ClassVar[bool] = True
    _rules: ClassVar[Rules] = {
        "n_neighbors": (OneOf("auto"), Whole(1)),
        "metric": (OneOf("cosine", "euclidean"),),
        "max_unlabeled": (OneOf(None), Whole(1)),
        "contamination": CONTAMINATION_RULE,
    }

    def __init__(
        self,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        metric: Metric = "euclidean",
        max_unlabeled: int | None = 50_000,
        contamination: float | Literal["auto"] = "auto",
        random_state: RandomState = None,
        device: str = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.max_unlabeled = max_unlabeled
        self.contamination = contamination
        self.random_state = random_state
        self.device = device

    def fit(self, Z: Any, y: Any = None) -> Self:
        """Remember P and U; ``y`` is 1 for labelled positives and 0 for others."""
        check_parameters(self)
        if y is None:
            raise LabelError(
                "DensityRatio compares positives with unlabelled rows and requires y "
                "to be passed, but the target y is None: 1 for labelled positives, 0 "
                "for unlabelled rows."
            )
        Z = validate_embedding(self, Z, reset=True)
        positive = validate_labels(y, len(Z))
        self._remember(Z, positive, Randomness(self.random_state))
        self.threshold_ = self._initial_threshold(Z[positive])
        return self

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        raise InvalidInputError("DensityRatio is fitted with labels.")

    def _remember(
        self, Z: FloatArray, positive: BoolArray, randomness: Randomness
    ) -> None:
        unlabeled = np.flatnonzero(~positive)
        n_unlabeled = len(unlabeled)
        if self.max_unlabeled is not None and n_unlabeled > self.max_unlabeled:
            rng = randomness.numpy("reference")
            unlabeled = rng.choice(unlabeled, self.max_unlabeled, replace=False)
            unlabeled.sort()
        self.reference_ = np.concatenate([Z[positive], Z[unlabeled]])
        self.n_positive_ = int(positive.sum())
        self.represents_ = n_unlabeled / len(unlabeled)
        wanted = self.n_neighbors
        if wanted == "auto":
            wanted = int(np.clip(len(self.reference_) // 100, 10, 500))
        self.n_neighbors_ = min(wanted, len(self.reference_) - 1)

    def _score(self, Z: FloatArray) -> FloatArray:
        return self._share(Z, self.n_neighbors_, own_positive=False)

    def _scores_by_others(self, Z: FloatArray) -> FloatArray:
        """Score the labelled positives without counting each for itself."""
        return self._share(Z, self.n_neighbors_, own_positive=True)

    def _share(self, Z: FloatArray, k: int, own_positive: bool) -> FloatArray:
        """Return #P / (#P + #U) among the neighbours, U weighted by what it stands for.

        Ties between equal shares are broken by how near the neighbours are.
        """
        device = resolve_device(self.device)
        neighbours = Neighbours(self.reference_, self.metric, device)
        out = np.empty(len(Z))
        for block in neighbours.search(Z, k + own_positive):
            index = block.index[:, own_positive:]
            labelled = (index < self.n_positive_).sum(1)
            out[block.rows] = labelled / (labelled + (k - labelled) * self.represents_)
        return out
