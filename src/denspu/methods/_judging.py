"""How good a fitted model is, from the positives kept from its fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from denspu._evidence import SHARE, Evidence
from denspu._parameters import Whole
from denspu._random import Randomness
from denspu._share import Counts, Share
from denspu._typing import FloatArray, IntArray, RandomState, Scenario
from denspu._validation import PUInput, take_rows
from denspu.exceptions import InvalidParameterError
from denspu.metrics import PUReport, ThresholdChoice, choose_threshold, pu_metrics
from denspu.priors import prior_from_scores

CHUNK = 10_000
"""Rows scored at once."""


def given_share(model: Any, data: PUInput) -> float | None:
    """Return the share inside the true U that the user's ``prior=`` means, if given.

    Called before the fit: a share that the labels contradict raises.
    """
    prior: Any = getattr(model, "prior", None)
    if not SHARE.allows(prior):
        return None
    share = Share.of_prior(
        float(prior),
        Counts.given(data),
        scenario_of(model),
        asks=hasattr(model, "scenario"),
    )
    return share.to("open").value


def scenario_of(model: Any) -> Scenario:
    """Return the model's scenario; a method that does not ask takes one sample."""
    found: Scenario = getattr(model, "scenario", "one-sample")
    return found


def gather(
    model: Any, data: PUInput, given: float | None, randomness: Randomness
) -> Evidence:
    """Return the scores of held-out positives and of U, and the share in U.

    ``data`` is what the model was fitted on. Where the model keeps scores of these rows
    by models that have not seen them, these are taken: what is learned from them then
    holds for new rows too. The share is the user's, if ``given``;
    else the model's own, where it has one; else the median of three estimators that
    look at these scores. An own share without an interval gets one from them.
    """
    out = np.zeros(len(data.positive), bool) if data.held_out is None else data.held_out
    held = np.flatnonzero(out)
    free = np.flatnonzero(data.unlabeled & ~out & ~data.known_negative)
    both = np.concatenate([held, free])
    unseen = getattr(model, "unseen_scores_", None)
    scores = _scores(model, data.X, both) if unseen is None else unseen[both]
    groups = None if data.groups is None else data.groups[both]
    n = len(held)
    evidence = Evidence(
        positive=scores[:n],
        unlabeled=scores[n:],
        n_labeled=int(data.positive.sum()) + n,
        scenario=scenario_of(model),
        held_out=held,
        unlabeled_index=free,
        groups_positive=None if groups is None else groups[:n],
        groups_unlabeled=None if groups is None else groups[n:],
    )
    if given is not None:
        return with_prior(evidence, given)
    seed = randomness.seed("evidence")
    inside = getattr(model, "prior_in_unlabeled_", None)
    if inside is None:
        return with_estimated_prior(evidence, None, seed)
    ends = getattr(model, "prior_interval_", None)
    low, high = ends or (inside, inside)
    own = Share(inside, low, high, "unlabeled", Counts.given(data)).to("open")
    evidence = with_estimated_prior(evidence, own.value, seed)
    if ends is None:
        return evidence
    interval = min(own.low, own.value), max(own.high, own.value)
    return replace(evidence, prior_interval=interval)


def _scores(model: Any, X: Any, rows: IntArray) -> FloatArray:
    """Return the scores of some rows, part by part: X is not copied as a whole."""
    parts = [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
    found = [np.asarray(model._decide(take_rows(X, part))) for part in parts]
    return np.concatenate(found).astype(np.float64)


def with_prior(evidence: Evidence, share: float) -> Evidence:
    """Return the evidence with a share inside U that is known from elsewhere."""
    return replace(
        evidence,
        prior_in_unlabeled=float(share),
        prior_interval=(float(share), float(share)),
        prior_estimates={},
        prior_from="given",
    )


def with_estimated_prior(
    evidence: Evidence, own: float | None, random_state: RandomState
) -> Evidence:
    """Return the evidence with a share estimated from its scores, around ``own``."""
    report = prior_from_scores(
        evidence.positive,
        evidence.unlabeled,
        own=own,
        positive_groups=evidence.groups_positive,
        unlabeled_groups=evidence.groups_unlabeled,
        scenario=evidence.scenario,
        level=evidence.prior_level,
        random_state=random_state,
    )
    return replace(
        evidence,
        prior_in_unlabeled=report.prior_in_unlabeled,
        prior_interval=report.interval,
        prior_estimates=dict(report.estimates),
        prior_from="scores" if own is None else "model",
    )


def choose(evidence: Evidence, rule: Any, target: Any) -> ThresholdChoice:
    """Return the threshold of a rule."""
    if rule == "prior_in_unlabeled":
        rule, evidence = "prior", with_prior(evidence, target)
    n = len(evidence.unlabeled)
    if rule == "top" and not Whole(1, n).allows(target):
        raise InvalidParameterError(
            f"set_threshold: top={target!r} must be {Whole(1, n)}, the unlabelled rows "
            "of the fit."
        )
    return choose_threshold(
        evidence.positive,
        evidence.unlabeled,
        rule=rule,
        target=None if rule == "prior" else target,
        random_state=0,
        **_told(evidence),
    )


def report(
    model: Any,
    positive: FloatArray | None,
    unlabeled: FloatArray | None,
    *,
    prior_in_unlabeled: float | None,
    k: int,
    **options: Any,
) -> PUReport:
    """Return the figures at the model's threshold, from evidence or given scores."""
    evidence = getattr(model, "evidence_", None) or Evidence(
        np.empty(0), np.empty(0), 0, scenario_of(model)
    )
    if positive is not None:
        n = max(evidence.n_labeled, len(positive))
        evidence = replace(
            evidence, positive=positive, groups_positive=None, n_labeled=n
        )
    if unlabeled is not None:
        evidence = replace(evidence, unlabeled=unlabeled, groups_unlabeled=None)
    if prior_in_unlabeled is not None:
        evidence = with_prior(evidence, prior_in_unlabeled)
    elif unlabeled is not None:
        evidence = with_estimated_prior(evidence, None, 0)
    if Whole(1).allows(k):
        k = min(int(k), len(evidence.unlabeled))
    return pu_metrics(
        evidence.positive,
        evidence.unlabeled,
        threshold=model.threshold_,
        k=k,
        **_told(evidence),
        **options,
    )


def _told(evidence: Evidence) -> dict[str, Any]:
    """Return the arguments of ``pu_metrics`` that the evidence settles."""
    return {
        "prior_in_unlabeled": evidence.prior_in_unlabeled,
        "prior_interval": evidence.prior_interval,
        "prior_level": evidence.prior_level,
        "scenario": evidence.scenario,
        "n_labeled": evidence.n_labeled,
        "positive_groups": evidence.groups_positive,
        "unlabeled_groups": evidence.groups_unlabeled,
    }
