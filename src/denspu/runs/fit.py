"""``fit_run``: from files to a run folder, and what the fitted model says."""

from __future__ import annotations

import datetime as dt
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.decomposition import PCA

from denspu._files import plain
from denspu._progress import Stage, does, hearing, many
from denspu._registry import Entry
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.data.kinds import join, kind_of
from denspu.detectors.neighbours import Neighbours
from denspu.exceptions import DensPUWarning, InvalidInputError
from denspu.methods._base import key_of
from denspu.methods._evidence import with_estimated_prior, with_prior
from denspu.metrics import (
    declared_negatives,
    declared_positives,
    prior_sensitivity,
    scar_check,
    trivial_check,
)
from denspu.persistence import versions
from denspu.report import words
from denspu.runs.folder import (
    REPORT,
    Check,
    Copy,
    Count,
    Curve,
    IfShare,
    Prior,
    Promise,
    RunFacts,
    RunRows,
    Threshold,
    WorkFolder,
    WriteReport,
    check_out,
    ranks,
    write_run,
)
from denspu.runs.options import (
    FOLDS,
    RunOptions,
    build_method,
    check_options,
    given_share,
    scenario_of,
    settled,
)
from denspu.runs.reading import (
    RunData,
    copies_together,
    hold_out,
    read_run,
    reading_arguments,
)
from denspu.runs.why import names_of_positives, with_reasons
from denspu.training import History

Tell = Callable[[str, str], None]
"""Called with a word (reading, fitting, result, ...) and a sentence."""

SILENT = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
"""Warnings for programmers, not for those who run a fit."""
MANY, SOME = 0.1, 5
"""Items whose decision and chance disagree are spoken of beyond this share of those
called positive, and beyond this number."""
STEPS = 5
"""Priors over the interval for which the figures are given."""
LEVEL = 0.1
"""Errors allowed on lists with a promise."""
PARTS = ("encoder_", "classifier_", "refiner_")

COPY = "copy of a positive"
KNOWN = "known negative"
CHOSEN = "reliable negative"
NEAR = "near the threshold"
DECIDED = "decided by the model"
STAGES = (COPY, KNOWN, CHOSEN, NEAR, DECIDED)
"""What can settle an item."""
CLOSE = 0.1
"""Items near the threshold: this part of those called, on either side of the cut."""
NEIGHBOURS = 5
COMPARED = 20_000
"""Unlabelled items that stand for U when a positive looks odd among them."""
MOST_ODD = 24
ENOUGH = 20_000
"""Rows that settle the directions of a map."""

Embeddings: TypeAlias = tuple[FloatArray, FloatArray] | None
"""Of P and of U, where the model has an embedding."""


def fit_run(
    options: RunOptions,
    *,
    report: WriteReport | None = None,
    tell: Tell | None = None,
) -> tuple[RunFacts, RunRows]:
    """Read, fit, judge, decide, and write the run folder.

    Parameters
    ----------
    options : RunOptions
    report : callable, optional
        ``report(path, facts, rows)`` writes ``report.html``.
    tell : callable, optional
        Gets a word and a sentence for each step, as they come.

    Returns
    -------
    facts, rows
        What ``run.json`` holds, and the items behind it.
    """
    tell = tell or (lambda word, sentence: None)
    entry = check_options(options)
    check_out(options.target, options.overwrite)
    work = WorkFolder(options.target)
    work.reserve()
    try:
        run = _prepared(entry, options, work, tell)
        with _collected(run.said):
            start = time.perf_counter()
            _fit(run, tell)
            run.seconds["fit"] = time.perf_counter() - start
            Z = embeddings_of(run.model, run.data)
            rows = rows_of(run.model, run.data, run.held, Z)
            run.said += _contradiction(run, rows)
            start = time.perf_counter()
            rows, tells = with_reasons(run.model, rows)
            run.seconds["why"] = time.perf_counter() - start
            facts = replace(_facts(run, rows, Z), tells=tells)
        for word, sentence in words.share_lines(facts):
            tell(word, sentence)
        write_run(
            options.target,
            run.model,
            _how_to_read(run, facts),
            facts,
            rows,
            report=report,
            overwrite=options.overwrite,
        )
    except BaseException:
        work.leave()
        raise
    work.end()
    written = None if report is None else Path(options.out) / REPORT
    for word, sentence in words.result_lines(facts, written):
        tell(word, sentence)
    return facts, rows


@dataclass
class _Run:
    """A run that is ready to be fitted."""

    options: RunOptions
    data: RunData
    X: Any
    """P, and the items of U that are no copies."""
    y: IntArray
    named: dict[str, Any]
    """What is known of the rows of X, by the argument of ``fit``."""
    held: BoolArray
    """Labelled positives that judge the fit: all of them with folds."""
    held_told: str
    """How they were chosen, or why there are none."""
    share: float | None
    """Share of positives among the open items of U, if the user gave it."""
    model: Any
    said: list[str]
    """Warnings so far."""
    began: float
    seconds: dict[str, float]


def _prepared(entry: Entry, options: RunOptions, work: WorkFolder, tell: Tell) -> _Run:
    """Read, check and choose everything that can be settled before the fit."""
    began = time.perf_counter()
    data = read_run(options)
    seconds = {"read": time.perf_counter() - began}
    tell("reading", words.reading(data, options))
    for note in dict.fromkeys([*data.P.notes, *data.U.notes]):
        tell("note", note)
    method = build_method(entry, options)
    options = settled(options, method, data.P.kind, data.can_fold)
    held, told = hold_out(
        data.P,
        options.holdout or 0,
        groups=None if data.groups is None else data.groups[0],
        times=data.times,
        seed=options.seed,
    )
    wish, n_open = options.wish, data.counts.open
    if wish is not None and not held.any():
        raise InvalidInputError(
            f"threshold={options.threshold!r} is chosen with held-out positives. {told}"
        )
    if wish is not None and wish.rule == "top" and (wish.target or 0) > n_open:
        raise InvalidInputError(
            f"threshold={options.threshold!r}: there {does(n_open, 'is', 'are')} "
            f"{many(n_open, 'item')} to choose from. Ask for fewer."
        )
    left = ~data.is_copy
    X, y, _ = join(data.P, data.U if left.all() else data.U.take(left))
    known, mask = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=bool)
    known[len(data.P) :] = data.known_negative[left]
    mask[: len(data.P)] = held
    groups = None
    if data.groups is not None:
        groups = np.concatenate([data.groups[0], data.groups[1][left]])
    elif options.holdout == FOLDS and held.any():
        groups = copies_together(data.P, len(y) - len(data.P))
    key = key_of(X, y, mask, known, groups, options.told())
    if options.prior is not None:
        tell("note", words.prior_note(options.prior))
    share = given_share(options, data.counts, entry)
    meant = None
    if share is not None:
        n = data.counts.unlabeled - data.counts.known_positive
        fitted = replace(data.counts, unlabeled=n, known_positive=0)
        scenario = scenario_of(options, entry)
        meant = Share.exactly(share.value, "open", fitted).population(scenario).value
    model = build_method(entry, options, meant, work.path)
    said = _doubts(entry, model, options, data, "" if held.any() else told)
    tell("fitting", words.fitting(options.method, data, held))
    if work.useful:
        tell("resuming", words.resuming(work.belongs_to(key), work.path))
    work.begin(key)
    named: dict[str, Any] = {
        "known_negative": known if known.any() else None,
        "groups": groups,
        "holdout": None if not held.any() else FOLDS if held.all() else mask,
    }
    given = None if share is None else share.value
    return _Run(
        options, data, X, y, named, held, told, given, model, said, began, seconds
    )


def _fit(run: _Run, tell: Tell) -> None:
    """Fit; calibrate and cut, where there is something to judge by."""

    def hear(stage: Stage) -> None:
        for word, sentence in words.stage_lines(stage, len(run.y)):
            tell(word, sentence)

    with hearing(hear):
        run.model.fit(run.X, run.y, **run.named)
    if "checkpoint" in run.model.get_params(deep=False):
        run.model.set_params(checkpoint=None)  # it is of this run, not of the model
    if hasattr(run.model, "evidence_"):  # the user may know better than the model
        evidence = replace(run.model.evidence_, scenario=run.options.scenario)
        if run.share is not None:
            evidence = with_prior(evidence, run.share)
        run.model.evidence_ = evidence
        if not hasattr(run.model, "prior_estimates_"):  # its log-odds hold already
            run.model.calibrate()
        if run.options.wish is not None:
            run.model.set_threshold(**run.options.wish.arguments)


# --- facts ---------------------------------------------------------------------------


def _facts(run: _Run, rows: RunRows, Z: Embeddings) -> RunFacts:
    model, data, options = run.model, run.data, run.options
    prior, count = prior_facts(model, data.counts, run.share)
    P, U, found = data.P.ids, data.U.ids, data.copies
    copies = [Copy(P[p], U[u], "exact") for p, u in found.exact]
    copies += [Copy(P[p], U[u], "near") for p, u in found.near]
    read = {
        "positives": len(P),
        "unlabeled": len(U),
        "skipped": len(data.skipped),
        "copies": data.counts.known_positive,
    }
    stages = [Stage("read", run.seconds["read"], read)]
    for one in getattr(model, "stages_", None) or [
        Stage("fit", run.seconds["fit"], {"method": type(model).__name__})
    ]:
        stages.append(Stage(one.name, one.seconds, plain(one.facts)))
    cut, choice = float(model.threshold_), getattr(model, "threshold_choice_", None)
    told = f"The cut is the method's own: a score above {cut:g}."
    threshold = Threshold(cut, "own", None, told)
    if choice is not None:
        threshold = Threshold(cut, choice.rule, choice.target, choice.sentence)
    return RunFacts(
        kind=data.P.kind,
        method=options.method,
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        command=options.command,
        settings=plain(options.told()),
        versions=versions(),
        sources=options.sources,
        scenario=options.scenario,
        n_positive=len(data.P),
        n_held_out=int(run.held.sum()),
        n_unlabeled=len(data.U),
        n_called=int(rows.decision.sum()),
        reading=[*data.reading, *([run.held_told] if run.held.any() else [])],
        prior=prior,
        count=count,
        threshold=threshold,
        **_judged(run, Z),
        stages=stages,
        curves=curves_of(model),
        warnings=run.said,
        skipped=data.skipped,
        copies=copies,
        shortcuts=data.shortcuts,
        seconds={**run.seconds, "total": time.perf_counter() - run.began},
    )


def _how_to_read(run: _Run, facts: RunFacts) -> dict[str, Any]:
    """Return what ``model/input.json`` holds."""
    data, options = run.data, run.options
    kept = ("id_column", "text_column", "vector_column", "encoding", "label_column")
    given = reading_arguments(options)
    return {
        "version": 1,
        "kind": data.P.kind,
        "plan": plain(dict(data.P.plan)),
        "options": {name: given[name] for name in kept if name in given},
        "aside": list(given.get("aside", ())),
        "method": facts.method,
        "scenario": facts.scenario,
        "threshold": asdict(facts.threshold),
        "prior": facts.to_json()["prior"],
        "positives": names_of_positives(run.model, data.P.ids),
    }


# --- what the model says -------------------------------------------------------------


def prior_facts(
    model: Any, counts: Counts, given: float | None
) -> tuple[Prior, Count | None]:
    """Return the share of positives inside U, and their number, with intervals."""
    evidence = getattr(model, "evidence_", None)
    about: dict[str, Any] = {"level": 0.9, "source": "model"}
    if evidence is not None:
        value, ends = evidence.prior_in_unlabeled, evidence.prior_interval
        found = evidence.prior_estimates.items()
        about = {"level": evidence.prior_level, "source": evidence.prior_from}
        about["estimates"] = {name: _inside(share, counts) for name, share in found}
    elif given is not None:
        value, ends, about["source"] = given, (given, given), "given"
    else:
        value = getattr(model, "prior_in_unlabeled_", None)
        ends = getattr(model, "prior_interval_", (0.0, 1.0))
    if value is None:
        return Prior(), None
    low, high = min(ends[0], value), max(ends[1], value)
    inside = Share(value, low, high, "open", counts).to("unlabeled")
    three = inside.value, inside.low, inside.high
    return Prior(*three, **about), Count(*(counts.unlabeled * one for one in three))


def _inside(share: float, counts: Counts) -> float:
    """Return a share of the open items as one of all U."""
    return Share.exactly(share, "open", counts).to("unlabeled").value


def _judged(run: _Run, Z: Embeddings) -> dict[str, Any]:
    """Return figures, checks and lists; most need positives that were held out."""
    model, data = run.model, run.data
    checks = [Check("shortcut", False, told) for told in data.shortcuts] or [
        Check("shortcut", True, "No fact about the files alone gives the labels away.")
    ]
    alarms = getattr(model, "checks_", ())
    made = [Check(one.name, one.ok, one.sentence) for one in alarms]
    evidence = getattr(model, "evidence_", None)
    if evidence is None:
        checks = made + checks
        return {"evaluation": None, "sensitivity": [], "checks": checks, "lists": []}
    P, U = evidence.positive, evidence.unlabeled
    share = evidence.prior_in_unlabeled
    is_open = ~(data.is_copy | data.known_negative)
    scar = scar_check(
        P,
        U,
        prior_in_unlabeled=share,
        positive_features=None if Z is None else Z[0][run.held],
        unlabeled_features=None if Z is None else Z[1][is_open],
        positive_groups=evidence.groups_positive,
        unlabeled_groups=evidence.groups_unlabeled,
        random_state=0,
    )
    trivial = trivial_check(P, U, prior_in_unlabeled=share, threshold=model.threshold_)
    checks = [
        *made,
        Check(
            "labels at random",
            not scar.doubtful if scar.tests else None,
            scar.sentence,
            " ".join(test.sentence for test in scar.tests),
        ),
        Check("trivial model", not trivial.trivial, trivial.sentence),
        *checks,
    ]
    lists = {
        "sure negatives": declared_negatives(P, U, level=LEVEL),
        "negatives that lose few positives": declared_negatives(
            P, U, level=LEVEL, control="row"
        ),
        "positives that let few negatives in": declared_positives(U, level=LEVEL),
    }
    return {
        "evaluation": model.evaluate(),
        "sensitivity": _sensitivity(model, data.counts),
        "checks": checks,
        "lists": [Promise(k, v.n, v.level, v.promise) for k, v in lists.items()],
    }


def _sensitivity(model: Any, counts: Counts) -> list[IfShare]:
    """Return the figures over the interval of the share.

    One that was given has none: the table reaches from it over what the scores say.
    """
    evidence = model.evidence_
    low, high = evidence.prior_interval
    given: list[float] = []
    if evidence.prior_from == "given":  # it may be wrong: what do P and U say?
        given = [evidence.prior_in_unlabeled]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DensPUWarning)  # of an estimate
            ends = with_estimated_prior(evidence, None, 0).prior_interval
        low, high = min(low, ends[0]), max(high, ends[1])
    steps = np.linspace(low, high, STEPS if high > low else 1)
    found = prior_sensitivity(
        evidence.positive,
        evidence.unlabeled,
        priors=np.union1d(steps, given).tolist(),
        threshold=model.threshold_,
        random_state=0,
    )
    names = ("precision", "recall", "f1", "accuracy")
    return [
        IfShare(_inside(prior, counts), *(plain(report[name].value) for name in names))
        for prior, report in zip(found.priors, found.reports, strict=True)
    ]


def curves_of(model: Any) -> list[Curve]:
    """Return the loss of every training inside a model."""
    parts = [(f"{name[:-1]}: ", getattr(model, name, None)) for name in PARTS]
    found = []
    for start, part in [*parts, ("", model)]:
        for name, value in getattr(part, "__dict__", {}).items():
            held = value if isinstance(value, list | tuple) else [value]
            words = name.rstrip("_").replace("_", " ").replace("history", "training")
            for number, one in enumerate(held, 1):
                if isinstance(one, History) and len(one) and "loss" in one.last:
                    which = f" {number}" if len(held) > 1 else ""
                    epochs = [row.get("epoch", i) for i, row in enumerate(one.rows, 1)]
                    loss = plain(one.column("loss"))
                    found.append(Curve(f"{start}{words}{which}", "loss", epochs, loss))
    return found


# --- each item -----------------------------------------------------------------------


def rows_of(model: Any, data: RunData, held: BoolArray, Z: Embeddings) -> RunRows:
    """Return the items with everything that is known of each."""
    P, U = data.P, data.U
    score_U = np.array(model.decision_function(U.X), dtype=np.float64)
    unseen = getattr(model, "unseen_scores_", None)  # by models that have not seen them
    if unseen is None:
        score_P = np.array(model.decision_function(P.X), dtype=np.float64)
    else:
        score_P = np.array(unseen[: len(P)])
        score_U[~data.is_copy] = unseen[len(P) :]  # copies took no part in the fit
    evidence = getattr(model, "evidence_", None)
    if evidence is not None:  # positives judged by models without them
        score_P[evidence.held_out] = evidence.positive
    probability = getattr(model, "posterior_", expit)(score_U)
    called = score_U > model.threshold_
    known = (data.is_copy, data.known_negative)
    negative = np.asarray(getattr(model, "negative_index_", []), dtype=np.int64)
    chosen = np.flatnonzero(~data.is_copy)[negative[negative >= len(P)] - len(P)]
    stage = _stages(score_U, called, chosen, data)
    places, note = None, "The method has no embedding to draw a map of."
    if Z is not None:
        places, shares = project(np.concatenate(Z))
        note = f"2 main directions (PCA): {shares.sum():.0%} of the variance"
    return RunRows(
        positive=P,
        unlabeled=U,
        score_positive=score_P,
        held_out=held,
        score_unlabeled=score_U,
        probability=np.select(known, (1.0, 0.0), probability),
        rank=ranks(score_U),
        decision=np.select(known, (1, 0), called).astype(np.int64),
        stage=stage,
        map_positive=None if places is None else places[: len(P)],
        map_unlabeled=None if places is None else places[len(P) :],
        map_note=note,
        chosen=chosen,
        odd_positive=_odd(score_P, float(model.threshold_), held, data.is_copy, Z),
    )


def _stages(
    scores: FloatArray, called: BoolArray, chosen: IntArray, data: RunData
) -> NDArray[Any]:
    """Return what settled each item, in fixed words; what is known comes first."""
    stage = np.full(len(scores), DECIDED, dtype=object)
    is_open = ~(data.is_copy | data.known_negative)
    above = np.flatnonzero(called & is_open)
    below = np.flatnonzero(~called & is_open)
    n = max(1, round(CLOSE * min(len(above), len(below))))
    stage[above[np.argsort(scores[above], kind="stable")[:n]]] = NEAR
    stage[below[np.argsort(-scores[below], kind="stable")[:n]]] = NEAR
    stage[chosen[~called[chosen]]] = CHOSEN
    stage[data.known_negative] = KNOWN
    stage[data.is_copy] = COPY
    return stage


def embeddings_of(model: Any, data: RunData) -> Embeddings:
    """Return the model's embeddings of all items, or None if it has none."""
    part = getattr(model, "encoder_", getattr(model, "table_", None))
    if part is None and not kind_of(data.P).is_embedding:
        return None
    P, U = (
        np.asarray(one.X if part is None else part.transform(one.X), dtype=np.float64)
        for one in (data.P, data.U)
    )
    return P, U


def _odd(
    scores: FloatArray,
    threshold: float,
    held: BoolArray,
    is_copy: BoolArray,
    Z: Embeddings,
) -> IntArray:
    """Return positions of labelled positives that look mislabelled, oddest first.

    With an embedding: how far the nearest other positives are, against the nearest
    unlabelled items; those far beyond the usual count. No positive vouches for itself,
    whether it was held out or not. Without: held-out ones below the threshold.
    """
    if Z is None or len(Z[0]) <= NEIGHBOURS:
        low = np.flatnonzero(held & (scores <= threshold))
        return low[np.argsort(scores[low], kind="stable")][:MOST_ODD]
    P, U = Z[0], Z[1][~is_copy]
    U = U[:: -(-len(U) // COMPARED)]
    ours = Neighbours(P).search(P, NEIGHBOURS, exclude_self=True)
    theirs = Neighbours(U).search(P, min(NEIGHBOURS, len(U)))
    near, other = (
        np.concatenate([f.distance for f in found]).mean(axis=1) + 1e-12
        for found in (ours, theirs)
    )
    odd = np.log(near) - np.log(other)
    first, third = np.quantile(odd, [0.25, 0.75])
    far = np.flatnonzero(odd > third + 1.5 * (third - first))
    return far[np.argsort(-odd[far], kind="stable")][:MOST_ODD]


def project(Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the first two principal coordinates and their shares of variance."""
    found = min(2, *Z.shape)
    points, shares = np.zeros((len(Z), 2)), np.zeros(2)
    if np.ptp(Z, axis=0).any():
        pca = PCA(n_components=found, random_state=0)
        pca.fit(Z[:: -(-len(Z) // ENOUGH)])
        points[:, :found] = pca.transform(Z)
        shares[:found] = pca.explained_variance_ratio_
    return points, shares


# --- warnings ------------------------------------------------------------------------


def _doubts(
    entry: Entry, model: Any, options: RunOptions, data: RunData, told: str
) -> list[str]:
    """Return what is doubtful before the fit begins."""
    said = [*data.warnings, *([told] if told else [])]
    given = "--prior" if options.prior is not None else "--prior-in-unlabeled"
    if (options.prior or options.prior_in_unlabeled) and not model._learns_from_prior():
        said.append(
            f"{entry.key} learns without a prior: {given} sets chances and estimates. "
            "--threshold prior moves the cut to it."
        )
    if options.max_seconds is not None and "max_seconds" not in entry.takes():
        said.append(f"{entry.key} has no time limit: --max-seconds was not used.")
    return said


def _contradiction(run: _Run, rows: RunRows) -> list[str]:
    """Say if the method's own cut and the chances tell different stories."""
    if run.options.wish is not None or not hasattr(run.model, "evidence_"):
        return []
    called, likely = rows.decision == 1, rows.probability >= 0.5
    doubted = {
        "called positive have a chance below 50 %": called & ~likely,
        "called negative have a chance of 50 % or more": ~called & likely,
    }
    held = f"which rest on {many(int(run.held.sum()), 'held-out positive')}"
    return [
        f"{many(int(which.sum()), 'item')} {told}: the method's own cut and the "
        f"chances, {held}, disagree. Choose the cut with --threshold."
        for told, which in doubted.items()
        if which.sum() > max(SOME, MANY * called.sum())
    ]


@contextmanager
def _collected(said: list[str]) -> Iterator[None]:
    """Add the warnings of the block to ``said``, each once, as sentences."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if issubclass(warning.category, SILENT):
            continue
        text = " ".join(str(warning.message).split())
        if not issubclass(warning.category, DensPUWarning):
            text = f"{warning.category.__name__}: {text}"
        if text not in said:
            said.append(text)
