"""What a benchmark compares, as declared data: tasks, rows, seeds, and their cells.

A spec names tasks (a data set, its positive classes, how many labels), rows (a method
with its settings) and seeds. Every task × row × seed is one cell. A spec's TOML file is
read with nothing left to guess: a misspelt setting must not run as a default.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from dataclasses import dataclass as plain_dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import (
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from denspu._parameters import About, OneOf, Part, check_parameters
from denspu._registry import Entry, Kind, registry, resolve_part
from denspu.data._sets import find_set
from denspu.exceptions import InvalidParameterError, did_you_mean

Metric = Literal[
    "accuracy",
    "balanced_accuracy",
    "precision",
    "recall",
    "f1",
    "roc_auc",
    "average_precision",
]
OfTheWalk = Literal["boundary_auc", "purity", "unlabeled_right"]
METRICS: tuple[str, ...] = get_args(Metric)
OF_THE_WALK: tuple[str, ...] = get_args(OfTheWalk)
"""What true labels say of a Dens-PU walk on its own rows; a spec may ask for these."""
OVER_TASKS = "over tasks"
"""What tables call a column of their own; no task may be called so."""
SUPERVISED = "supervised"
"""In place of a method: ordinary training on true labels; rows with an oracle only."""
Name = Annotated[StrictStr, Field(pattern=r"\S", description="a name, not empty")]
Names = Annotated[tuple[StrictStr, ...], Field(min_length=1)]
Seeds = Annotated[tuple[Annotated[StrictInt, Field(ge=0)], ...], Field(min_length=1)]
Classes = Annotated[tuple[StrictInt, ...], Field(min_length=1)]
A_LIST_OF_SEEDS = "a list of seeds of 0 or more, such as [0, 1]"
Number = StrictInt | StrictFloat  # an integer stays one: it is part of a cell's id
Percent = Annotated[Number, Field(gt=1, le=100)]
Parameters = dict[str, Any]
DECLARED = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=DECLARED)
class Task:
    """A data set made into PU data; benchmarks/specs/README.md explains each key."""

    name: Name
    dataset: StrictStr
    """A set that denspu knows, or ``module:function`` that returns a ``Benchmark``;
    what follows a second colon is its argument."""
    n_labeled: Annotated[
        Annotated[StrictInt, Field(gt=0)] | Annotated[StrictFloat, Field(gt=0, lt=1)],
        Field(description="a count above 0, or a share between 0 and 1"),
    ]
    share_of: Literal["positives", "training set"] = "positives"
    positive: Annotated[
        Classes | None, Field(description="a list of class numbers, such as [0, 1]")
    ] = None
    """Classes that are positive; the set's own if not given."""
    keep_positive: Annotated[
        Number, Field(gt=0, le=1, description="a share above 0, up to 1")
    ] = 1.0
    """Share of the positives that are kept at all, in training and test part."""
    scenario: Literal["one-sample", "two-sample"] = "one-sample"
    mechanism: Literal["scar", "sar"] = "scar"


@dataclass(frozen=True, config=DECLARED)
class Row:
    """A method with its settings; benchmarks/specs/README.md explains each key."""

    name: Name
    method: StrictStr
    """Key in the registry, ``module:Class`` of one's own, or ``supervised``."""
    parameters: Parameters = Field(default_factory=dict)
    prior: Literal["none", "true", "estimate"] = "none"
    encoder: Literal["own", "shared"] = "own"
    """``shared``: the frozen contrastive encoder that is trained once for each seed and
    data, as our default trains its own."""
    cut: Literal["own", "true prior"] = "own"
    """Above which score a row is called positive: the method's own rule, or so that the
    true share of U is. For methods that take no prior, beside others that are told."""
    device: Literal["any", "cpu"] = "any"
    oracle: Literal["no", "negatives", "all"] = "no"
    """True labels that a supervised row may see: P and as many true negatives, or
    all."""
    tasks: Annotated[
        Names | None, Field(description='a list of names, such as ["one", "two"]')
    ] = None
    seeds: Annotated[Seeds | None, Field(description=A_LIST_OF_SEEDS)] = None
    selection: Literal["last", "label-free"] = "last"
    """Whose weights are judged: the last epoch's, or those that the method itself
    chooses without a label. The best epoch on the test set is never an option."""
    tuning: StrictStr = ""
    """What was tried out on these data before the runs; nothing if empty."""
    heavy: StrictBool = False
    """Fills a device by itself, and runs alone."""
    group: StrictStr = ""
    """Heading in the table above it and the rows of the same group after it."""
    printed: dict[str, dict[Metric, Percent]] = Field(default_factory=dict)
    """What the paper prints, in percent: task, then metric."""
    note: StrictStr = ""

    @property
    def keeps_to_cpu(self) -> bool:
        """Whether it runs on a CPU wherever the others do."""
        return self.device == "cpu"

    @property
    def sees_labels(self) -> bool:
        """Whether it is trained on true labels."""
        return self.oracle != "no"


@dataclass(frozen=True, config=DECLARED)
class Spec:
    """A table of the benchmark; benchmarks/specs/README.md explains each key."""

    name: Name
    title: StrictStr
    tasks: Annotated[tuple[Task, ...], Field(min_length=1)]
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    seeds: Annotated[Seeds, Field(description=A_LIST_OF_SEEDS)]
    metrics: Annotated[tuple[Metric | OfTheWalk, ...], Field(min_length=1)] = (
        "accuracy",
        "f1",
        "roc_auc",
    )
    layout: Literal["metrics", "tasks"] = "metrics"
    """Columns of the table: the metrics of each task, or one metric on all tasks."""
    reference: StrictStr | None = None
    """Name of the row that others are compared with."""
    shared_encoder: Parameters = Field(default_factory=dict)
    note: StrictStr = ""
    path: StrictStr = ""
    """The file it was read from, as the user named it; no setting of a table."""

    def rows_of(self, task: Task) -> tuple[Row, ...]:
        """Return the rows that run on a task."""
        return tuple(r for r in self.rows if r.tasks is None or task.name in r.tasks)


# --- cells ---------------------------------------------------------------------------

ID_LENGTH = 16
SHAPES_NOTHING = (
    *("name", "tasks", "seeds", "printed", "note", "selection", "tuning", "heavy"),
    "group",
)
"""Settings that change how a table reads or a run is laid out, not what is measured."""
ADDED_LATER = {"cut": "own", "device": "any"}
"""Settings that earlier records do not know, and what these were run with."""
OF_LABELS = ("n_labeled", "share_of", "mechanism")
"""Settings of a task that change labels alone, where every row keeps its place."""


@plain_dataclass(frozen=True)
class Cell:
    """One run."""

    task: Task
    row: Row
    seed: int
    shared_encoder: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the encoder it shares; empty where it has its own."""

    @cached_property
    def id(self) -> str:
        """Say which run this is: all that shapes its result, and no titles."""
        task, row = _facts(self.task), _facts(self.row)
        facts: dict[str, Any] = {"task": task, "row": row, "seed": self.seed}
        if self.shared_encoder:
            facts["shared_encoder"] = self.shared_encoder
        return _hash(facts)

    @cached_property
    def encoder_id(self) -> str:
        """Say which encoder it shares, whatever the task is called.

        One that looks at no label is the same however many there are, and whatever is
        positive where all rows are kept.
        """
        task = _facts(self.task)
        unseen = self.shared_encoder.get("positive_weight") == 0
        if unseen and self.task.scenario == "one-sample":
            whole = self.task.keep_positive == 1
            of_labels = (*OF_LABELS, "positive") if whole else OF_LABELS
            task = {k: v for k, v in task.items() if k not in of_labels}
        facts = {"task": task, "settings": self.shared_encoder}
        dataset = self.task.dataset.replace(":", "-")
        return f"{dataset}-{_hash(facts)}-{self.seed}"

    @property
    def title(self) -> str:
        """Name the cell for people."""
        return f"{self.row.name} · {self.task.name} · seed {self.seed}"


def cells_of(spec: Spec) -> list[Cell]:
    """Return all cells, seed by seed: a run that is cut off leaves whole rows."""
    return [
        Cell(task, row, seed, spec.shared_encoder if row.encoder == "shared" else {})
        for seed in spec.seeds
        for task in spec.tasks
        for row in spec.rows_of(task)
        if row.seeds is None or seed in row.seeds
    ]


def spec_hash(spec: Spec) -> str:
    """Return a fingerprint of everything a spec says, wherever its file is."""
    return _hash(asdict(replace(spec, path="")))


def _facts(thing: Task | Row) -> dict[str, Any]:
    return {
        name: value
        for name, value in asdict(cast(Any, thing)).items()
        if name not in SHAPES_NOTHING and ADDED_LATER.get(name, ...) != value
    }


def _hash(facts: Any) -> str:
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


# --- files ---------------------------------------------------------------------------

FROM_THE_FILE = ("name", "path")
"""What a spec does not say of itself."""
TABLES = {"tasks": Task, "rows": Row}
UNKNOWN = "unexpected_keyword_argument"


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
    except OSError as error:
        raise InvalidParameterError(
            f"The spec {path} cannot be read: {error.strerror}. Name a TOML file; "
            "those that come with denspu are in benchmarks/specs."
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
                f"{where} gives itself a {key}. Its file has one: leave it out."
            )
    given = {**table, "name": name}
    try:
        spec = TypeAdapter(Spec).validate_python(given)
    except ValidationError as error:
        raise InvalidParameterError(_in_words(error, given, where)) from None
    spec = replace(spec, tasks=tuple(map(_in_order, spec.tasks)))
    for fault in _faults(spec):
        raise InvalidParameterError(f"{where}: {fault}")
    return spec


def _in_order(task: Task) -> Task:
    """Return a task with its classes in order, and not named where they are usual."""
    if task.positive is None:
        return task
    positive = tuple(sorted(set(task.positive)))
    own = ":" in task.dataset
    usual = not own and positive == tuple(sorted(find_set(task.dataset).positive))
    return replace(task, positive=None if usual else positive)


def _in_words(error: ValidationError, given: Mapping[str, Any], where: str) -> str:
    """Say what is wrong; a misspelt key goes first, since another is then lacking."""
    fault = min(error.errors(), key=lambda one: one["type"] != UNKNOWN)
    kind: Any = Spec
    table: Any = given
    place = list(fault["loc"])
    if len(place) > 1 and isinstance(place[1], int) and place[0] in TABLES:
        tables, number, *place = place
        where = f"{str(tables)[:-1]} {int(number) + 1} of {where}"
        kind, table = TABLES[str(tables)], given[str(tables)][number]
    if not place:
        return f"{where} must be a table, not {table!r}."
    key, value = str(place[0]), fault["input"]
    if fault["type"] == UNKNOWN:
        known = [f.name for f in fields(kind)]
        known = [k for k in known if kind is not Spec or k not in FROM_THE_FILE]
        return (
            f"{where} has no setting {key!r}.{did_you_mean(key, known)} "
            f"It takes: {', '.join(known)}."
        )
    if kind is Spec and key in TABLES:
        return f"{where} has no list of {key}. Write [[{key}]], once or more often."
    if fault["type"] == "missing":
        return f"{where} lacks {key!r}."
    hint = ""
    if fault["type"] == "literal_error":
        allowed = fault["ctx"]["expected"]
        hint = did_you_mean(str(value), allowed.replace("'", " ").split())
    elif key == "printed":
        key, allowed = ".".join(map(str, place)), "a number in percent, above 1"
    else:
        value, allowed = table[key], kind.__pydantic_fields__[key].description
    allowed = allowed or fault["msg"].removeprefix("Input should be ")
    return f"{key}={value!r} of {where} must be {allowed}.{hint}"


# --- what keys must mean to each other ----------------------------------------------

RESERVED_OF_PARTS = ("random_state", "device", "verbose")
RESERVED = (*RESERVED_OF_PARTS, "prior", "scenario")
"""Parameters that no row may set: they follow from spec, task, row and command."""


def _faults(spec: Spec) -> Iterator[str]:
    """Yield what is wrong with a spec whose keys and types are right."""
    rows, tasks = [r.name for r in spec.rows], [t.name for t in spec.tasks]
    yield from _twice("task", tasks)
    yield from _twice("row", rows)
    yield from _twice("seed", spec.seeds)
    yield from _twice("metric", spec.metrics)
    if spec.metrics[0] not in METRICS:
        lead = f"metrics begins with {spec.metrics[0]!r}, which dens_pu alone has."
        yield f"{lead} Let one of these lead: {', '.join(METRICS)}."
    yield from _unknown("reference", spec.reference, rows)
    yield from _reserved(spec.shared_encoder, "shared_encoder")
    try:
        build = registry().get("contrastive", "encoder").build
        check_parameters(build(**spec.shared_encoder))
    except (TypeError, ValueError) as error:
        yield f"shared_encoder: {error}"
    for task in spec.tasks:
        yield from _faults_of_task(task)
        if not spec.rows_of(task):
            yield f"no row runs on task {task.name!r}. Name it in one, or take it out."
    for row in spec.rows:
        for name in (*(row.tasks or ()), *row.printed):
            yield from _unknown(f"task of row {row.name!r}", name, tasks)
        yield from _twice(f"in row {row.name!r} the seed", row.seeds or ())
        if row.seeds and not set(row.seeds) <= set(spec.seeds):
            known = ", ".join(map(str, spec.seeds))
            yield f"seeds of row {row.name!r} must be some of the table's: {known}."
        ran = [task for task in spec.tasks if row in spec.rows_of(task)]
        for fault in _faults_of_row(row, ran):
            yield f"row {row.name!r} {fault}"
    seen: dict[str, str] = {}
    for cell in cells_of(spec):
        other = seen.setdefault(cell.id, cell.title)
        if other != cell.title:
            yield f"one run is asked for twice: {other}, and {cell.title}."


def _faults_of_task(task: Task) -> Iterator[str]:
    who = f"of task {task.name!r}"
    if task.name == OVER_TASKS:
        yield f"a task is called {task.name!r}. Give it a name of its own."
    if ":" in task.dataset:
        loader_of(task.dataset)
    else:
        classes = len(find_set(task.dataset).class_names)
        if not set(task.positive or ()) < set(range(classes)):
            yield (
                f"positive={list(task.positive or ())} {who} must name classes, 0 to "
                f"{classes - 1}, and leave some for the negatives."
            )
    if isinstance(task.n_labeled, int) and task.share_of != "positives":
        count = task.n_labeled
        yield f"share_of {who} needs a share as n_labeled, and {count} is a count."


def _faults_of_row(row: Row, tasks: Sequence[Task]) -> Iterator[str]:
    """Yield what is wrong with a row, as what it has or does."""
    yield from _reserved(row.parameters, "it")
    entry = entry_of(row.method)
    supervised = row.method == SUPERVISED
    if supervised != row.sees_labels:
        yield (
            f"has oracle={row.oracle!r}. True labels are for method='supervised' "
            "alone, and it needs them: oracle='negatives' or 'all'."
        )
    if supervised:
        for key, usual in (("prior", "none"), ("selection", "last"), ("cut", "own")):
            if getattr(row, key) != usual:
                yield f"has {key}, which is of no use to method='supervised'."
    else:
        yield from _faults_of_use(row, entry, tasks)
    try:
        method = entry.build(**row.parameters)
        _check_with_parts(method)
    except (TypeError, ValueError) as error:
        yield f"cannot be built. {error}"
        return
    if row.prior != "true" or not hasattr(method, "_learns_from_prior"):
        return
    for scenario in sorted({task.scenario for task in tasks}):
        if hasattr(method, "scenario"):
            method.set_params(scenario=scenario)
        if not method._learns_from_prior():  # it would go on as if it had none
            yield (
                "has prior='true', and with these parameters its method makes no use "
                f"of it on {scenario} data. Leave it out, or write cut='true prior'."
            )


def _faults_of_use(row: Row, entry: Entry, tasks: Sequence[Task]) -> Iterator[str]:
    """Yield what is wrong with encoder, prior and scenario of a method."""
    if row.encoder == "shared" and "encoder" in row.parameters:
        yield "has encoder='shared' and one of its own in parameters. Keep one of them."
    if row.encoder == "shared" and row.keeps_to_cpu:
        yield "has encoder='shared' and device='cpu'. Leave the device out."
    needs, allowed = "takes no class prior", ["none"]
    if entry.needs_prior:
        needs, allowed = "needs a class prior", ["true", "estimate"]
    elif "prior" in entry.takes():
        needs = "estimates a class prior unless it is told"
        allowed = ["none", "true"]
    if row.prior not in allowed:
        words = " or ".join(map(repr, allowed))
        yield f"has prior={row.prior!r}, and {row.method!r} {needs}: use {words}."
    for task in tasks:
        if entry.scenario not in (None, "any", task.scenario):
            yield (
                f"is for {entry.scenario} data, and task {task.name!r} is "
                f"{task.scenario}. Name its tasks in the row."
            )


def _check_with_parts(method: Any) -> None:
    """Compare the parameters of a method and of its parts with their rules."""
    rules: Mapping[str, Any] = getattr(method, "_rules", {})
    if rules:
        check_parameters(method)
    for name, allowed in rules.items():
        value = getattr(method, name)
        words = [rule for rule in allowed if isinstance(rule, OneOf)]
        if value == "auto" or any(rule.allows(value) for rule in words):
            continue
        for rule in allowed:
            if isinstance(rule, Part):
                part = resolve_part(value, cast(Kind, rule.kind), argument=name)
                if hasattr(part, "_rules"):
                    check_parameters(part)


def _reserved(parameters: Mapping[str, Any], who: str) -> Iterator[str]:
    for name in parameters:
        _, of_a_part, last = name.rpartition("__")
        if last in (RESERVED_OF_PARTS if of_a_part else RESERVED):
            yield (
                f"{who} sets {name!r}, which spec, task, the row's 'prior' or the "
                "command decide. Leave it out."
            )


def _twice(what: str, names: Sequence[object]) -> Iterator[str]:
    words = list(map(str, names))
    if twice := sorted({word for word in words if words.count(word) > 1}):
        yield f"there is {what} {', '.join(twice)} twice."


def _unknown(what: str, word: str | None, known: Sequence[str]) -> Iterator[str]:
    if word is not None and word not in known:
        hint = did_you_mean(word, known)
        yield f"{what} {word!r} is not known.{hint} Known: {', '.join(known)}."


def entry_of(method: str) -> Entry:
    """Return what is known of a method: of the registry, or by import path.

    Raises
    ------
    InvalidParameterError
        If nothing is called so, or a class of one's own cannot be imported or used.
    """
    target = "denspu.benchmark.work:Supervised" if method == SUPERVISED else method
    if ":" not in target:
        return registry().get(target)
    found = imported(target)
    verbs = [getattr(found, verb, None) for verb in ("fit", "decision_function")]
    if not isinstance(found, type) or not all(map(callable, verbs)):
        raise InvalidParameterError(
            f"{method!r} is no class with fit(X, y) and decision_function(X)."
        )
    facts = asdict(getattr(found, "about", About()))
    facts |= {"key": method, "kind": "method", "target": target}
    return Entry(**facts, summary="", defaults={})


def loader_of(dataset: str) -> Callable[[], Any]:
    """Return what loads a set of one's own, ``module:function`` or with an argument."""
    module, function, *argument = dataset.split(":", 2)
    return partial(imported(f"{module}:{function}"), *argument)


def imported(place: str) -> Any:
    """Return what ``package.module:name`` names."""
    module, _, name = place.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameterError(
            f"{place!r} cannot be imported: {error}. Write 'package.module:name', and "
            "install the package or name its folder in PYTHONPATH."
        ) from None
