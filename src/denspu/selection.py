"""Step 5 of the walk: which leftovers become the counter-examples Ñ, and how many.

Unlabelled rows inside the boundary (P̃_UL) are set aside; the *leftovers* are outside.
A selector ranks or draws from them, and ``size`` says how many are taken (section 3.5,
Tables 4 and 5).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Literal

import numpy as np
from numpy.random import Generator
from sklearn.metrics import pairwise_distances_argmin_min

from denspu._parameters import About, Number, OneOf, Whole, check_parameters, setting
from denspu._typing import IntArray
from denspu.base import BoundaryResult, Selector
from denspu.exceptions import SelectionWarning

_PAPER = "Sevetlidis et al. 2023, Dens-PU"


class _SizedSelector(Selector):
    """Turns ``size`` into a number; subclasses order the candidates."""

    size: int | float | Literal["positives", "leftovers", "random"] = setting(
        "positives",
        OneOf("positives", "leftovers", "random"),
        Whole(1),
        Number(0, 1, "neither"),
        doc="As many as |P_L|, all leftovers, a random number, a number, or a share.",
    )

    def select(self, boundary: BoundaryResult, rng: Generator) -> IntArray:
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
            "leftovers; the least normal half of them is ranked instead. Raise "
            "contamination or try another encoder.",
            SelectionWarning,
            stacklevel=4,
        )
        order = np.argsort(boundary.scores, kind="stable")
        return order[: max(1, len(order) // 2)]

    def _count(self, available: int, n_positive: int, rng: Generator) -> int:
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
    def _rank(self, rows: IntArray, found: BoundaryResult, rng: Generator) -> IntArray:
        """Return the rows of U, surest negative first."""


class ByScore(_SizedSelector):
    """Least normal leftovers first (the paper's choice)."""

    about = About(key="by_score", paper=_PAPER)

    def _rank(self, rows: IntArray, found: BoundaryResult, rng: Generator) -> IntArray:
        return rows[np.argsort(found.scores[rows], kind="stable")]


class ByDistance(_SizedSelector):
    """Leftovers farthest from any positive first (eq. 5).

    Positives are Z_P together with the unlabelled rows inside the boundary.
    """

    about = About(key="by_distance", paper=_PAPER)

    def _rank(self, rows: IntArray, found: BoundaryResult, rng: Generator) -> IntArray:
        Z = found.Z_unlabeled
        reference = np.concatenate([found.Z_positive, Z[found.inlier]])
        _, distance = pairwise_distances_argmin_min(Z[rows], reference)
        return rows[np.argsort(-distance, kind="stable")]


class RandomLeftover(_SizedSelector):
    """Leftovers at random (variants 2, 4 and 6 of Table 4)."""

    about = About(key="random_leftover", paper=_PAPER)

    def _rank(self, rows: IntArray, found: BoundaryResult, rng: Generator) -> IntArray:
        return rng.permutation(rows)


class RandomUnlabeled(RandomLeftover):
    """Unlabelled rows at random, whatever the boundary (variant 1 of Table 4)."""

    about = About(key="random_unlabeled", paper=_PAPER)

    def _candidates(self, boundary: BoundaryResult) -> IntArray:
        return np.arange(len(boundary.scores))
