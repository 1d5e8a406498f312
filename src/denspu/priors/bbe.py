"""Best bin estimation (Garg et al. 2021).

q_P(t) and q_U(t) are the shares of P and of U that score at least t. Their ratio never
falls below the share π of positives inside U, and equals it where only positives score
so high. The cut is the one whose upper confidence bound is least:

    q_U / q_P + (1 + γ) / q_P · (√(log(4/δ) / 2n_U) + √(log(4/δ) / 2n_P))
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from denspu._parameters import Number
from denspu._typing import FloatArray
from denspu.base import Rules
from denspu.priors._base import PriorEstimator


class BestBin(PriorEstimator):
    """Ratio of U to P above the cut with the least upper bound.

    Parameters
    ----------
    delta : float, default=0.1
        Chance that the bound fails.
    gamma : float, default=0.01
        Slack of the bound.
    """

    _rules: ClassVar[Rules] = {
        "delta": (Number(0, 1, "neither"),),
        "gamma": (Number(0, 1, "neither"),),
    }

    def __init__(self, *, delta: float = 0.1, gamma: float = 0.01) -> None:
        self.delta = delta
        self.gamma = gamma

    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        q_p, q_u = reaching(P, U)
        noise = np.sqrt(np.log(4 / self.delta) / 2)
        noise *= (1 + self.gamma) * (len(U) ** -0.5 + len(P) ** -0.5)
        return float((q_u / q_p)[np.argmin((q_u + noise) / q_p)])


def reaching(P: FloatArray, U: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the shares of P and of U at or above each score of P, highest first."""
    cuts, counts = np.unique(P, return_counts=True)
    q_p = np.cumsum(counts[::-1]) / len(P)
    q_u = 1 - np.searchsorted(np.sort(U), cuts[::-1], side="left") / len(U)
    return q_p, q_u
