"""Records → tables: mean ± standard deviation over seeds beside the printed value.

Cells that failed or were not run are said, never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev  # exact, so that figures round alike
from typing import Any, TypeVar

from pandas import DataFrame

from denspu.benchmark.record import Record, failed, recorded
from denspu.benchmark.spec import METRICS, OF_THE_WALK, Row, Spec, Task, cells_of

T = TypeVar("T")

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


# --- a spec and its records ----------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """One figure of a row: its seeds in percent, and what the paper prints."""

    by_seed: tuple[float, ...]
    printed: float | None = None

    @property
    def mean(self) -> float | None:
        """Mean over seeds; ``None`` where nothing is recorded."""
        return mean(self.by_seed) if self.by_seed else None

    @property
    def words(self) -> str:
        """Show mean and spread, then the printed value and the difference to it."""
        text = MISSING if self.mean is None else f"{self.mean:.2f}"
        if len(self.by_seed) > 1:
            text += f" ± {stdev(self.by_seed):.2f}"
        if self.printed is None:
            return text
        if self.mean is None:
            return f"{text} ({self.printed:.2f})"
        return f"{text} ({self.printed:.2f}, {signed(self.mean - self.printed)})"


class Found:
    """The cells of a spec and their records."""

    def __init__(self, spec: Spec, records: Iterable[Record]) -> None:
        self.spec = spec
        self.cells = cells_of(spec)
        by_cell = recorded(records)
        ids = {cell.id for cell in self.cells}
        self.records = {i: record for i, record in by_cell.items() if i in ids}
        self.strangers = len(by_cell) - len(self.records)
        lines = []
        for cell in self.cells:
            record = self.records.get(cell.id)
            line = {"row": cell.row.name, "task": cell.task.name, "seed": cell.seed}
            known: dict[str, Any] = {}
            if record is not None and not failed(record):
                known = {**record.extra.get("oracle", {}), **record.metrics}
            for key in (*METRICS, *OF_THE_WALK):
                figure = known.get(key)
                line[key] = None if figure is None else 100 * figure
            lines.append({**line, "record": record})
        self.frame = DataFrame(lines)
        """A line for each cell: its row, task and seed, its record if there is one,
        and figures in percent."""
        by = self.frame.groupby(["row", "task"], sort=False)
        self._parts: dict[Any, DataFrame] = dict(iter(by))

    def part(self, row: Row, task: Task) -> DataFrame:
        """Return the lines of a row on a task."""
        return self._parts.get((row.name, task.name), self.frame.iloc[:0])

    def all_of(self, row: Row, task: Task) -> list[Record]:
        """Return the records of a row on a task, failures too."""
        return [r for r in self.part(row, task)["record"] if r is not None]

    def good(self, row: Row, task: Task) -> list[Record]:
        """Return the records of a row on a task that hold figures."""
        return [r for r in self.all_of(row, task) if not failed(r)]

    def expected(self, row: Row, task: Task) -> int:
        """Return how many cells a row has on a task."""
        return len(self.part(row, task))

    def value(self, row: Row, task: Task, key: str) -> Value:
        """Return a figure of a row over its seeds, beside what the paper prints."""
        claims: Mapping[Any, float] = row.printed.get(task.name, {})
        return Value(tuple(self.part(row, task)[key].dropna()), claims.get(key))

    def means(self, key: str) -> DataFrame:
        """Return the mean of a figure over seeds: rows × tasks."""
        by = self.frame.dropna(subset=[key]).groupby(["row", "task"], sort=False)
        return by[key].agg(mean).unstack("task")


# --- tables of a spec ----------------------------------------------------------------


def tables_of(spec: Spec, records: Iterable[Record]) -> list[Grid]:
    """Return the tables of a spec.

    With ``layout="metrics"`` one for each task. With ``layout="tasks"`` one of the
    first metric, and one for each figure of the walk's oracle that a row has; many
    tasks get one for each data set.
    """
    found = Found(spec, records)

    def walk_keys(tasks: Sequence[Task]) -> list[str]:
        frame = found.frame[found.frame["task"].isin([t.name for t in tasks])]
        unasked = [key for key in UNASKED if key not in spec.metrics]
        return [key for key in unasked if frame[key].notna().any()]

    if spec.layout == "metrics":
        return [
            _table(found, task.name, {title_of(key): (task, key) for key in keys})
            for task in spec.tasks
            for keys in [[*spec.metrics, *walk_keys([task])]]
        ]
    parts = {"": list(spec.tasks)}
    names = dict.fromkeys(task.dataset for task in spec.tasks)
    if len(spec.tasks) > MOST_TASKS and len(names) > 1:
        parts = {f" on {n}": [t for t in spec.tasks if t.dataset == n] for n in names}
    tables = []
    for key in [spec.metrics[0], *walk_keys(spec.tasks)]:
        title = title_of(key)[0].upper() + title_of(key)[1:]
        for on, part in parts.items():
            tables.append(_table(found, title + on, {t.name: (t, key) for t in part}))
    return [table for table in tables if table.lines]


def _table(found: Found, title: str, columns: dict[str, tuple[Task, str]]) -> Grid:
    """Return the rows that have something in these columns."""
    spec = found.spec
    tasks = list(dict.fromkeys(task for task, _ in columns.values()))
    of_the_walk = all(key in OF_THE_WALK for _, key in columns.values())
    lines, groups = [], []
    for row in spec.rows:
        asked = [task for task in tasks if found.expected(row, task)]
        values = [found.value(row, *column) for column in columns.values()]
        if spec.layout == "metrics":
            shown = bool(asked) or tasks[0].name in row.printed
        else:
            shown = not of_the_walk or any(value.by_seed for value in values)
        if not shown:
            continue
        words = []
        for value, (task, key) in zip(values, columns.values(), strict=True):
            known = bool(value.by_seed) or value.printed is not None
            awaited = task in asked and (
                key not in OF_THE_WALK
                or any(found.value(row, other, key).by_seed for other in spec.tasks)
            )
            words.append(value.words if known or awaited else "")
        lines.append([row.name, *words, *_seeds_and_seconds(found, row, asked)])
        groups.append(row.group)
    header = ["", *columns, "seeds", "seconds"]
    return Grid(title, header, lines, groups, spec.reference)


def _seeds_and_seconds(
    found: Found, row: Row, tasks: Sequence[Task]
) -> tuple[str, str]:
    """Say how many seeds there are, what became of the others, and the seconds."""
    if not tasks:
        return "", ""
    faults: dict[str, list[str]] = {}
    for task in tasks:
        if words := _fault(found, row, task):
            faults.setdefault(words, []).append(task.name)
    said = []
    for words, names in faults.items():
        if len(tasks) > 1:
            on = " and ".join(names) if len(names) < 3 else f"{len(names)} tasks"
            words += " on each task" if len(names) == len(tasks) else f" on {on}"
        said.append(words)
    by_task = [found.good(row, task) for task in tasks]
    counts = dict.fromkeys([min(map(len, by_task)), max(map(len, by_task))])
    seeds = " to ".join(map(str, counts)) + (f" ({'; '.join(said)})" if said else "")

    def medians(key: str) -> list[float]:
        # Of several tasks the least and the most are shown: a median over all of them
        # may be a time that none took.
        times = [[r.seconds[key] for r in rs if key in r.seconds] for rs in by_task]
        return [median(some) for some in times if some]

    own, shared = medians("total"), medians("shared_encoder")
    if not own:
        return seeds, MISSING
    encoder = f" + encoder {span_words(shared)}" if shared else ""
    return seeds, span_words(own) + encoder


def _fault(found: Found, row: Row, task: Task) -> str:
    """Say how many cells of a row failed or were not run; empty if none."""
    all_cells, there = found.expected(row, task), found.all_of(row, task)
    said = []
    if errors := [str(r.extra["error"]) for r in there if failed(r)]:
        names = {error.split(":", 1)[0].strip().rstrip(".") for error in errors}
        short = [
            name if len(name) <= LONGEST_ERROR else f"{name[: LONGEST_ERROR - 1]}…"
            for name in sorted(names)
        ]
        said.append(f"{len(errors)} of {all_cells} failed: {', '.join(short)}")
    if missing := all_cells - len(there):
        said.append(f"{missing} of {all_cells} missing")
    return ", ".join(said)


# --- grids of words, as Markdown ------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """A table whose cells are words already; the first of a line is its name."""

    title: str
    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    groups: Sequence[str] | None = None
    """The heading that each line belongs under; empty for none."""
    bold: str | None = None
    """The name of the line that others are compared with."""

    def markdown(self) -> str:
        """Return it as Markdown."""
        lines = [list(map(plain, line)) for line in self.lines]
        for line, (name, *_) in zip(lines, self.lines, strict=True):
            line[0] = f"**{line[0]}**" if name == self.bold else line[0]
        return markdown_grid(self.header, lines, self.groups)


def under_headings(
    lines: Sequence[T], groups: Sequence[str]
) -> Iterator[tuple[str, T | None]]:
    """Yield lines, and before the first of each group its name with no line."""
    last = ""
    for line, group in zip(lines, groups, strict=True):
        if group and group != last:
            yield group, None
        last = group
        yield group, line


def markdown_grid(
    header: Sequence[str],
    lines: Sequence[Sequence[str]],
    groups: Sequence[str] | None = None,
) -> str:
    """Return a Markdown table with its columns in line; figures to the right.

    Where lines have groups, the name of each stands in a line of its own.
    """
    header = [plain(word) for word in header]
    if groups is not None:
        empty = [""] * (len(header) - 1)
        lines = [
            [f"*{plain(group)}*", *empty] if line is None else line
            for group, line in under_headings(lines, groups)
        ]
    widths = [max(3, *map(len, column)) for column in zip(header, *lines, strict=True)]

    def row(cells: Sequence[str]) -> str:
        right = [c.rjust(w) for c, w in zip(cells, widths, strict=True)]
        return f"| {' | '.join([cells[0].ljust(widths[0]), *right[1:]])} |"

    rule = ["-" * widths[0], *(f"{'-' * (w - 1)}:" for w in widths[1:])]
    return "\n".join([row(header), row(rule), *map(row, lines)])


def plain(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    for mark, safe in (("\\", "\\\\"), ("|", "\\|"), ("*", "\\*"), ("`", "\\`")):
        text = text.replace(mark, safe)
    return " ".join(text.replace("<", "&lt;").split())


def title_of(key: str) -> str:
    """Return what people call a metric."""
    return TITLES.get(key, key.replace("_", " "))


def signed(value: float) -> str:
    """Return a number with its sign; never minus zero.

    >>> signed(-0.001), signed(1.234)
    ('+0.00', '+1.23')
    """
    return f"{round(value, 2) + 0.0:+.2f}"


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
