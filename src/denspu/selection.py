"""Step 5 of the walk: which leftovers become the counter-examples Ñ, and how many.

Unlabelled rows inside the boundary (P̃_UL) are set aside; the *leftovers* are outside.
A selector ranks or draws from them, and ``size`` says how many are taken (section 3.5,
Tables 4 and 5).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min

from denspu._parameters import Number, OneOf, Whole, check_parameters
from denspu._typing import IntArray
from denspu.base import BoundaryResult, Rules, Selector
from denspu.exceptions import SelectionWarning

Size = int | float | Literal["positives", "leftovers", "random"]

SIZE_RULES: Rules = {
    "size": (
        OneOf("positives", "leftovers", "random"),
        Whole(1),
        Number(0, 1, "neither"),
    )
}


class _SizedSelector(Selector):
    """Turns ``size`` into a number; subclasses order the candidates."""

    _rules: ClassVar[Rules] = SIZE_RULES

    def __init__(self, *, size: Size = "positives") -> None:
        self.size = size

    def select(self, boundary: BoundaryResult, rng: np.random.Generator) -> IntArray:
        """Return positions within U of the chosen negatives, surest first."""
        check_parameters(self)
        candidates = self._candidates(boundary)
        count = self._count(len(candidates), boundary.n_positive, rng)
        return self._rank(candidates, boundary, rng)[:count]

    def _candidates(self, boundary: BoundaryResult) -> IntArray:
        leftover = np.flatnonzero(~boundary.inlier)
        if len(leftover):
            return leftover
        warnings.warn(
            "The boundary calls every unlabelled row positive, so there are no "
            "leftovers; the least normal half of U is ranked instead. Raise "
            "contamination or try another encoder.",
            SelectionWarning,
            stacklevel=4,
        )
        order = np.argsort(boundary.scores, kind="stable")
        return order[: max(1, len(order) // 2)]

    def _count(self, available: int, n_positive: int, rng: np.random.Generator) -> int:
        if self.size == "leftovers":
            return available
        if self.size == "random":
            return int(rng.integers(1, available + 1))
        wanted = n_positive if self.size == "positives" else self.size
        if isinstance(wanted, float | np.floating):
            return max(1, round(wanted * available))
        if wanted > available:
            warnings.warn(
                f"{wanted} negatives were asked for and {available} leftovers are "
                "outside the boundary; all of them are taken.",
                SelectionWarning,
                stacklevel=4,
            )
        return min(int(wanted), available)

    @abstractmethod
    def _rank(
        self,
        candidates: IntArray,
        boundary: BoundaryResult,
        rng: np.random.Generator,
    ) -> IntArray:
        """Return the candidates, surest negative first."""


class ByScore(_SizedSelector):
    """Take the leftovers with the lowest normality first (the paper's choice).

    Parameters
    ----------
    size : int, float, "positives", "leftovers" or "random", default="positives"
        How many: a number, a share of the leftovers, |P_L|, all of them, or a number
        drawn uniformly.
    """

    def _rank(
        self,
        candidates: IntArray,
        boundary: BoundaryResult,
        rng: np.random.Generator,
    ) -> IntArray:
        return candidates[np.argsort(boundary.scores[candidates], kind="stable")]


class ByDistance(_SizedSelector):
    """Take the leftovers farthest from their nearest positive first (eq. 5).

    Positives are Z_P together with the unlabelled rows inside the boundary.

    Parameters
    ----------
    size : int, float, "positives", "leftovers" or "random", default="positives"
        See :class:`ByScore`.
    """

    def _rank(
        self,
        candidates: IntArray,
        boundary: BoundaryResult,
        rng: np.random.Generator,
    ) -> IntArray:
        Z = boundary.Z_unlabeled
        reference = np.concatenate([boundary.Z_positive, Z[boundary.inlier]])
        _, distance = pairwise_distances_argmin_min(Z[candidates], reference)
        return candidates[np.argsort(-distance, kind="stable")]


class RandomLeftover(_SizedSelector):
    """Draw from the leftovers at random (variants 2, 4 and 6 of Table 4).

    Parameters
    ----------
    size : int, float, "positives", "leftovers" or "random", default="positives"
        See :class:`ByScore`.
    """

    def _rank(
        self,
        candidates: IntArray,
        boundary: BoundaryResult,
        rng: np.random.Generator,
    ) -> IntArray:
        return rng.permutation(candidates)


class RandomUnlabeled(RandomLeftover):
    """Draw from all of U at random, ignoring the boundary (variant 1 of Table 4).

    Parameters
    ----------
    size : int, float, "positives", "leftovers" or "random", default="positives"
        See :class:`ByScore`.
    """

    def _candidates(self, boundary: BoundaryResult) -> IntArray:
        return np.arange(len(boundary.scores))
