"""Records → tables: mean ± standard deviation over seeds beside the printed value.

A table is data; :mod:`denspu.benchmark.markup` shows it. Cells that failed or were not
run are said, never left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev

from denspu.benchmark.cells import Cell, cells_of, failed, recorded
from denspu.benchmark.record import Record
from denspu.benchmark.spec import OF_THE_WALK, Row, Spec, Task

MISSING = "–"
TITLES = {
    "f1": "F1",
    "roc_auc": "ROC AUC",
    "boundary_auc": "boundary AUC",
    "purity": "purity of Ñ",
    "unlabeled_right": "share of U right",
}
UNASKED = ("boundary_auc", "purity")
"""Figures of a walk that are columns wherever a record has them."""
LONGEST_ERROR = 60
MOST_TASKS = 8
"""More columns than these do not fit on a page."""


@dataclass(frozen=True)
class Value:
    """One figure of a row: its seeds in percent, and what the paper prints."""

    by_seed: tuple[float, ...]
    printed: float | None = None

    @property
    def n(self) -> int:
        """Number of seeds."""
        return len(self.by_seed)

    @property
    def mean(self) -> float | None:
        """Mean over seeds; ``None`` where nothing is recorded."""
        return mean(self.by_seed) if self.by_seed else None

    @property
    def std(self) -> float | None:
        """Standard deviation over seeds; ``None`` where there are fewer than two."""
        return stdev(self.by_seed) if self.n > 1 else None

    @property
    def reach(self) -> tuple[float, float]:
        """How far seeds lie below and above the mean; such bars stay within 100 %."""
        if self.mean is None:
            return 0.0, 0.0
        return self.mean - min(self.by_seed), max(self.by_seed) - self.mean

    @property
    def difference(self) -> float | None:
        """Ours minus the printed value."""
        if self.mean is None or self.printed is None:
            return None
        return self.mean - self.printed

    @property
    def words(self) -> str:
        """Show mean and spread."""
        if self.mean is None:
            return MISSING
        spread = "" if self.std is None else f" ± {self.std:.2f}"
        return f"{self.mean:.2f}{spread}"

    @property
    def beside(self) -> str:
        """Show the printed value and the difference; empty where none is printed."""
        if self.printed is None:
            return ""
        if self.difference is None:
            return f"{self.printed:.2f}"
        return f"{self.printed:.2f}, {signed(self.difference)}"


@dataclass(frozen=True)
class Line:
    """One row of a table."""

    name: str
    values: tuple[Value | None, ...]
    """``None`` where the spec does not ask for a run."""
    seeds: str
    """How many seeds, and what went wrong with the others."""
    seconds: str
    is_reference: bool = False
    group: str = ""


@dataclass(frozen=True)
class Table:
    """Rows × metrics of one task, or rows × tasks of one metric."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def has_printed(self) -> bool:
        """Tell whether the paper prints any of these figures."""
        return any(v and v.printed is not None for r in self.lines for v in r.values)


# --- from records to tables ---------------------------------------------------------


class Found:
    """The cells of a spec and their records."""

    def __init__(self, spec: Spec, records: Sequence[Record]) -> None:
        self.spec = spec
        self.cells: dict[tuple[str, str], list[Cell]] = {}
        for cell in cells_of(spec):
            self.cells.setdefault((cell.row.name, cell.task.name), []).append(cell)
        by_cell = recorded(records)
        ids = {cell.id for group in self.cells.values() for cell in group}
        self.records = {i: r for i, r in by_cell.items() if i in ids}
        self.strangers = len(by_cell) - len(self.records)

    def all_of(self, row: Row, task: Task) -> list[Record]:
        """Return the records of a row on a task, failures too."""
        cells = self.cells.get((row.name, task.name), ())
        return [self.records[c.id] for c in cells if c.id in self.records]

    def good(self, row: Row, task: Task) -> list[Record]:
        """Return the records of a row on a task that hold figures."""
        return [r for r in self.all_of(row, task) if not failed(r)]

    def expected(self, row: Row, task: Task) -> int:
        """Return how many cells a row has on a task."""
        return len(self.cells.get((row.name, task.name), ()))

    def by_seed(self, row: Row, task: Task, key: str) -> dict[int, float]:
        """Return a figure in percent for each seed that has it."""
        found = ((r.seed, figure_of(r, key)) for r in self.good(row, task))
        return {seed: 100 * value for seed, value in found if value is not None}


def figure_of(record: Record, key: str) -> float | None:
    """Return a metric, or a figure of the walk's oracle, in 0-1."""
    if key in OF_THE_WALK:
        return record.extra.get("oracle", {}).get(key)
    return record.metrics.get(key)


def tables_of(spec: Spec, records: Sequence[Record]) -> list[Table]:
    """Return the tables of a spec.

    With ``layout="metrics"`` one for each task. With ``layout="tasks"`` one of the
    first metric, and one for each figure of the walk's oracle that a row has; many
    tasks get one for each data set.
    """
    found = Found(spec, records)
    if spec.layout == "metrics":
        return [_by_metric(found, task) for task in spec.tasks]
    keys = [spec.metrics[0], *_walk_keys(found, spec.tasks)]
    tables = [_by_task(found, key, part) for key in keys for part in _parts(spec.tasks)]
    return [table for table in tables if table.lines]


def _parts(tasks: Sequence[Task]) -> list[list[Task]]:
    """Return the tasks of each table: all, or those of a data set if there are many."""
    if len(tasks) <= MOST_TASKS:
        return [list(tasks)]
    names = dict.fromkeys(task.dataset for task in tasks)
    return [[task for task in tasks if task.dataset == name] for name in names]


def _by_metric(found: Found, task: Task) -> Table:
    keys = [*found.spec.metrics, *_walk_keys(found, [task])]
    lines = [
        _line(found, row, [task], [_value(found, row, task, key) for key in keys])
        for row in found.spec.rows
        if found.expected(row, task) or task.name in row.printed
    ]
    return Table(task.name, tuple(map(title_of, keys)), tuple(lines))


def _by_task(found: Found, key: str, tasks: Sequence[Task]) -> Table:
    lines = []
    for row in found.spec.rows:
        values = [_value(found, row, task, key) for task in tasks]
        if key in OF_THE_WALK and not any(v and v.by_seed for v in values):
            continue
        lines.append(_line(found, row, tasks, values))
    title = title_of(key)
    title = title[0].upper() + title[1:]
    if len(tasks) < len(found.spec.tasks):
        title += f" on {tasks[0].dataset}"
    return Table(title, tuple(task.name for task in tasks), tuple(lines))


def _walk_keys(found: Found, tasks: Sequence[Task]) -> list[str]:
    return [
        key
        for key in UNASKED
        if key not in found.spec.metrics
        and any(found.by_seed(r, t, key) for t in tasks for r in found.spec.rows)
    ]


def _value(found: Found, row: Row, task: Task, key: str) -> Value | None:
    """Return a figure of a row; ``None`` where there is nothing to wait for."""
    printed = row.printed.get(task.name, {}).get(key)
    by_seed = tuple(found.by_seed(row, task, key).values())
    awaited = found.expected(row, task) and (
        key not in OF_THE_WALK
        or any(found.by_seed(row, other, key) for other in found.spec.tasks)
    )
    if not by_seed and not awaited and printed is None:
        return None
    return Value(by_seed, printed)


def _line(
    found: Found, row: Row, tasks: Sequence[Task], values: list[Value | None]
) -> Line:
    asked = [t for t in tasks if found.expected(row, t)]
    return Line(
        name=row.name,
        values=tuple(values),
        seeds=_seeds(found, row, asked),
        seconds=_seconds([found.good(row, t) for t in asked]) if asked else "",
        is_reference=row.name == found.spec.reference,
        group=row.group,
    )


def _seeds(found: Found, row: Row, tasks: Sequence[Task]) -> str:
    """Say how many seeds there are, and what became of the others."""
    counts = [len(found.good(row, t)) for t in tasks]
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    text = str(low) if low == high else f"{low} to {high}"
    faults: dict[str, list[str]] = {}
    for task in tasks:
        if words := _fault(found, row, task):
            faults.setdefault(words, []).append(task.name)
    said = [words + _on(names, len(tasks)) for words, names in faults.items()]
    return f"{text} ({'; '.join(said)})" if said else text


def _on(names: Sequence[str], of: int) -> str:
    """Say on which tasks; nothing where there is one alone."""
    if of == 1:
        return ""
    if len(names) == of:
        return " on each task"
    return f" on {' and '.join(names) if len(names) < 3 else f'{len(names)} tasks'}"


def _fault(found: Found, row: Row, task: Task) -> str:
    """Say how many cells of a row failed or were not run; empty if none."""
    all_cells = found.expected(row, task)
    there = found.all_of(row, task)
    errors = [error_name(r) for r in there if failed(r)]
    said = []
    if errors:
        names = ", ".join(sorted(set(errors)))
        said.append(f"{len(errors)} of {all_cells} failed: {names}")
    if missing := all_cells - len(there):
        said.append(f"{missing} of {all_cells} missing")
    return ", ".join(said)


def error_name(record: Record) -> str:
    """Return the name of the error that a failed record holds."""
    name = str(record.extra["error"]).split(":", 1)[0].strip().rstrip(".")
    return name if len(name) <= LONGEST_ERROR else f"{name[: LONGEST_ERROR - 1]}…"


def _seconds(by_task: Sequence[Sequence[Record]]) -> str:
    """Return the median seconds, and those of the encoder that rows share.

    Of several tasks the least and the most: a median over all of them may be a time
    that none took.
    """
    recorded = [records for records in by_task if records]
    if not recorded:
        return MISSING
    text = span_words([median(r.seconds["total"] for r in rs) for rs in recorded])
    shared = [
        [r.seconds["shared_encoder"] for r in records if "shared_encoder" in r.seconds]
        for records in recorded
    ]
    if not any(shared):
        return text
    return f"{text} + encoder {span_words([median(s) for s in shared if s])}"


# --- words --------------------------------------------------------------------------


def title_of(key: str) -> str:
    """Return what people call a metric."""
    return TITLES.get(key, key.replace("_", " "))


def signed(value: float, digits: int = 2) -> str:
    """Return a number with its sign; never minus zero.

    >>> signed(-0.001), signed(1.234)
    ('+0.00', '+1.23')
    """
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def seconds_words(seconds: float) -> str:
    """Return seconds with as many digits as mean something.

    >>> seconds_words(0.041), seconds_words(7.31), seconds_words(1234.5)
    ('0.04', '7.3', '1,234')
    """
    digits = 2 if seconds < 1 else 1 if seconds < 10 else 0
    return f"{seconds:,.{digits}f}"


def span_words(seconds: Sequence[float]) -> str:
    """Return the least and the most of some seconds; one where they look the same."""
    low, high = seconds_words(min(seconds)), seconds_words(max(seconds))
    return low if low == high else f"{low} to {high}"
