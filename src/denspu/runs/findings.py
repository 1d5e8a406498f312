"""What a fitted model says of a run: shares, figures, checks, lists, curves."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from denspu._share import HALF_A_ROW, NEAR, between
from denspu._typing import FloatArray
from denspu._words import does, many
from denspu.exceptions import DensPUWarning, InvalidParameterError
from denspu.methods._judging import with_estimated_prior, with_prior
from denspu.metrics import (
    declared_negatives,
    declared_positives,
    prior_sensitivity,
    scar_check,
    trivial_check,
)
from denspu.runs.reading import RunData
from denspu.training import History

STEPS = 5
"""Priors over the interval for which the figures are given."""

LEVEL = 0.1
"""Errors allowed on lists with a promise."""

PARTS = ("encoder_", "classifier_", "refiner_")
FROM = {
    "given": "as you said",
    "model": "as the method estimates",
    "scores": "as estimated from the scores",
}


# --- the share of positives ----------------------------------------------------------


@dataclass(frozen=True)
class Shares:
    """Turns shares among the open items of U into shares and counts of all of U.

    Copies of positives are positive and known negatives are not; only the others are
    open, and only they take part in estimates.
    """

    n_unlabeled: int
    n_copies: int
    n_known_negative: int

    @property
    def n_open(self) -> int:
        """Items of U whose label is not known."""
        return self.n_unlabeled - self.n_copies - self.n_known_negative

    def count(self, share: float) -> float:
        """Return how many of U are positive if ``share`` of the open ones are."""
        return self.n_copies + share * self.n_open

    def whole(self, share: float) -> float:
        """Return the share in all of U."""
        return self.count(share) / self.n_unlabeled

    def open(self, share: float) -> float:
        """Return the share among the open items, from that in all of U."""
        hidden = share * self.n_unlabeled - self.n_copies
        if self.n_open < 1:
            raise InvalidParameterError(
                f"prior={share!r} has no item to speak of: of the {self.n_unlabeled:,} "
                f"unlabelled ones {self.n_copies:,} "
                f"{does(self.n_copies, 'is a copy', 'are copies')} of positives, and "
                "all others are known to be negative. Leave prior out."
            )
        least = HALF_A_ROW - NEAR / 2  # what passes here passes in the fit
        if not least <= hidden <= self.n_open - least:
            ends = (
                self.n_copies + HALF_A_ROW,
                self.n_copies + self.n_open - HALF_A_ROW,
            )
            allowed = between(*(end / self.n_unlabeled for end in ends))
            raise InvalidParameterError(
                f"prior={share!r} cannot be the share of positives among the "
                f"{self.n_unlabeled:,} unlabelled items: {self.n_copies:,} "
                f"{does(self.n_copies, 'is a copy', 'are copies')} of positives, there "
                f"{does(self.n_known_negative, 'is', 'are')} "
                f"{many(self.n_known_negative, 'known negative')}, and of the other "
                f"{self.n_open:,} it means {hidden:,.4g}. Pass {allowed}, or leave "
                "prior out."
            )
        return hidden / self.n_open

    def for_method(self, share: float, n_labeled: int, scenario: str) -> float:
        """Return what a method's ``prior=`` means, from the share among open items."""
        hidden, n = share * self.n_open, self.n_open + self.n_known_negative
        if scenario == "two-sample":
            return hidden / n
        return (n_labeled + hidden) / (n_labeled + n)


def shares_of(data: RunData) -> Shares:
    """Return how U is made up."""
    return Shares(len(data.U), int(data.is_copy.sum()), int(data.known_negative.sum()))


def settle_evidence(model: Any, scenario: str, share: float | None) -> None:
    """Put into the evidence what the user knows better than the model."""
    if hasattr(model, "evidence_"):
        evidence = replace(model.evidence_, scenario=scenario)
        model.evidence_ = evidence if share is None else with_prior(evidence, share)


def prior_facts(
    model: Any, shares: Shares, given: float | None
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the share of positives inside U, and their number, with intervals."""
    evidence = getattr(model, "evidence_", None)
    estimates: dict[str, float] = {}
    level, source = 0.9, "model"
    if evidence is not None:
        value, ends = evidence.prior_in_unlabeled, evidence.prior_interval
        estimates = {k: shares.whole(v) for k, v in evidence.prior_estimates.items()}
        level, source = evidence.prior_level, evidence.prior_from
    elif given is not None:
        value, ends, source = given, (given, given), "given"
    else:
        value = getattr(model, "prior_in_unlabeled_", None)
        ends = getattr(model, "prior_interval_", (0.0, 1.0))
    if value is None:
        told = "How many of the unlabelled items are positive is not known."
        return {"estimates": {}, "sentence": told}, {}
    low, high = min(ends[0], value), max(ends[1], value)
    named = {"value": value, "low": low, "high": high}
    prior: dict[str, Any] = {name: shares.whole(v) for name, v in named.items()}
    interval = "" if low == high else f" ({prior['low']:.1%} to {prior['high']:.1%})"
    prior |= {
        "level": level,
        "from": source,
        "estimates": estimates,
        "sentence": f"About {prior['value']:.1%} of the unlabelled items are positive"
        f"{interval}, {FROM[source]}.",
    }
    return prior, {name: shares.count(v) for name, v in named.items()}


# --- figures and checks --------------------------------------------------------------


def evaluation_of(model: Any) -> dict[str, Any] | None:
    """Return the estimated figures, or None where nothing was held out."""
    if not hasattr(model, "evidence_"):
        return None
    found: dict[str, Any] = plain(model.evaluate().to_dict())
    return found


def sensitivity_of(model: Any, shares: Shares) -> list[dict[str, float]]:
    """Return the figures over the interval of the share.

    One that was given has none: the table reaches from it over what the scores say.
    """
    evidence = getattr(model, "evidence_", None)
    if evidence is None:
        return []
    low, high = evidence.prior_interval
    given: list[float] = []
    if evidence.prior_from == "given":  # it may be wrong: what do P and U say?
        given = [evidence.prior_in_unlabeled]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DensPUWarning)  # of an estimate
            ends = with_estimated_prior(evidence, None, 0).prior_interval
        low, high = min(low, ends[0]), max(high, ends[1])
    steps = STEPS if high > low else 1
    found = prior_sensitivity(
        evidence.positive,
        evidence.unlabeled,
        priors=np.union1d(np.linspace(low, high, steps), given).tolist(),
        threshold=model.threshold_,
        random_state=0,
    )
    names = ("precision", "recall", "f1", "accuracy")
    rows = [
        {"prior": shares.whole(prior)} | {name: report[name].value for name in names}
        for prior, report in zip(found.priors, found.reports, strict=True)
    ]
    clean: list[dict[str, float]] = plain(rows)
    return clean


def checks_of(
    model: Any, data: RunData, Z: tuple[FloatArray, FloatArray] | None
) -> list[dict[str, Any]]:
    """Return doubts and their absence; ``ok`` is None where nothing could be seen.

    ``Z``: embeddings of held-out P and open U.
    """
    found = [
        {"name": "shortcut", "ok": False, "sentence": told} for told in data.shortcuts
    ] or [
        {
            "name": "shortcut",
            "ok": True,
            "sentence": "No fact about the files alone tells P from U.",
        }
    ]
    evidence = getattr(model, "evidence_", None)
    if evidence is None:
        return found
    share = evidence.prior_in_unlabeled
    scar = scar_check(
        evidence.positive,
        evidence.unlabeled,
        prior_in_unlabeled=share,
        positive_features=None if Z is None else Z[0],
        unlabeled_features=None if Z is None else Z[1],
        positive_groups=evidence.groups_positive,
        unlabeled_groups=evidence.groups_unlabeled,
        random_state=0,
    )
    trivial = trivial_check(
        evidence.positive,
        evidence.unlabeled,
        prior_in_unlabeled=share,
        threshold=model.threshold_,
    )
    told = " ".join([scar.sentence, *(test.sentence for test in scar.tests)])
    return [
        {
            "name": "labels at random",
            "ok": not scar.doubtful if scar.tests else None,
            "sentence": told,
        },
        {
            "name": "trivial model",
            "ok": not trivial.trivial,
            "sentence": trivial.sentence,
        },
        *found,
    ]


def lists_of(model: Any) -> list[dict[str, Any]]:
    """Return lists with a promise, and which promise."""
    evidence = getattr(model, "evidence_", None)
    if evidence is None:
        return []
    P, U = evidence.positive, evidence.unlabeled
    made = {
        "sure negatives": declared_negatives(P, U, level=LEVEL),
        "negatives that lose few positives": declared_negatives(
            P, U, level=LEVEL, control="row"
        ),
        "positives that let few negatives in": declared_positives(U, level=LEVEL),
    }
    return [
        {"name": name, "n": rows.n, "level": rows.level, "sentence": rows.promise}
        for name, rows in made.items()
    ]


def threshold_facts(model: Any) -> dict[str, Any]:
    """Return where the cut lies and why."""
    choice = getattr(model, "threshold_choice_", None)
    if choice is None:
        return {
            "value": float(model.threshold_),
            "rule": "own",
            "target": None,
            "sentence": "The cut is the method's own: a score above "
            f"{model.threshold_:g}.",
        }
    return {
        "value": float(model.threshold_),
        "rule": choice.rule,
        "target": choice.target,
        "sentence": choice.sentence,
    }


# --- what happened -------------------------------------------------------------------


def stages_of(model: Any, reading: dict[str, Any], seconds: float) -> list[Any]:
    """Return the steps of the run, from reading on."""
    stages = getattr(model, "stages_", None)
    if not stages:
        facts = {"method": type(model).__name__}
        found = [{"name": "fit", "seconds": seconds, "facts": facts}]
    else:
        found = [
            {"name": s.name, "seconds": s.seconds, "facts": plain(s.facts)}
            for s in stages
        ]
    return [reading, *found]


def curves_of(model: Any) -> list[dict[str, Any]]:
    """Return the loss of every training inside a model."""
    return [
        {
            "name": name,
            "x": [row.get("epoch", i) for i, row in enumerate(history.rows, 1)],
            "y": plain(history.column("loss")),
            "label": "loss",
        }
        for name, history in _histories(model)
        if len(history) and "loss" in history.last
    ]


def _histories(model: Any) -> Iterator[tuple[str, History]]:
    for name in PARTS:
        if hasattr(model, name):
            yield from _histories_in(getattr(model, name), f"{name[:-1]}: ")
    yield from _histories_in(model, "")


def _histories_in(part: Any, start: str) -> Iterator[tuple[str, History]]:
    for name, value in (vars(part) if hasattr(part, "__dict__") else {}).items():
        held = value if isinstance(value, list | tuple) else [value]
        for number, one in enumerate(held, 1):
            if isinstance(one, History):
                which = f" {number}" if len(held) > 1 else ""
                words = (
                    name.rstrip("_").replace("_", " ").replace("history", "training")
                )
                yield f"{start}{words}{which}", one


def plain(value: Any) -> Any:
    """Return plain data that JSON can hold: no array, no NaN."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
