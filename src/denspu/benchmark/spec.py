"""What a benchmark compares: a TOML file, read with nothing left to guess.

A spec names tasks (a data set, its positive classes, how many labels), rows (a method
with its settings) and seeds. Every task × row × seed is one cell. Unknown keys are
refused with the nearest known one: a misspelt setting must not run as a default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, cast

from denspu._parameters import check_parameters
from denspu._registry import registry
from denspu.data._sets import find_set
from denspu.exceptions import InvalidParameterError, did_you_mean

Prior = Literal["none", "true", "estimate"]
Encoder = Literal["own", "shared"]
Oracle = Literal["no", "negatives", "all"]

WORDS: dict[str, tuple[str, ...]] = {
    "scenario": ("one-sample", "two-sample"),
    "mechanism": ("scar", "sar"),
    "share_of": ("positives", "training set"),
    "prior": ("none", "true", "estimate"),
    "encoder": ("own", "shared"),
    "oracle": ("no", "negatives", "all"),
    "selection": ("last", "label-free"),
    "layout": ("metrics", "tasks"),
}
METRICS = (
    "accuracy",
    "balanced_accuracy",
    "precision",
    "recall",
    "f1",
    "roc_auc",
    "average_precision",
)
OF_THE_WALK = ("boundary_auc", "purity", "unlabeled_right")
"""What true labels say of a Dens-PU walk on its own rows; a spec may ask for these."""
RESERVED = ("random_state", "device", "verbose", "prior", "scenario")
"""Parameters that no row may set: they follow from spec, task, row and command."""
SUPERVISED = "supervised"
"""In place of a method: ordinary training on true labels; rows with an oracle only."""


@dataclass(frozen=True)
class Task:
    """A data set made into PU data."""

    name: str
    """As columns and headings call it."""
    dataset: str
    n_labeled: int | float
    """How many positives are labelled, or a share of them."""
    share_of: str = "positives"
    """What a share is taken of: the positives, or the whole training set."""
    positive: tuple[int, ...] | None = None
    """Classes that are positive; the set's own if not given."""
    keep_positive: float = 1.0
    """Share of the positives that are kept at all, in training and test part."""
    scenario: str = "one-sample"
    mechanism: str = "scar"


@dataclass(frozen=True)
class Row:
    """A method with its settings."""

    name: str
    """As the table calls it."""
    method: str
    """Key in the registry, or ``supervised``."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    prior: Prior = "none"
    """What the method is told: nothing, the true class prior, or to estimate it."""
    encoder: Encoder = "own"
    """``shared``: the frozen contrastive encoder that is trained once for each seed and
    data, as our default trains its own."""
    oracle: Oracle = "no"
    """True labels that a supervised row may see: P and as many true negatives, or
    all."""
    tasks: tuple[str, ...] | None = None
    """Names of the tasks it runs on; all if not given."""
    seeds: tuple[int, ...] | None = None
    """Those of the table's seeds that it runs with; all if not given."""
    selection: str = "last"
    """Whose weights are judged: the last epoch's, or those that the method itself
    chooses without a label. The best epoch on the test set is never an option."""
    tuning: str = ""
    """What was tried out on these data before the runs; nothing if empty."""
    heavy: bool = False
    """Fills a GPU by itself: of several cells at once one such at most."""
    group: str = ""
    """Heading in the table above it and the rows of the same group after it."""
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What the paper prints, in percent: task, then metric."""
    note: str = ""
    """A sentence beneath the table."""


@dataclass(frozen=True)
class Spec:
    """A table of the benchmark."""

    name: str
    title: str
    tasks: tuple[Task, ...]
    rows: tuple[Row, ...]
    seeds: tuple[int, ...]
    metrics: tuple[str, ...] = ("accuracy", "f1", "roc_auc")
    layout: str = "metrics"
    """Columns of the table: the metrics of each task, or one metric on all tasks."""
    reference: str | None = None
    """Name of the row that others are compared with."""
    shared_encoder: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the contrastive encoder that rows with ``encoder="shared"`` use."""
    note: str = ""

    def rows_of(self, task: Task) -> tuple[Row, ...]:
        """Return the rows that run on a task."""
        return tuple(r for r in self.rows if r.tasks is None or task.name in r.tasks)


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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidParameterError(f"{path} is not a TOML file: {error}.") from None
    return parse_spec(table, path.stem)


def parse_spec(table: Mapping[str, Any], name: str) -> Spec:
    """Return the spec a table of settings describes."""
    where = f"spec {name!r}"
    if "name" in table:
        raise InvalidParameterError(
            f"{where} gives itself a name. Its file's name is its name: leave it out."
        )
    given = {"name": name, **table}
    given["tasks"] = tuple(
        _part(Task, t, f"task {i + 1} of {where}")
        for i, t in enumerate(_tables(given, "tasks", where))
    )
    given["rows"] = tuple(
        _part(Row, r, f"row {i + 1} of {where}")
        for i, r in enumerate(_tables(given, "rows", where))
    )
    spec = cast(Spec, _part(Spec, given, where))
    _check(spec, where)
    return spec


def _tables(given: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found = given.get(key)
    if not isinstance(found, list) or not found:
        raise InvalidParameterError(
            f"{where} has no {key}. Write at least one [[{key}]] table."
        )
    return found


def _part(kind: type, given: Mapping[str, Any], where: str) -> Any:
    """Build one dataclass from a table, refusing what it does not know."""
    if not isinstance(given, Mapping):
        raise InvalidParameterError(f"{where} must be a table, not {given!r}.")
    known = {f.name: f for f in fields(kind)}
    for key in given:
        if key not in known:
            raise InvalidParameterError(
                f"{where} has no setting {key!r}.{did_you_mean(key, known)} "
                f"It takes: {', '.join(known)}."
            )
    for key, f in known.items():
        required = f.default is MISSING and f.default_factory is MISSING
        if required and key not in given:
            raise InvalidParameterError(f"{where} lacks {key!r}.")
    checked = {k: _value(k, str(known[k].type), v, where) for k, v in given.items()}
    return kind(**checked)


def _value(key: str, kind: str, value: Any, where: str) -> Any:
    """Check one value by the type its field declares; lists become tuples."""
    if key in WORDS:
        if value not in WORDS[key]:
            allowed = " or ".join(repr(word) for word in WORDS[key])
            raise InvalidParameterError(
                f"{key}={value!r} of {where} must be {allowed}."
                f"{did_you_mean(str(value), WORDS[key])}"
            )
        return value
    if kind.startswith("tuple"):
        if not isinstance(value, list | tuple):
            raise InvalidParameterError(
                f"{key}={value!r} of {where} must be a list, such as [0, 1]."
            )
        of = str if "str" in kind else int if "int" in kind else object
        if not all(isinstance(v, of) and not isinstance(v, bool) for v in value):
            raise InvalidParameterError(
                f"{key}={value!r} of {where} must hold {of.__name__} values only."
            )
        return tuple(value)
    if kind.startswith("Mapping"):
        if not isinstance(value, Mapping):
            raise InvalidParameterError(f"{key} of {where} must be a table.")
        return dict(value)
    if kind == "bool":
        if not isinstance(value, bool):
            raise InvalidParameterError(
                f"{key}={value!r} of {where} must be true or false."
            )
        return value
    wanted: tuple[type, ...] = (str,)
    if "float" in kind:
        wanted = (int, float)
    elif kind.startswith("int"):
        wanted = (int,)
    if not isinstance(value, wanted) or isinstance(value, bool):
        names = " or ".join(t.__name__ for t in wanted)
        raise InvalidParameterError(f"{key}={value!r} of {where} must be {names}.")
    return value


def _check(spec: Spec, where: str) -> None:
    """Check what one table alone cannot know."""
    _unique("task", [t.name for t in spec.tasks], where)
    _unique("row", [r.name for r in spec.rows], where)
    _unique("seed", [str(s) for s in spec.seeds], where)
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
        for name in (*(row.tasks or ()), *row.printed):
            _known(f"task of row {row.name!r}", name, tasks, where)
        _check_seeds(row, spec.seeds, where)
        _check_printed(row, where)
        _check_row(row, where)
    for task in spec.tasks:
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
    from denspu.benchmark.cells import cells_of

    seen: dict[str, str] = {}
    for cell in cells_of(spec):
        other = seen.setdefault(cell.id, cell.title)
        if other != cell.title:
            raise InvalidParameterError(
                f"{where} asks for one run twice: {other}, and {cell.title}. Take one "
                "out."
            )


def _not_reserved(parameters: Mapping[str, Any], where: str) -> None:
    for name in RESERVED:
        if name in parameters:
            raise InvalidParameterError(
                f"{where} sets {name!r}, which the benchmark itself decides: seeds "
                "from the spec, scenario from the task, prior from the row's 'prior', "
                "device from the command. Leave it out."
            )


def _check_task(task: Task, where: str) -> None:
    share = isinstance(task.n_labeled, float)
    if task.n_labeled <= 0 or (share and task.n_labeled >= 1):
        raise InvalidParameterError(
            f"n_labeled={task.n_labeled!r} of task {task.name!r} in {where} must be a "
            "count above 0 or a share between 0 and 1."
        )
    classes = find_set(task.dataset).class_names
    known = range(len(classes))
    if task.positive is not None and (
        not task.positive or not set(task.positive) <= set(known)
    ):
        raise InvalidParameterError(
            f"positive={list(task.positive)} of task {task.name!r} in {where} must "
            f"name classes of {task.dataset}: 0 to {len(classes) - 1}."
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


def _check_row(row: Row, where: str) -> None:
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

        return _buildable(Supervised, row, where)
    entry = registry().get(row.method)
    if entry.needs_prior == (row.prior == "none"):
        needs = "needs a class prior" if entry.needs_prior else "takes no class prior"
        allowed = "'true' or 'estimate'" if entry.needs_prior else "'none'"
        raise InvalidParameterError(
            f"Row {row.name!r} of {where} has prior={row.prior!r}, and {row.method!r} "
            f"{needs}: use {allowed}."
        )
    if row.encoder == "shared" and "encoder" in row.parameters:
        raise InvalidParameterError(
            f"Row {row.name!r} of {where} has encoder='shared' and an encoder of its "
            "own among the parameters. Keep one of them."
        )
    _buildable(entry.build, row, where)


def _buildable(build: Callable[..., Any], row: Row, where: str) -> None:
    """Refuse parameters that a method, or a part of it, does not have."""
    try:
        check_parameters(build(**row.parameters))
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"Row {row.name!r} of {where} cannot be built. {error}"
        ) from None


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
