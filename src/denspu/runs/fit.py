"""``fit_run``: from files to a run folder."""

from __future__ import annotations

import datetime as dt
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._files import plain
from denspu._progress import Stage, does, hearing, many
from denspu._registry import Entry
from denspu._share import Share
from denspu._typing import BoolArray, IntArray
from denspu.data import join
from denspu.exceptions import DensPUWarning, InvalidInputError
from denspu.methods._base import key_of
from denspu.persistence import versions
from denspu.report import words
from denspu.runs import findings
from denspu.runs.facts import Copy, RunFacts, RunRows
from denspu.runs.findings import Embeddings
from denspu.runs.folder import REPORT, WorkFolder, WriteReport, check_out, write_run
from denspu.runs.options import (
    PRIOR_OF,
    RunOptions,
    build_method,
    check_options,
    given_share,
    scenario_of,
)
from denspu.runs.reading import RunData, hold_out, read_run, reading_arguments

Tell = Callable[[str, str], None]
"""Called with a word (reading, fitting, result, ...) and a sentence."""

SILENT = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
"""Warnings for programmers, not for those who run a fit."""

MANY, SOME = 0.1, 5
"""Items whose decision and chance disagree are spoken of beyond this share of those
called positive, and beyond this number."""


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
            Z = findings.embeddings_of(run.model, run.data)
            rows = findings.rows_of(run.model, run.data, run.held, Z)
            run.said += _contradiction(run, rows)
            facts = _facts(run, rows, Z)
        for word, sentence in words.share_lines(facts.prior):
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
    named: dict[str, NDArray[Any] | None]
    """What is known of the rows of X, by the argument of ``fit``."""
    held: BoolArray
    """Labelled positives that are held out."""
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
    held, told = hold_out(
        data.P,
        options.holdout,
        groups=None if data.groups is None else data.groups[0],
        times=data.times,
        seed=options.seed,
    )
    _check_wish(options, held, told, data.counts.open)
    left = ~data.is_copy
    X, y, _ = join(data.P, data.U if left.all() else data.U.take(left))
    known, mask = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=bool)
    known[len(data.P) :] = data.known_negative[left]
    mask[: len(data.P)] = held
    groups = None
    if data.groups is not None:
        groups = np.concatenate([data.groups[0], data.groups[1][left]])
    asked = options.told()
    key = key_of(X, y, mask, known, groups, asked)
    if options.prior is not None:
        asked = {name: value for name, value in asked.items() if name != PRIOR_OF}
        before = key_of(X, y, mask, known, groups, asked)
        if work.belongs_to(before):  # begun when prior was the share inside U
            options = replace(options, prior=None, prior_in_unlabeled=options.prior)
            key = before
        tell("note", words.prior_note(options))
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
    named = {
        "known_negative": known if known.any() else None,
        "groups": groups,
        "holdout": mask if held.any() else None,
    }
    given = None if share is None else share.value
    return _Run(
        options, data, X, y, named, held, told, given, model, said, began, seconds
    )


def _check_wish(options: RunOptions, held: BoolArray, told: str, n_open: int) -> None:
    wish = options.wish
    if wish is None:
        return
    if not held.any():
        raise InvalidInputError(
            f"threshold={options.threshold!r} is chosen with held-out positives. {told}"
        )
    if wish.rule == "top" and (wish.target or 0) > n_open:
        raise InvalidInputError(
            f"threshold={options.threshold!r}: there {does(n_open, 'is', 'are')} "
            f"{many(n_open, 'item')} to choose from. Ask for fewer."
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
    findings.settle_evidence(run.model, run.options.scenario, run.share)
    if hasattr(run.model, "evidence_"):
        run.model.calibrate()
        if run.options.wish is not None:
            run.model.set_threshold(**run.options.wish.arguments)


# --- facts ---------------------------------------------------------------------------


def _facts(run: _Run, rows: RunRows, Z: Embeddings) -> RunFacts:
    model, data, options = run.model, run.data, run.options
    prior, count = findings.prior_facts(model, data.counts, run.share)
    judged = None  # embeddings of held-out positives and of the open items of U
    if Z is not None:
        judged = Z[0][run.held], Z[1][~(data.is_copy | data.known_negative)]
    P, U, found = data.P.ids, data.U.ids, data.copies
    copies = [Copy(P[p], U[u], "exact") for p, u in found.exact]
    copies += [Copy(P[p], U[u], "near") for p, u in found.near]
    read = {
        "positives": len(P),
        "unlabeled": len(U),
        "skipped": len(data.skipped),
        "copies": data.counts.known_positive,
    }
    reading = Stage("read", run.seconds["read"], read)
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
        threshold=findings.threshold_facts(model),
        evaluation=model.evaluate() if hasattr(model, "evidence_") else None,
        sensitivity=findings.sensitivity_of(model, data.counts),
        checks=findings.checks_of(model, data, judged),
        lists=findings.lists_of(model),
        stages=findings.stages_of(model, reading, run.seconds["fit"]),
        curves=findings.curves_of(model),
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
    }


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
