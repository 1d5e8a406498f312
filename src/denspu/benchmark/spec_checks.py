"""What the keys of a spec must mean to each other, beyond what one table knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from denspu._parameters import OneOf, Part, check_parameters
from denspu._registry import Entry, Kind, registry, resolve_part
from denspu.benchmark.cells import cells_of
from denspu.benchmark.spec import (
    METRICS,
    OF_THE_WALK,
    OVER_TASKS,
    SUPERVISED,
    Prior,
    Row,
    Spec,
    Task,
)
from denspu.data._sets import find_set
from denspu.exceptions import InvalidParameterError, UnknownPartError, did_you_mean

RESERVED = ("random_state", "device", "verbose", "prior", "scenario")
"""Parameters that no row may set: they follow from spec, task, row and command."""
RESERVED_OF_PARTS = ("random_state", "device", "verbose")
"""The same of the parts of a method."""


def check_spec(spec: Spec, where: str) -> None:
    """Check what one table alone cannot know."""
    _unique("task", [t.name for t in spec.tasks], where)
    _unique("row", [r.name for r in spec.rows], where)
    _unique("seed", [str(s) for s in spec.seeds], where)
    _unique("metric", list(spec.metrics), where)
    for key in ("seeds", "metrics"):
        if not getattr(spec, key):
            raise InvalidParameterError(
                f"{key} of {where} is empty. Give at least one."
            )
    if min(spec.seeds) < 0:
        raise InvalidParameterError(f"seeds of {where} must be 0 or more.")
    for metric in spec.metrics:
        _known("metric", metric, (*METRICS, *OF_THE_WALK), where)
    if spec.metrics[0] in OF_THE_WALK:
        raise InvalidParameterError(
            f"metrics of {where} begins with {spec.metrics[0]!r}, which methods other "
            f"than dens_pu have not. Let one of these lead: {', '.join(METRICS)}."
        )
    _check_encoder(spec, where)
    tasks = [t.name for t in spec.tasks]
    if spec.reference is not None:
        _known("reference", spec.reference, [r.name for r in spec.rows], where)
    for task in spec.tasks:
        _check_task(task, where)
    for row in spec.rows:
        if not row.name.strip():
            raise InvalidParameterError(f"A row of {where} has an empty name.")
        if row.tasks == ():
            raise InvalidParameterError(
                f"tasks of row {row.name!r} in {where} is empty: it would never run. "
                "Name some of the table's, or leave it out for all of them."
            )
        for name in (*(row.tasks or ()), *row.printed):
            _known(f"task of row {row.name!r}", name, tasks, where)
        _check_seeds(row, spec.seeds, where)
        _check_printed(row, where)
        ran = [t for t in spec.tasks if row.tasks is None or t.name in row.tasks]
        _check_row(row, {task.scenario for task in ran}, where)
    for task in spec.tasks:
        if not spec.rows_of(task):
            raise InvalidParameterError(
                f"No row of {where} runs on task {task.name!r}. Name it in a row, or "
                "take it out."
            )
        for row in spec.rows_of(task):
            _check_pair(row, task, where)
    _check_groups(spec.rows, where)
    _check_twins(spec, where)


def _check_encoder(spec: Spec, where: str) -> None:
    _not_reserved(spec.shared_encoder, f"shared_encoder of {where}")
    try:
        encoder = registry().get("contrastive", "encoder").build(**spec.shared_encoder)
        check_parameters(encoder)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"shared_encoder of {where}: {error}") from None


def _check_seeds(row: Row, seeds: tuple[int, ...], where: str) -> None:
    _unique(f"in row {row.name!r} the seed", list(map(str, row.seeds or ())), where)
    if row.seeds is not None and not (row.seeds and set(row.seeds) <= set(seeds)):
        raise InvalidParameterError(
            f"seeds={list(row.seeds)} of row {row.name!r} in {where} must be some of "
            f"the table's: {', '.join(map(str, seeds))}. Leave it out for all of them."
        )


def _check_printed(row: Row, where: str) -> None:
    for task, claims in row.printed.items():
        if not isinstance(claims, Mapping):
            raise InvalidParameterError(
                f"printed.{task} of row {row.name!r} in {where} must be a table of "
                "metrics."
            )
        for metric, value in claims.items():
            _known(f"printed metric of row {row.name!r}", metric, METRICS, where)
            if not isinstance(value, int | float) or not 1 < value <= 100:
                raise InvalidParameterError(
                    f"printed.{task}.{metric}={value!r} of row {row.name!r} in {where} "
                    "must be a number in percent."
                )


def _check_pair(row: Row, task: Task, where: str) -> None:
    """Refuse a method on a task that was drawn in a way it cannot handle."""
    if row.method == SUPERVISED:
        return
    takes = registry().get(row.method).scenario
    if takes not in ("any", task.scenario):
        raise InvalidParameterError(
            f"Row {row.name!r} of {where} has method={row.method!r}, which is for the "
            f"{takes} scenario, and task {task.name!r} is {task.scenario}. Name its "
            "tasks in the row."
        )


def _check_groups(rows: Sequence[Row], where: str) -> None:
    """Refuse a group that begins a second time further down."""
    headings = [name for name, _ in groupby(row.group for row in rows)]
    for name in headings:
        if headings.count(name) > 1:
            of = f"of group {name!r}" if name else "without a group"
            raise InvalidParameterError(
                f"The rows {of} in {where} do not stand together. Put them below each "
                "other, or give those further down another group."
            )


def _check_twins(spec: Spec, where: str) -> None:
    """Refuse two rows, or two tasks, that would be the same runs."""
    seen: dict[str, str] = {}
    for cell in cells_of(spec):
        other = seen.setdefault(cell.id, cell.title)
        if other != cell.title:
            raise InvalidParameterError(
                f"{where} asks for one run twice: {other}, and {cell.title}. Take one "
                "out."
            )


def _not_reserved(parameters: Mapping[str, Any], where: str) -> None:
    for name in parameters:
        _, of_a_part, last = name.rpartition("__")
        if last in (RESERVED_OF_PARTS if of_a_part else RESERVED):
            raise InvalidParameterError(
                f"{where} sets {name!r}, which the benchmark itself decides: seeds "
                "from the spec, scenario from the task, prior from the row's 'prior', "
                "device from the command. Leave it out."
            )


def _check_task(task: Task, where: str) -> None:
    if not task.name.strip() or task.name == OVER_TASKS:
        raise InvalidParameterError(
            f"A task of {where} is called {task.name!r}. Give it a name of its own."
        )
    share = isinstance(task.n_labeled, float)
    if not task.n_labeled > 0 or (share and task.n_labeled >= 1):
        raise InvalidParameterError(
            f"n_labeled={task.n_labeled!r} of task {task.name!r} in {where} must be a "
            "count above 0 or a share between 0 and 1."
        )
    classes = find_set(task.dataset).class_names
    known = range(len(classes))
    if task.positive is not None and (
        not task.positive or not set(task.positive) < set(known)
    ):
        raise InvalidParameterError(
            f"positive={list(task.positive)} of task {task.name!r} in {where} must "
            f"name classes of {task.dataset}, 0 to {len(classes) - 1}, and leave some "
            "for the negatives."
        )
    if not share and task.share_of != "positives":
        raise InvalidParameterError(
            f"share_of={task.share_of!r} of task {task.name!r} in {where} needs a "
            f"share as n_labeled, and {task.n_labeled} is a count."
        )
    if not 0 < task.keep_positive <= 1:
        raise InvalidParameterError(
            f"keep_positive={task.keep_positive!r} of task {task.name!r} in {where} "
            "must be above 0 and at most 1."
        )


def _check_row(row: Row, scenarios: set[str], where: str) -> None:
    supervised = row.method == SUPERVISED
    _not_reserved(row.parameters, f"Row {row.name!r} of {where}")
    if supervised != (row.oracle != "no"):
        raise InvalidParameterError(
            f"Row {row.name!r} of {where} has method={row.method!r} and "
            f"oracle={row.oracle!r}. True labels are for method='supervised' alone, "
            "and it needs them: oracle='negatives' or 'all'."
        )
    if supervised:
        from denspu.benchmark.oracle import Supervised

        for key, usual in (("prior", "none"), ("selection", "last"), ("cut", "own")):
            if getattr(row, key) != usual:
                raise InvalidParameterError(
                    f"{key}={getattr(row, key)!r} of row {row.name!r} in {where} is of "
                    "no use to method='supervised': leave it out."
                )
        _built(Supervised, row, where)
        return
    entry = registry().get(row.method)
    needs, allowed = _priors(entry)
    if row.prior not in allowed:
        raise InvalidParameterError(
            f"Row {row.name!r} of {where} has prior={row.prior!r}, and {row.method!r} "
            f"{needs}: use {' or '.join(map(repr, allowed))}."
        )
    if row.encoder == "shared" and "encoder" in row.parameters:
        raise InvalidParameterError(
            f"Row {row.name!r} of {where} has encoder='shared' and an encoder of its "
            "own among the parameters. Keep one of them."
        )
    if row.encoder == "shared" and row.keeps_to_cpu:
        raise InvalidParameterError(
            f"Row {row.name!r} of {where} has encoder='shared' and device="
            f"{row.device!r}, and shared encoders are trained where the run is told. "
            "Leave the device out."
        )
    method = _built(entry.build, row, where)
    if row.prior == "true":
        _check_prior_counts(method, row, scenarios, where)


def _check_prior_counts(method: Any, row: Row, scenarios: set[str], where: str) -> None:
    """Refuse a true prior for a row that would go on as if it had none."""
    for scenario in sorted(scenarios):
        if hasattr(method, "scenario"):
            method.set_params(scenario=scenario)
        if not method._learns_from_prior():
            raise InvalidParameterError(
                f"Row {row.name!r} of {where} has prior='true', and {row.method!r} "
                f"with these parameters makes no use of it on {scenario} data. Leave "
                "the prior out, or cut at it with cut='true prior'."
            )


def _priors(entry: Entry) -> tuple[str, tuple[Prior, ...]]:
    """Return in words whether a method wants a class prior, and what a row may say."""
    if entry.needs_prior:
        return "needs a class prior", ("true", "estimate")
    if "prior" in entry.takes():
        return "estimates a class prior by itself unless it is told", ("none", "true")
    return "takes no class prior", ("none",)


def _built(build: Callable[..., Any], row: Row, where: str) -> Any:
    """Return the method; parameters that it or a part of it has not are refused."""
    try:
        method: Any = build(**row.parameters)
        check_parameters(method)
        for name, rules in method._rules.items():
            for rule in rules:
                if isinstance(rule, Part) and _names_a_part(method, name):
                    _check_part(getattr(method, name), rule.kind, name)
    except (TypeError, ValueError, UnknownPartError) as error:
        raise InvalidParameterError(
            f"Row {row.name!r} of {where} cannot be built. {error}"
        ) from None
    return method


def _names_a_part(method: Any, name: str) -> bool:
    """Tell whether a parameter is left to one of its part's names, or an object."""
    words = [r for r in method._rules[name] if isinstance(r, OneOf)]
    value = getattr(method, name)
    return value != "auto" and not any(rule.allows(value) for rule in words)


def _check_part(value: Any, kind: str, argument: str) -> None:
    """Refuse a part that does not exist, or settings that it does not take."""
    part = resolve_part(value, cast(Kind, kind), argument=argument)
    if hasattr(part, "_rules"):
        check_parameters(part)


def _unique(what: str, names: list[str], where: str) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InvalidParameterError(
            f"{where} has {what} {', '.join(sorted(twice))} twice."
        )


def _known(what: str, word: str, allowed: Any, where: str) -> None:
    if word not in allowed:
        raise InvalidParameterError(
            f"{what} {word!r} of {where} is not known.{did_you_mean(word, allowed)} "
            f"Known: {', '.join(allowed)}."
        )
