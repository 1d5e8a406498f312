"""How a fitted model is judged, and the share of positives it goes by.

Labelled positives that are held out enter the fit as unlabelled rows. To the model they
are what the positives hidden in U are, so under SCAR their scores are alike, although U
was part of the training.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from denspu._folds import deal_even_folds, hold_groups
from denspu._parameters import Number, OneOf, Rule, Whole, setting
from denspu._random import Randomness
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState, Scenario
from denspu._validation import PUInput, take_rows
from denspu.exceptions import DensPUWarning, InvalidInputError, InvalidParameterError
from denspu.metrics import PUReport, ThresholdChoice, choose_threshold, pu_metrics
from denspu.priors import estimate_prior, prior_from_scores

SHARE = Number(0, 1, "neither")
FOLDS = 5
FOLDED_WEIGHT = 0.6
"""On development tables the share of positives above a cut, each judged by a model
without it, varies by 1.2 to 1.4 times as much as if they were judged by one model."""


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
    positive_weight: float = 1.0
    """How many held-out positives each is worth; see ``pu_metrics``."""
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


def choose_held_out(holdout: Any, data: PUInput, rng: np.random.Generator) -> BoolArray:
    """Return the mask of labelled positives to keep from the fit.

    ``holdout`` is a share or a mask. No group has labelled positives on both
    sides: where one is held out, its others are too.
    """
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


def is_folds(holdout: Any) -> bool:
    """Tell whether every labelled positive is to be judged once."""
    if not isinstance(holdout, str):
        return False
    if holdout != "folds":
        raise InvalidParameterError(
            f'holdout={holdout!r} must be None, "folds", a share in (0, 1), or a '
            "boolean mask over the rows."
        )
    return True


def cross_fitted(model: Any, data: PUInput, randomness: Randomness) -> FloatArray:
    """Return scores of all rows, each labelled positive judged by a model without it.

    A method may keep such scores of its own. Others are fitted again without each
    fifth of P in turn, those rows standing in U. Where a positive then lies among U,
    it is put among the scores that the model itself gives to U.
    """
    own = getattr(model, "unseen_scores_", None)
    if own is not None:
        return np.asarray(own)
    fold = deal_even_folds(
        data.positive, data.groups, FOLDS, randomness.numpy("evidence/folds")
    )
    if fold.max() == 0:
        raise InvalidInputError(
            'holdout="folds" judges each labelled positive by a model without it, and '
            "needs two labelled positives, of two groups where there are groups. Label "
            "more, or fit without holdout."
        )
    scores = _scores(model, data.X, np.arange(len(data.positive)))
    unlabeled = np.flatnonzero(data.unlabeled)
    ordered = np.sort(scores[unlabeled])
    for part in range(int(fold.max()) + 1):
        held = data.positive & (fold == part)
        other = clone(model).set_params(random_state=randomness.seed(f"fold {part}"))
        if "checkpoint" in other.get_params(deep=False):
            other.set_params(checkpoint=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DensPUWarning)  # the whole fit has told
            other.fit(
                data.X,
                (data.positive & ~held).astype(np.int64),
                known_negative=data.known_negative
                if data.known_negative.any()
                else None,
                groups=data.groups,
            )
        among = np.sort(_scores(other, data.X, unlabeled))
        place = np.searchsorted(among, _scores(other, data.X, np.flatnonzero(held)))
        at = np.clip(place / len(among), 0, 1) * (len(ordered) - 1)
        scores[held] = np.interp(at, np.arange(len(ordered)), ordered)
    return scores


def _by_share(share: Any, data: PUInput, rng: np.random.Generator) -> BoolArray:
    if not SHARE.allows(share):
        raise InvalidParameterError(
            f'holdout={share!r} must be None, "folds", {SHARE} (the share of the '
            "labelled positives), or a boolean mask over the rows."
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


# --- what a model says of them ---

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
    model: Any,
    data: PUInput,
    given: float | None,
    randomness: Randomness,
    fair: FloatArray | None = None,
) -> Evidence:
    """Return the scores of held-out positives and of U, and the share in U.

    ``data`` is what the model was fitted on. With ``fair`` scores of all rows every
    labelled positive is held out. Where the model keeps scores of these rows
    by models that have not seen them, these are taken: what is learned from them then
    holds for new rows too. The share is the user's, if ``given``;
    else the model's own, where it has one; else the median of three estimators that
    look at these scores. An own share without an interval gets one from them.
    """
    out = np.zeros(len(data.positive), bool) if data.held_out is None else data.held_out
    out = out if fair is None else data.positive
    held = np.flatnonzero(out)
    free = np.flatnonzero(data.unlabeled & ~out & ~data.known_negative)
    both = np.concatenate([held, free])
    unseen = fair if fair is not None else getattr(model, "unseen_scores_", None)
    scores = _scores(model, data.X, both) if unseen is None else unseen[both]
    groups = None if data.groups is None else data.groups[both]
    n = len(held)
    evidence = Evidence(
        positive=scores[:n],
        unlabeled=scores[n:],
        n_labeled=int((data.positive | out).sum()),
        scenario=scenario_of(model),
        held_out=held,
        unlabeled_index=free,
        groups_positive=None if groups is None else groups[:n],
        groups_unlabeled=None if groups is None else groups[n:],
        positive_weight=1.0 if fair is None else FOLDED_WEIGHT,
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
    told = getattr(model, "prior_estimates_", None)
    if told is not None:  # the share was read off these very scores
        return replace(
            evidence,
            prior_in_unlabeled=own.value,
            prior_interval=own.interval,
            prior_estimates=dict(told),
            prior_from="model",
        )
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
        "positive_weight": evidence.positive_weight,
        "unlabeled_groups": evidence.groups_unlabeled,
    }


# --- the class prior: given, or estimated from P and U ---

PRIOR_RULE: tuple[Rule, ...] = (OneOf("estimate"), Number(0, 1, "neither"))
SCENARIO_RULE: tuple[Rule, ...] = (OneOf("one-sample", "two-sample"),)

FAR_TOO_MANY = 10
"""A model that calls so many times the estimated share positive is not trusted."""


POSITIVE = Number(0, closed="neither")
DECAY = Number(0, 1, "left")
"""Shares of what is kept at a step."""


def validation_setting(default: float = 0.0) -> Any:
    """Return the parameter ``validation`` of methods that keep their best epoch."""
    return setting(
        default,
        Number(0, 0.5),
        doc="Share of rows held out to keep each network's best epoch; 0: the last.",
    )


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
