"""The class prior of a method: given, or estimated from P and U."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from denspu._parameters import Number, OneOf, Rule, setting
from denspu._random import Randomness
from denspu._share import Counts, Share
from denspu._typing import Scenario
from denspu._validation import PUInput, take_rows
from denspu.exceptions import DensPUWarning, InvalidInputError, InvalidParameterError
from denspu.priors import estimate_prior

PRIOR_RULE: tuple[Rule, ...] = (OneOf("estimate"), Number(0, 1, "neither"))
SCENARIO_RULE: tuple[Rule, ...] = (OneOf("one-sample", "two-sample"),)

FAR_TOO_MANY = 10
"""A model that calls so many times the estimated share positive is not trusted."""


def prior_setting() -> Any:
    """Return the parameter ``prior`` of methods that need one."""
    return setting(
        "estimate",
        *PRIOR_RULE,
        doc="Share of positives in the population: in all rows (one-sample), or in U "
        "(two-sample).",
    )


def scenario_setting() -> Any:
    """Return the parameter ``scenario``."""
    return setting(
        "one-sample",
        *SCENARIO_RULE,
        doc="Was P taken out of the sample whose rest is U, or drawn apart from it?",
    )


LOOK_P, LOOK_U = 1_000, 4_000
"""Rows of P and U at which a quick look is taken, at most."""

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
    seen = Counts.seen(data)
    if scenario == "two-sample":  # held-out positives are more of them in this U
        given = Share.exactly(prior, "unlabeled", Counts.given(data))
        share = given.to("unlabeled", seen).value
        return share, share
    return float(prior), Share.of_prior(float(prior), seen, scenario).value


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
