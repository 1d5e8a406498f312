"""Records → tables: mean ± standard deviation over seeds beside the printed value.

A table is data first; Markdown and HTML are two ways to show it. Cells that failed or
were not run are said, never left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
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
        seconds=_seconds([r for t in asked for r in found.good(row, t)])
        if asked
        else "",
        is_reference=row.name == found.spec.reference,
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


def _seconds(records: Sequence[Record]) -> str:
    """Return the median seconds, and those of the encoder that rows share."""
    if not records:
        return MISSING
    text = seconds_words(median(r.seconds["total"] for r in records))
    shared = [
        r.seconds["shared_encoder"] for r in records if "shared_encoder" in r.seconds
    ]
    if not shared:
        return text
    return f"{text} + encoder {seconds_words(median(shared))}"


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


def alike_but_labels(tasks: Sequence[Task]) -> list[list[Task]]:
    """Return tasks in groups that differ in name and number of labels alone."""
    groups: dict[Task, list[Task]] = {}
    for task in tasks:
        groups.setdefault(replace(task, name="", n_labeled=1), []).append(task)
    return list(groups.values())


def task_words(tasks: Sequence[Task]) -> str:
    """Say in a line what tasks are made of that differ in their labels alone."""
    task = tasks[0]
    facts = [f"data set {task.dataset}"]
    if task.positive is not None:
        facts.append(f"positive classes {', '.join(map(str, task.positive))}")
    if task.keep_positive < 1:
        facts.append(f"{100 * task.keep_positive:g} % of the positives kept")
    facts += [task.scenario, task.mechanism.upper()]
    counts = [
        f"{t.n_labeled:,}"
        if isinstance(t.n_labeled, int)
        else f"{100 * t.n_labeled:g} %"
        for t in tasks
    ]
    labels = ", ".join(counts)
    if "%" in labels:
        of = "positives" if task.share_of == "positives" else "training set's size"
        labels += f" of the {of}"
    return f"{', '.join(facts)}; labelled: {labels}"


def _tasks(spec: Spec) -> list[str]:
    if len(spec.tasks) == 1:
        return [f"Task: {task_words(spec.tasks)}."]
    return [
        f"{'; '.join(t.name for t in group)}: {task_words(group)}."
        for group in alike_but_labels(spec.tasks)
    ]


def notes_of(spec: Spec, records: Sequence[Record]) -> list[str]:
    """Return what must be known to read a spec's tables, as sentences."""
    found = Found(spec, records)
    said = _tasks(spec)
    if any(table.has_printed for table in tables_of(spec, records)):
        said.append("In brackets: what the paper prints, and ours minus it.")
    said.append(f"{_which_seeds(spec)} {_selection(spec)}")
    said.append(_tuning(spec))
    said.extend(_devices(found))
    said.extend(f"{row.name}: {row.note}" for row in spec.rows if row.note)
    if spec.note:
        said.append(spec.note)
    if found.strangers:
        said.append(
            f"{found.strangers} recorded cells are left out: the spec no longer asks "
            "for them."
        )
    return said


def _which_seeds(spec: Spec) -> str:
    fewer = [row for row in spec.rows if row.seeds is not None]
    groups = [spec.seeds, *(row.seeds or () for row in fewer)]
    every, *others = (", ".join(map(str, group)) for group in groups)
    parts = [f"{row.name}: {some}" for row, some in zip(fewer, others, strict=True)]
    return f"Seeds: {'; '.join([every, *parts])}."


def _selection(spec: Spec) -> str:
    own = [row.name for row in spec.rows if row.selection == "label-free"]
    text = "Judged are the last epoch's weights, never those of the best epoch on the "
    if not own:
        return f"{text}test set."
    return (
        f"{text}test set; {' · '.join(own)}: those that the method's own label-free "
        "rule chose."
    )


def _tuning(spec: Spec) -> str:
    text = "Settings were fixed beforehand and not tried out on these data"
    by_words: dict[str, list[str]] = {}
    for row in spec.rows:
        if row.tuning:
            by_words.setdefault(row.tuning, []).append(row.name)
    tried = [f"{' · '.join(names)}: {words}" for words, names in by_words.items()]
    return f"{text}, but for {'; '.join(tried)}." if tried else f"{text}."


def _devices(found: Found) -> list[str]:
    good = [r for r in found.records.values() if not failed(r)]
    devices = Counter(re.sub(r"\b1 threads$", "1 thread", r.device) for r in good)
    if not devices:
        return []
    names = [
        name if len(devices) == 1 else f"{name} ({count} cell{'s' * (count > 1)})"
        for name, count in devices.most_common()
    ]
    text = f"Seconds: median over cells; device: {', '.join(names)}"
    most = max(r.extra.get("jobs", 1) for r in good)
    text += f", up to {most} cells at once." if most > 1 else "."
    if any("shared_encoder" in r.seconds for r in good):
        text += (
            " “+ encoder”: seconds of the encoder that rows share, trained once a seed "
            "for all cells that can."
        )
    return [text, _commits(good)]


def _commits(records: Sequence[Record]) -> str:
    """Say which versions of the code the records are of."""
    names = Counter(r.commit.removesuffix("-dirty")[:12] for r in records)
    text = f"Code: commit{'' if len(names) == 1 else 's'} {', '.join(names)}."
    dirty = sum(r.commit.endswith("-dirty") for r in records)
    return f"{text[:-1]}; {dirty} cells ran with changes on top." if dirty else text


def command_of(spec: Spec) -> str:
    """Return the command that makes the records of a spec."""
    return f"denspu bench run benchmarks/specs/{spec.name}.toml"


# --- Markdown -----------------------------------------------------------------------


def to_markdown(table: Table) -> str:
    """Return a table as Markdown that also reads well in a terminal."""
    header = ["", *table.columns, "seeds", "seconds"]
    return markdown_grid(header, [_markdown_cells(line) for line in table.lines])


def _markdown_cells(line: Line) -> list[str]:
    name = plain(line.name)
    return [
        f"**{name}**" if line.is_reference else name,
        *(_markdown_value(value) for value in line.values),
        plain(line.seeds),
        line.seconds,
    ]


def _markdown_value(value: Value | None) -> str:
    if value is None:
        return ""
    return f"{value.words} ({value.beside})" if value.beside else value.words


def markdown_grid(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with its columns in line; figures to the right."""
    header = [plain(word) for word in header]
    widths = [max(3, *map(len, column)) for column in zip(header, *lines, strict=True)]

    def row(cells: Sequence[str]) -> str:
        first, *others = (
            c.rjust(w) if i else c.ljust(w)
            for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join([first, *others])} |"

    rule = ["-" * widths[0], *(f"{'-' * (w - 1)}:" for w in widths[1:])]
    return "\n".join([row(header), row(rule), *map(row, lines)])


def plain(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    for mark, safe in (("\\", "\\\\"), ("|", "\\|"), ("*", "\\*"), ("`", "\\`")):
        text = text.replace(mark, safe)
    return " ".join(text.replace("<", "&lt;").split())


# --- HTML ---------------------------------------------------------------------------


def to_html(table: Table) -> str:
    """Return a table as an HTML element; all names are escaped."""
    header = ["", *table.columns, "seeds", "seconds"]
    return html_grid(header, [_html_cells(line) for line in table.lines], table.title)


def _html_cells(line: Line) -> tuple[str, list[str]]:
    name = escape(line.name)
    cells = [_html_value(value) for value in line.values]
    name = f"<strong>{name}</strong>" if line.is_reference else name
    return name, [*cells, f"<span>{escape(line.seeds)}</span>", escape(line.seconds)]


def _html_value(value: Value | None) -> str:
    if value is None:
        return ""
    first, _, spread = value.words.partition(" ± ")
    text = f"{first} <small>± {spread}</small>" if spread else first
    if value.beside:
        text += f"<br><small>({value.beside})</small>"
    return text


def html_grid(
    header: Sequence[str], lines: Sequence[tuple[str, list[str]]], caption: str
) -> str:
    """Return an HTML table of cells that are HTML already; header is plain text."""
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in header)
    body = "\n".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{c}</td>" for c in cells)}</tr>'
        for name, cells in lines
    )
    return (
        f"<table>\n<caption>{escape(caption)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    )
