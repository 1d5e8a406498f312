"""The contract of this room: P and U in, the share of positives inside U out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.stats import t as student

from denspu._parameters import About, Configured, check_parameters
from denspu._typing import FloatArray
from denspu._validation import check_embedding
from denspu.exceptions import InvalidInputError


class PriorEstimator(Configured, ABC):
    """One rule for the share of positives inside U.

    ``sees`` says what a subclass is given: ``"scores"``, one number a row, higher =
    more positive, given by a model that has not seen the row; or ``"features"``, the
    rows themselves as numbers.
    """

    about = About(kind="prior", inputs=("scores",))

    sees: ClassVar[Literal["features", "scores"]] = "scores"
    prefers_linear: ClassVar[bool] = False
    """Do a linear learner's scores suit it better, where they rank as well?"""

    def estimate(
        self, positive: Any, unlabeled: Any, rng: np.random.Generator
    ) -> float:
        """Return the share of positives inside U, in [0, 1].

        P and U are one score a row, or one row of features; ``rng`` is for rules that
        draw.
        """
        check_parameters(self)
        P, U = check_samples(self.sees, positive, unlabeled)
        return float(np.clip(self._estimate(P, U, rng), 0.0, 1.0))

    @abstractmethod
    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        """Return the share from checked samples."""


def check_samples(
    sees: str, positive: Any, unlabeled: Any
) -> tuple[FloatArray, FloatArray]:
    """Return both samples as float64, or raise."""
    if sees == "scores":
        return check_scores(positive, "positive"), check_scores(unlabeled, "unlabeled")
    P = np.asarray(check_embedding(positive, argument="positive"), dtype=np.float64)
    U = np.asarray(check_embedding(unlabeled, argument="unlabeled"), dtype=np.float64)
    if P.shape[1] != U.shape[1]:
        raise InvalidInputError(
            f"positive has {P.shape[1]} features and unlabeled {U.shape[1]}; both must "
            "have the same columns."
        )
    return P, U


def check_scores(scores: Any, argument: str) -> FloatArray:
    """Return one finite score a row as float64, or raise."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or not len(scores) or not np.isfinite(scores).all():
        raise InvalidInputError(
            f"{argument} must be one finite score a row, at least one row. Got shape "
            f"{scores.shape}."
        )
    return scores


def counting_variance(share: float, n_rows: int) -> float:
    """Return the variance of a share counted in so many rows: no interval is less."""
    counted = (share * n_rows + 1) / (n_rows + 2)
    return counted * (1 - counted) / n_rows


def around(
    share: float, variance: float, degrees: int, level: float
) -> tuple[float, float]:
    """Return the share ± t standard errors, within [0, 1]."""
    error = student.ppf((1 + level) / 2, degrees) * np.sqrt(variance)
    return max(0.0, float(share - error)), min(1.0, float(share + error))
