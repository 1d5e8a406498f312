"""Labelled positives kept from a fit, and what a model says of them and of U.

Positives that are held out enter the fit as unlabelled rows. To the model they are
what the positives hidden in U are, so under SCAR their scores are alike, although U
was part of the training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from denspu._folds import hold_groups
from denspu._parameters import Number
from denspu._typing import BoolArray, FloatArray, IntArray, Scenario
from denspu._validation import PUInput
from denspu.exceptions import InvalidInputError, InvalidParameterError

SHARE = Number(0, 1, "neither")


def _no_rows() -> IntArray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Scores of held-out positives and of U, and how many of U are positive."""

    positive: FloatArray
    """Scores of the held-out positives."""
    unlabeled: FloatArray
    """Scores of the rows of U; neither held-out rows nor known negatives."""
    n_labeled: int
    """Labelled positives in all, held out or not."""
    scenario: Scenario = "one-sample"
    held_out: IntArray = field(default_factory=_no_rows)
    """Positions of ``positive`` among the rows given to ``fit``."""
    unlabeled_index: IntArray = field(default_factory=_no_rows)
    """Positions of ``unlabeled`` among the rows given to ``fit``."""
    groups_positive: IntArray | None = None
    groups_unlabeled: IntArray | None = None
    prior_in_unlabeled: float = 0.0
    """Share of positives among the rows of ``unlabeled``."""
    prior_interval: tuple[float, float] = (0.0, 1.0)
    prior_level: float = 0.9
    """How often such an interval should hold the truth."""
    prior_estimates: Mapping[str, float] = field(default_factory=dict)
    """The share by estimator; empty where the prior was given."""
    prior_from: str = "given"
    """``"given"``, ``"model"`` or ``"scores"``: who says so."""

    def __str__(self) -> str:
        low, high = self.prior_interval
        return (
            f"{len(self.positive):,} of {self.n_labeled:,} labelled positives held "
            f"out, {len(self.unlabeled):,} unlabelled rows; share of positives in them "
            f"{self.prior_in_unlabeled:.3g} ({low:.3g} to {high:.3g}, "
            f"{self.prior_from})"
        )


# --- who is held out -----------------------------------------------------------------


def choose_held_out(
    holdout: Any, data: PUInput, rng: np.random.Generator
) -> BoolArray | None:
    """Return the mask of labelled positives to keep from the fit, or None.

    ``holdout`` is None, a share, or a mask. No group has labelled positives on both
    sides: where one is held out, its others are too.
    """
    if holdout is None:
        return None
    if np.ndim(holdout) == 0:
        held = _by_share(holdout, data, rng)
    else:
        held = _by_mask(holdout, data.positive)
    if data.groups is not None:
        whole = np.isin(data.groups, data.groups[held])
        held = whole & data.positive
    left = int((data.positive & ~held).sum())
    if left < 2:
        raise InvalidInputError(
            f"holdout leaves {left} of {int(data.positive.sum())} labelled positives "
            "to learn from; at least 2 are needed. Hold out fewer"
            f"{'' if data.groups is None else ' or smaller groups'}."
        )
    return held


def _by_share(share: Any, data: PUInput, rng: np.random.Generator) -> BoolArray:
    if not SHARE.allows(share):
        raise InvalidParameterError(
            f"holdout={share!r} must be None, {SHARE} (the share of the labelled "
            "positives), or a boolean mask over the rows."
        )
    rows = np.flatnonzero(data.positive)
    held = np.zeros(len(data.positive), dtype=bool)
    if data.groups is None:
        wanted = max(1, round(float(share) * len(rows)))
        held[rng.permutation(rows)[:wanted]] = True
        return held
    codes = np.unique(data.groups[rows], return_inverse=True)[1]
    if codes.max() == 0:
        raise InvalidInputError(
            "All labelled positives are of one group, and holdout never splits a "
            "group. Label positives of another group, or fit without holdout."
        )
    held[rows[hold_groups(codes, float(share), rng)]] = True
    return held


def _by_mask(mask: Any, positive: BoolArray) -> BoolArray:
    mask = np.asarray(mask)
    if mask.shape != positive.shape or mask.dtype != bool:
        raise InvalidInputError(
            f"holdout has shape {mask.shape} and dtype {mask.dtype}; pass a share in "
            "(0, 1) or a boolean mask with one entry a row, shape "
            f"{positive.shape}."
        )
    others = int((mask & ~positive).sum())
    if others:
        raise InvalidInputError(
            f"holdout marks {others} unlabelled row(s); only labelled positives can "
            "be held out. Clear the mask where y is not 1."
        )
    if not mask.any():
        raise InvalidInputError(
            "holdout marks no row. Mark some labelled positives, pass a share, or "
            "leave holdout out."
        )
    return mask


def without_labels(data: PUInput, held: BoolArray) -> PUInput:
    """Return the data with held-out positives among the unlabelled rows."""
    return replace(data, positive=data.positive & ~held, held_out=held)
