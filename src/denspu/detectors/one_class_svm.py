"""One-Class SVM (Schölkopf et al. 2001)."""

from __future__ import annotations

from typing import ClassVar, Literal

import sklearn.svm

from denspu._parameters import Number, OneOf
from denspu._random import Randomness
from denspu._typing import FloatArray
from denspu.base import CONTAMINATION_RULE, Detector, Rules


class OneClassSVM(Detector):
    """Separate the rows from the origin in a kernel space.

    Cost grows with the square of the rows; use it on thousands, not millions.

    Parameters
    ----------
    nu : float in (0, 1], default=0.05
        Upper bound on the share of training rows left outside.
    gamma : "scale", "auto" or float, default="scale"
        Width of the Gaussian kernel, as in scikit-learn.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows beyond the threshold; ``"auto"`` keeps the
        machine's own boundary, which follows ``nu``.
    """

    _rules: ClassVar[Rules] = {
        "nu": (Number(0, 1, "right"),),
        "gamma": (OneOf("scale", "auto"), Number(0, closed="neither")),
        "contamination": CONTAMINATION_RULE,
    }

    def __init__(
        self,
        *,
        nu: float = 0.05,
        gamma: float | Literal["scale", "auto"] = "scale",
        contamination: float | Literal["auto"] = "auto",
    ) -> None:
        self.nu = nu
        self.gamma = gamma
        self.contamination = contamination

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        self.model_ = sklearn.svm.OneClassSVM(nu=self.nu, gamma=self.gamma)
        self.model_.random_state = 0  # unused, but else asked of NumPy's global state
        self.model_.fit(Z)

    def _score(self, Z: FloatArray) -> FloatArray:
        return self.model_.score_samples(Z)

    def _natural_threshold(self) -> float:
        return float(self.model_.offset_[0])
