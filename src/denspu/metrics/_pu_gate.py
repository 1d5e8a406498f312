"""What the PU figures accept: scores, groups, priors, options."""

from __future__ import annotations

import warnings
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.stats import norm

from denspu._parameters import Number, check
from denspu._typing import FloatArray, IntArray
from denspu._words import many
from denspu.exceptions import FewRowsWarning, InvalidInputError, InvalidParameterError

Population: TypeAlias = Literal["unlabeled", "population"]
Rows: TypeAlias = Literal["these", "new"]

FEW = 5
"""Held-out positives below which a warning is due."""


def scores_of(argument: str, scores: Any) -> FloatArray:
    """Return scores as a vector of floats; infinite ones are allowed, NaN is not."""
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{argument} must be numbers. Pass decision_function(X) of those rows."
        ) from None
    if array.ndim != 1:
        raise InvalidInputError(
            f"{argument} has shape {array.shape}; it must have one number a row. Pass "
            "decision_function(X), or one column of predict_proba(X)."
        )
    if len(array) == 0:
        raise InvalidInputError(
            f"{argument} is empty; nothing can be said without at least one row."
        )
    if np.isnan(array).any():
        raise InvalidInputError(
            f"{argument} holds {np.isnan(array).sum()} NaN. Leave those rows out, or "
            "find out why the model cannot score them."
        )
    return array


def groups_of(argument: str, groups: Any, n_rows: int) -> IntArray | None:
    """Return group numbers from 0 on, or nothing."""
    if groups is None:
        return None
    array = np.asarray(groups)
    if array.shape != (n_rows,):
        raise InvalidInputError(
            f"{argument} has shape {array.shape}; it must name one group for each of "
            f"the {n_rows} scores."
        )
    return np.unique(array, return_inverse=True)[1]


def warn_if_few(n: int, grouped: bool, stacklevel: int = 4) -> None:
    """Warn when the intervals rest on next to nothing."""
    if n < FEW:
        noun = "held-out positive"
        what = f"{many(n, 'group')} of {noun}s" if grouped else many(n, noun)
        warnings.warn(
            f"{what}: with fewer than {FEW} every figure is little more than a "
            "guess. Look at the intervals, or hold out more positives.",
            FewRowsWarning,
            stacklevel=stacklevel,
        )


def prior_errors(
    prior: float,
    interval: tuple[float, float] | None,
    level: float,
    error: float | None,
) -> tuple[float, float]:
    """Return one standard error below and one above the prior inside U."""
    if interval is not None and error is not None:
        raise InvalidParameterError(
            "prior_interval and prior_error say the same thing; give one of them."
        )
    if error is not None:
        check("prior_error", error, Number(0, np.inf, "left"))
        return float(error), float(error)
    if interval is None:
        return 0.0, 0.0
    check("prior_level", level, Number(0, 1, "neither"))
    try:
        low, high = (float(end) for end in interval)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0 <= low <= prior <= high <= 1:
        raise InvalidParameterError(
            f"prior_interval={interval!r} must be two numbers in [0, 1] with "
            f"prior_in_unlabeled={prior:g} between them. It is the interval of the "
            "share inside U (PriorReport.interval), not of the overall prior."
        )
    z = float(norm.ppf((1 + level) / 2))
    return (prior - low) / z, (high - prior) / z
