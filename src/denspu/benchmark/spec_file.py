"""A spec's TOML file, read with nothing left to guess.

Unknown keys are refused with the nearest known one: a misspelt setting must not run as
a default.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from denspu._parameters import About, OneOf, Part, check_parameters
from denspu._registry import Entry, Kind, registry, resolve_part
from denspu.benchmark.spec import (
    METRICS,
    OF_THE_WALK,
    OVER_TASKS,
    SUPERVISED,
    Row,
    Spec,
    Task,
    cells_of,
)
from denspu.data._sets import find_set
from denspu.exceptions import InvalidParameterError, did_you_mean

RESERVED = ("random_state", "device", "verbose", "prior", "scenario")
"""Parameters that no row may set: they follow from spec, task, row and command."""
RESERVED_OF_PARTS = ("random_state", "device", "verbose")

FROM_THE_FILE = ("name", "path")
"""What a spec does not say of itself."""

# --- reading ------------------------------------------------------------------------


def load_spec(path: str | Path) -> Spec:
    """Read and check a spec.

    Raises
    ------
    InvalidParameterError
        If the file is missing, is no TOML, or holds a key or value that is not known;
        the message names it and what is allowed.
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidParameterError(
            f"There is no spec at {path}. Those that come with denspu are in "
            "benchmarks/specs."
        ) from None
    except OSError as error:
        raise InvalidParameterError(
            f"The spec {path} cannot be read: {error.strerror}. Name a TOML file."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidParameterError(f"{path} is not a TOML file: {error}.") from None
    return replace(parse_spec(table, path.stem), path=str(path))


def parse_spec(table: Mapping[str, Any], name: str) -> Spec:
    """Return the spec a table of settings describes."""
    where = f"spec {name!r}"
    for key in FROM_THE_FILE:
        if key in table:
            raise InvalidParameterError(
                f"{where} gives itself a {key}. That of its file is meant: leave it "
                "out."
            )
    given = {**table, "name": name}
    try:
        spec = TypeAdapter(Spec).validate_python(given)
    except ValidationError as error:
        raise InvalidParameterError(_in_words(error, given, where)) from None
    spec = replace(spec, tasks=tuple(map(_in_order, spec.tasks)))
    check_spec(spec, where)
    return spec


def _in_words(error: ValidationError, given: Mapping[str, Any], where: str) -> str:
    """Say what is wrong: where, the key, its value and what is allowed.

    A misspelt key goes first, since another is then lacking.
    """
    unknown = "unexpected_keyword_argument"
    fault = min(error.errors(), key=lambda one: one["type"] != unknown)
    kind: Any = Spec
    table: Any = given
    place = list(fault["loc"])
    if len(place) > 1 and isinstance(place[1], int) and place[0] in KINDS_OF_TABLES:
        tables, number = str(place[0]), place[1]
        where = f"{tables[:-1]} {number + 1} of {where}"
        kind, table = KINDS_OF_TABLES[tables], given[tables][number]
        place = place[2:]
    if not place:
        return f"{where} must be a table, not {table!r}."
    key, value = str(place[0]), fault["input"]
    if fault["type"] == unknown:
        known = [f.name for f in fields(kind)]
        known = [k for k in known if kind is not Spec or k not in FROM_THE_FILE]
        return (
            f"{where} has no setting {key!r}.{did_you_mean(key, known)} "
            f"It takes: {', '.join(known)}."
        )
    if kind is Spec and key in KINDS_OF_TABLES:
        if isinstance(table.get(key), Mapping):
            return (
                f"{where} has [{key}] as one table. There may be several: write "
                f"[[{key}]]."
            )
        return f"{where} has no {key}. Write at least one [[{key}]] table."
    if fault["type"] == "missing":
        return f"{where} lacks {key!r}."
    if fault["type"] == "literal_error":
        allowed = fault["ctx"]["expected"]
        words = allowed.replace(" or ", ", ").replace("'", "").split(", ")
        hint = did_you_mean(str(value), words)
        return f"{key}={value!r} of {where} must be {allowed}.{hint}"
    if key == "printed":
        key = ".".join(map(str, place))
        allowed = "a number in percent, above 1"
    else:
        value = table[key]
        allowed = kind.__pydantic_fields__[key].description
    allowed = allowed or fault["msg"].removeprefix("Input should be ")
    return f"{key}={value!r} of {where} must be {allowed}."


KINDS_OF_TABLES = {"tasks": Task, "rows": Row}


def _in_order(task: Task) -> Task:
    """Return a task with its classes in order, and not named where they are usual."""
    if task.positive is None:
        return task
    positive = tuple(sorted(set(task.positive)))
    usual = tuple(sorted(find_set(task.dataset).positive))
    return replace(task, positive=None if positive == usual else positive)


# --- what keys must mean to each other ----------------------------------------------


def check_spec(spec: Spec, where: str) -> None:
    """Check what the declared types alone cannot know."""
    rows, tasks = [r.name for r in spec.rows], [t.name for t in spec.tasks]
    _unique("task", tasks, where)
    _unique("row", rows, where)
    _unique("seed", map(str, spec.seeds), where)
    _unique("metric", spec.metrics, where)
    if spec.metrics[0] in OF_THE_WALK:
        raise InvalidParameterError(
            f"metrics of {where} begins with {spec.metrics[0]!r}, which methods other "
            f"than dens_pu have not. Let one of these lead: {', '.join(METRICS)}."
        )
    if spec.reference is not None:
        _known("reference", spec.reference, rows, where)
    _refuse_reserved(spec.shared_encoder, f"shared_encoder of {where}")
    try:
        build = registry().get("contrastive", "encoder").build
        check_parameters(build(**spec.shared_encoder))
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"shared_encoder of {where}: {error}") from None
    for task in spec.tasks:
        _check_task(task, where)
        if not spec.rows_of(task):
            raise InvalidParameterError(
                f"No row of {where} runs on task {task.name!r}. Name it in a row, or "
                "take it out."
            )
    for row in spec.rows:
        for name in (*(row.tasks or ()), *row.printed):
            _known(f"task of row {row.name!r}", name, tasks, where)
        for metric in (m for claims in row.printed.values() for m in claims):
            _known(f"printed metric of row {row.name!r}", metric, METRICS, where)
        _unique(f"in row {row.name!r} the seed", map(str, row.seeds or ()), where)
        if not set(row.seeds or ()) <= set(spec.seeds):
            raise InvalidParameterError(
                f"seeds={list(row.seeds or ())} of row {row.name!r} in {where} must be "
                f"some of the table's: {', '.join(map(str, spec.seeds))}. Leave it out "
                "for all of them."
            )
        ran = [t for t in spec.tasks if row.tasks is None or t.name in row.tasks]
        _check_row(row, ran, f"Row {row.name!r} of {where}")
    headings = [name for name, _ in groupby(row.group for row in spec.rows)]
    for name in headings:
        if headings.count(name) > 1:
            of = f"of group {name!r}" if name else "without a group"
            raise InvalidParameterError(
                f"The rows {of} in {where} do not stand together. Put them below each "
                "other, or give those further down another group."
            )
    seen: dict[str, str] = {}
    for cell in cells_of(spec):
        if (other := seen.setdefault(cell.id, cell.title)) != cell.title:
            raise InvalidParameterError(
                f"{where} asks for one run twice: {other}, and {cell.title}. Take one "
                "out."
            )


def _check_task(task: Task, where: str) -> None:
    if task.name == OVER_TASKS:
        raise InvalidParameterError(
            f"A task of {where} is called {task.name!r}. Give it a name of its own."
        )
    classes = len(find_set(task.dataset).class_names)
    if task.positive is not None and not set(task.positive) < set(range(classes)):
        raise InvalidParameterError(
            f"positive={list(task.positive)} of task {task.name!r} in {where} must "
            f"name classes of {task.dataset}, 0 to {classes - 1}, and leave some "
            "for the negatives."
        )
    if isinstance(task.n_labeled, int) and task.share_of != "positives":
        raise InvalidParameterError(
            f"share_of={task.share_of!r} of task {task.name!r} in {where} needs a "
            f"share as n_labeled, and {task.n_labeled} is a count."
        )


def _check_row(row: Row, tasks: Sequence[Task], who: str) -> None:
    _refuse_reserved(row.parameters, who)
    supervised = row.method == SUPERVISED
    if supervised != row.sees_labels:
        raise InvalidParameterError(
            f"{who} has method={row.method!r} and oracle={row.oracle!r}. True labels "
            "are for method='supervised' alone, and it needs them: oracle='negatives' "
            "or 'all'."
        )
    if supervised:
        for key, usual in (("prior", "none"), ("selection", "last"), ("cut", "own")):
            if getattr(row, key) != usual:
                raise InvalidParameterError(
                    f"{who} has {key}={getattr(row, key)!r}, which is of no use to "
                    "method='supervised': leave it out."
                )
    elif row.encoder == "shared" and "encoder" in row.parameters:
        raise InvalidParameterError(
            f"{who} has encoder='shared' and an encoder of its own among the "
            "parameters. Keep one of them."
        )
    elif row.encoder == "shared" and row.keeps_to_cpu:
        raise InvalidParameterError(
            f"{who} has encoder='shared' and device={row.device!r}, and shared "
            "encoders are trained where the run is told. Leave the device out."
        )
    entry = entry_of(row.method, who)
    if not supervised:
        _check_prior(row, entry, who)
    for task in tasks:
        if not supervised and entry.scenario not in (None, "any", task.scenario):
            raise InvalidParameterError(
                f"{who} has method={row.method!r}, which is for the {entry.scenario} "
                f"scenario, and task {task.name!r} is {task.scenario}. Name its tasks "
                "in the row."
            )
    method = _built(entry, row, who)
    if row.prior != "true" or not hasattr(method, "_learns_from_prior"):
        return
    for scenario in sorted({task.scenario for task in tasks}):
        if hasattr(method, "scenario"):
            method.set_params(scenario=scenario)
        if not method._learns_from_prior():  # it would go on as if it had none
            raise InvalidParameterError(
                f"{who} has prior='true', and {row.method!r} with these parameters "
                f"makes no use of it on {scenario} data. Leave the prior out, or cut "
                "at it with cut='true prior'."
            )


def _check_prior(row: Row, entry: Entry, who: str) -> None:
    allowed: tuple[str, ...]
    if entry.needs_prior:
        needs, allowed = "needs a class prior", ("true", "estimate")
    elif "prior" in entry.takes():
        needs = "estimates a class prior by itself unless it is told"
        allowed = ("none", "true")
    else:
        needs, allowed = "takes no class prior", ("none",)
    if row.prior not in allowed:
        raise InvalidParameterError(
            f"{who} has prior={row.prior!r}, and {row.method!r} {needs}: use "
            f"{' or '.join(map(repr, allowed))}."
        )


def _refuse_reserved(parameters: Mapping[str, Any], who: str) -> None:
    for name in parameters:
        _, of_a_part, last = name.rpartition("__")
        if last in (RESERVED_OF_PARTS if of_a_part else RESERVED):
            raise InvalidParameterError(
                f"{who} sets {name!r}, which the benchmark itself decides: seeds "
                "from the spec, scenario from the task, prior from the row's 'prior', "
                "device from the command. Leave it out."
            )


def _unique(what: str, names: Iterable[str], where: str) -> None:
    names = list(names)
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InvalidParameterError(
            f"{where} has {what} {', '.join(sorted(twice))} twice."
        )


def _known(what: str, word: str, allowed: Sequence[str], where: str) -> None:
    if word not in allowed:
        raise InvalidParameterError(
            f"{what} {word!r} of {where} is not known.{did_you_mean(word, allowed)} "
            f"Known: {', '.join(allowed)}."
        )


# --- methods ------------------------------------------------------------------------


def entry_of(method: str, who: str = "A row") -> Entry:
    """Return what is known of a method: of the registry, or by import path.

    Raises
    ------
    InvalidParameterError
        If nothing is called so, or a class of one's own cannot be imported or used.
    """
    target = "denspu.benchmark.work:Supervised" if method == SUPERVISED else method
    if ":" not in target:
        return registry().get(target)
    module, _, name = target.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameterError(
            f"{who} has method={method!r}, which cannot be imported: {error}. Write "
            "'package.module:Class', and install the package or name its folder in "
            "PYTHONPATH."
        ) from None
    if not isinstance(found, type) or not all(
        callable(getattr(found, verb, None)) for verb in ("fit", "decision_function")
    ):
        raise InvalidParameterError(
            f"{who} has method={method!r}, which is no class with fit(X, y) and "
            "decision_function(X)."
        )
    facts = asdict(getattr(found, "about", About()))
    facts |= {"key": method, "kind": "method", "target": target}
    return Entry(**facts, summary="", defaults={})


def _built(entry: Entry, row: Row, who: str) -> Any:
    """Return the method; parameters that it or a part of it has not are refused."""
    try:
        method: Any = entry.build(**row.parameters)
        rules: Mapping[str, Any] = getattr(method, "_rules", {})
        if rules:
            check_parameters(method)
        for name, allowed in rules.items():
            value = getattr(method, name)
            words = [rule for rule in allowed if isinstance(rule, OneOf)]
            a_word = value == "auto" or any(rule.allows(value) for rule in words)
            for rule in allowed:
                if isinstance(rule, Part) and not a_word:
                    part = resolve_part(value, cast(Kind, rule.kind), argument=name)
                    if hasattr(part, "_rules"):
                        check_parameters(part)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"{who} cannot be built. {error}") from None
    return method
