"""What a fitted model says of a run: shares, figures, checks, lists, curves."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from denspu._progress import Stage
from denspu._share import Counts, Share
from denspu._typing import FloatArray
from denspu.exceptions import DensPUWarning
from denspu.methods._judging import with_estimated_prior, with_prior
from denspu.metrics import (
    PUReport,
    declared_negatives,
    declared_positives,
    prior_sensitivity,
    scar_check,
    trivial_check,
)
from denspu.runs.facts import (
    Check,
    Count,
    Curve,
    IfShare,
    Prior,
    Promise,
    Source,
    Threshold,
    plain,
)
from denspu.runs.reading import RunData
from denspu.training import History

STEPS = 5
"""Priors over the interval for which the figures are given."""

LEVEL = 0.1
"""Errors allowed on lists with a promise."""

PARTS = ("encoder_", "classifier_", "refiner_")


# --- the share of positives ----------------------------------------------------------


def settle_evidence(model: Any, scenario: str, share: float | None) -> None:
    """Put into the evidence what the user knows better than the model."""
    if hasattr(model, "evidence_"):
        evidence = replace(model.evidence_, scenario=scenario)
        model.evidence_ = evidence if share is None else with_prior(evidence, share)


def prior_facts(
    model: Any, counts: Counts, given: float | None
) -> tuple[Prior, Count | None]:
    """Return the share of positives inside U, and their number, with intervals."""
    evidence = getattr(model, "evidence_", None)
    estimates: dict[str, float] = {}
    level: float = 0.9
    source: Source = "model"
    if evidence is not None:
        value, ends = evidence.prior_in_unlabeled, evidence.prior_interval
        found = evidence.prior_estimates.items()
        estimates = {name: _inside(share, counts) for name, share in found}
        level, source = evidence.prior_level, evidence.prior_from
    elif given is not None:
        value, ends, source = given, (given, given), "given"
    else:
        value = getattr(model, "prior_in_unlabeled_", None)
        ends = getattr(model, "prior_interval_", (0.0, 1.0))
    if value is None:
        return Prior(), None
    low, high = min(ends[0], value), max(ends[1], value)
    inside = Share(value, low, high, "open", counts).to("unlabeled")
    three = inside.value, inside.low, inside.high
    prior = Prior(*three, level=level, source=source, estimates=estimates)
    return prior, Count(*(counts.unlabeled * share for share in three))


def _inside(share: float, counts: Counts) -> float:
    """Return a share of the open items as one of all U."""
    return Share.exactly(share, "open", counts).to("unlabeled").value


# --- figures and checks --------------------------------------------------------------


def evaluation_of(model: Any) -> PUReport | None:
    """Return the estimated figures, or None where nothing was held out."""
    return model.evaluate() if hasattr(model, "evidence_") else None


def sensitivity_of(model: Any, counts: Counts) -> list[IfShare]:
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
    return [
        IfShare(_inside(prior, counts), *(plain(report[name].value) for name in names))
        for prior, report in zip(found.priors, found.reports, strict=True)
    ]


def checks_of(
    model: Any, data: RunData, Z: tuple[FloatArray, FloatArray] | None
) -> list[Check]:
    """Return doubts and their absence; ``ok`` is None where nothing could be seen.

    ``Z``: embeddings of held-out P and open U.
    """
    found = [Check("shortcut", False, told) for told in data.shortcuts] or [
        Check("shortcut", True, "No fact about the files alone gives the labels away.")
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
    return [
        Check(
            "labels at random",
            not scar.doubtful if scar.tests else None,
            scar.sentence,
            " ".join(test.sentence for test in scar.tests),
        ),
        Check("trivial model", not trivial.trivial, trivial.sentence),
        *found,
    ]


def lists_of(model: Any) -> list[Promise]:
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
        Promise(name, rows.n, rows.level, rows.promise) for name, rows in made.items()
    ]


def threshold_facts(model: Any) -> Threshold:
    """Return where the cut lies and why."""
    value, choice = float(model.threshold_), getattr(model, "threshold_choice_", None)
    if choice is None:
        told = f"The cut is the method's own: a score above {value:g}."
        return Threshold(value, "own", None, told)
    return Threshold(value, choice.rule, choice.target, choice.sentence)


# --- what happened -------------------------------------------------------------------


def stages_of(model: Any, reading: Stage, seconds: float) -> list[Stage]:
    """Return the steps of the run, from reading on."""
    stages = getattr(model, "stages_", None)
    if not stages:
        return [reading, Stage("fit", seconds, {"method": type(model).__name__})]
    return [reading, *(Stage(s.name, s.seconds, plain(s.facts)) for s in stages)]


def curves_of(model: Any) -> list[Curve]:
    """Return the loss of every training inside a model."""
    return [
        Curve(
            name,
            "loss",
            [row.get("epoch", i) for i, row in enumerate(history.rows, 1)],
            plain(history.column("loss")),
        )
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
