"""The class prior of a method: given, or estimated from P and U."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import ceil, floor
from typing import Any

import numpy as np

from denspu._evidence import Scenario as Scenario
from denspu._evidence import share_with_held
from denspu._parameters import Number, OneOf, Rule
from denspu._random import Randomness
from denspu._validation import PUInput, take_rows
from denspu.base import FAR_TOO_MANY
from denspu.exceptions import (
    DensPUWarning,
    InvalidInputError,
    InvalidParameterError,
)
from denspu.priors import estimate_prior

PRIOR_RULE: tuple[Rule, ...] = (OneOf("estimate"), Number(0, 1, "neither"))
SCENARIO_RULE: tuple[Rule, ...] = (OneOf("one-sample", "two-sample"),)

LOOK_P, LOOK_U = 1_000, 4_000
"""Rows of P and U at which a quick look is taken, at most."""

HALF_A_ROW = 0.5
"""A share that leaves fewer positives, or fewer negatives, speaks of no row."""

PRECISE, NEAR = 10**9, 1e-3
"""Ends of a range are told in steps of 1/PRECISE. NEAR of a step, or of a row, is
none."""

SMALLEST = 1e-6
"""An estimated share is kept inside (SMALLEST, 1 - SMALLEST): risks divide by it."""


def resolve_prior(
    prior: float | str,
    data: PUInput,
    scenario: Scenario,
    randomness: Randomness,
    *,
    rows: Any = None,
    device: str = "auto",
    max_seconds: float | None = None,
) -> tuple[float, float]:
    """Return the share of positives in the population, and inside U.

    ``rows`` are embeddings to estimate from; by default the rows of ``data``. In the
    one-sample scenario P was taken out of the sample, so U holds a smaller share.
    """
    n_positive, n = int(data.positive.sum()), len(data.positive)
    if isinstance(prior, str):
        try:
            report = estimate_prior(
                data.X if rows is None else rows,
                data.positive.astype(int),
                scenario=scenario,
                groups=data.groups,
                encoder="auto" if rows is None else "identity",
                n_resamples=0,  # the interval is not asked for
                random_state=randomness.seed("prior"),
                device=device,
                max_seconds=max_seconds,
            )
        except InvalidInputError as error:
            raise InvalidParameterError(
                f"prior='estimate' cannot be answered: {error} Pass the share of "
                "positives as a number."
            ) from error
        return _kept(report.prior), _kept(report.prior_in_unlabeled)
    if scenario == "two-sample":
        share = share_with_held(float(prior), data)
        return share, share
    return float(prior), share_inside(float(prior), n_positive, n, scenario)


def between(low: float, high: float) -> str:
    """Say which shares are allowed, in digits that are allowed themselves.

    Examples
    --------
    >>> between(0.151_25, 0.998_75), between(7 / 88, 7 / 88)
    ('a share between 0.15125 and 0.99875', '0.07954545454545454')
    >>> between(1 / 3, 2 / 3)
    'a share between 0.333333334 and 0.666666666'
    """
    ends = ceil(low * PRECISE - NEAR) / PRECISE, floor(high * PRECISE + NEAR) / PRECISE
    if ends[0] >= ends[1]:  # one row is open
        return repr(low)
    return f"a share between {ends[0]:.9g} and {ends[1]:.9g}"


def share_inside(
    prior: float, n_positive: int, n: int, scenario: Scenario, *, asks: bool = True
) -> float:
    """Return the share of positives inside U that a share in the population means.

    ``asks`` says whether the method has a ``scenario`` that the user could change.
    """
    if scenario == "two-sample":
        return prior
    if prior <= n_positive / n:
        apart = "scenario='two-sample' if U was drawn apart from P"
        other = f"prior='estimate', or {apart}" if asks else "or prior='estimate'"
        raise InvalidParameterError(
            f"prior={prior!r} is the share of positives among all {n} rows, and "
            f"{n_positive} of them ({n_positive / n:.4g}) carry a label already. Pass "
            f"a larger share, {other}."
        )
    return (prior * n - n_positive) / (n - n_positive)


def open_share_of(prior: float, data: PUInput) -> float:
    """Return what a share in all rows means among those whose label is open.

    These are the rows of U, as the fit sees it, that are not known to be negative.
    """
    n, n_unlabeled = len(data.positive), int(data.unlabeled.sum())
    held = 0 if data.held_out is None else int(data.held_out.sum())
    n_labeled = n - n_unlabeled + held
    n_open = n_unlabeled - held - int(data.known_negative.sum())
    hidden = share_inside(prior, n_labeled, n, "one-sample", asks=False) * (
        n - n_labeled
    )
    if not HALF_A_ROW - NEAR <= hidden <= n_open - HALF_A_ROW + NEAR:
        ends = (n_labeled + HALF_A_ROW) / n, (n_labeled + n_open - HALF_A_ROW) / n
        raise InvalidParameterError(
            f"prior={prior!r} means {hidden:,.4g} positives among the {n_open:,} rows "
            f"of U that are not known to be negative. Pass {between(*ends)}, or "
            "prior='estimate'."
        )
    return (hidden + held) / (n_open + held)


def doubtful_share(
    called: float, data: PUInput, embed: Callable[[Any], Any]
) -> float | None:
    """Return the share inside U that a quick look vouches for, if calls are in doubt.

    The population holds at least the labelled share of positives, so only a method that
    calls many times that share positive is worth a look, at a few thousand rows. Where
    classes overlap the estimate itself is too high, so the low end of its interval
    counts. ``None`` where nothing can be said.
    """
    if called <= FAR_TOO_MANY * data.positive.mean():
        return None
    P, U = (np.flatnonzero(rows) for rows in (data.positive, data.unlabeled))
    rows = np.concatenate([P[:: -(-len(P) // LOOK_P)], U[:: -(-len(U) // LOOK_U)]])
    groups = None if data.groups is None else data.groups[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)  # a look, not an answer
        try:
            report = estimate_prior(
                embed(take_rows(data.X, rows)),
                data.positive[rows].astype(int),
                groups=groups,
                encoder="identity",
                n_resamples=20,
                random_state=0,
            )
        except InvalidInputError:  # one group, or copies of one row
            return None
    return max(report.low, 1 / len(U))


def _kept(share: float) -> float:
    return min(max(float(share), SMALLEST), 1 - SMALLEST)
