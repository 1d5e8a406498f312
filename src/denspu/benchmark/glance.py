"""All tables of the benchmark on one screen: how far they are, and what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import NamedTuple

from denspu.benchmark.cells import failed
from denspu.benchmark.markup import markdown_grid, plain
from denspu.benchmark.paired import FEWEST_SEEDS, differences
from denspu.benchmark.record import Record
from denspu.benchmark.spec import METRICS, Row, Spec
from denspu.benchmark.tables import MISSING, Found, title_of

CLOSE = 2.0
"""Percent points within which a printed figure counts as met."""
HEADER = (
    *("table", "cells", "metric", "reference row", "best other row, by mean", "ahead"),
    *("not told apart", "behind", "not compared", "printed figures met"),
)
HOW_TO_READ = f"""\
Cells: how many runs of a table are recorded. The metric is the first of each table,
in percent; of several tasks the lowest and the highest mean, over those that the
reference row and another have both been run on. “Ahead”, “not told apart” and
“behind” count the other rows, on each task, by whether the 95 % interval of the
difference to the reference row leaves out 0; in brackets how many of them stay so if
all intervals of the table must hold at once; “not compared” those with fewer than
{FEWEST_SEEDS} seeds in common so far. Rows trained on true labels are left out. A
printed figure counts as met where the mean of the seeds so far lies within {CLOSE:g}
points of it: first those of the table's first metric, then those of all metrics."""


Means = Mapping[str, Mapping[str, float]]
"""Of each row, on each task that has a record."""


class Share(NamedTuple):
    """How many of some."""

    part: int
    of: int

    @property
    def words(self) -> str:
        """Show both."""
        return f"{self.part} of {self.of}"


@dataclass(frozen=True)
class Glance:
    """What is said of one spec."""

    spec: Spec
    recorded: int
    cells: int
    failed: int
    reference: str
    best_other: str
    verdicts: Counter[str]
    """Of every other row on every task: ahead, open, behind or, with too few seeds in
    common, few; and how many are ahead or behind also when all rows are judged at once,
    as ``"ahead together"`` and ``"behind together"``."""
    met: Share
    """Figures of the first metric that the paper prints and that have a record."""
    met_of_all: Share
    """The same of all metrics."""


def glance_of(spec: Spec, records: Sequence[Record]) -> Glance:
    """Return what one line says of a spec."""
    found, key = Found(spec, records), spec.metrics[0]
    unseeing = [row for row in spec.rows if row.oracle == "no"]
    reference = next((r for r in unseeing if r.name == spec.reference), None)
    others = [row for row in unseeing if row is not reference]
    means = {row.name: _means(found, row, key) for row in unseeing}
    tasks = _in_common(means, reference, others)
    best = _best(means, others, tasks)
    return Glance(
        spec=spec,
        recorded=len(found.records),
        cells=sum(map(len, found.cells.values())),
        failed=sum(map(failed, found.records.values())),
        reference=_words(means, reference, tasks),
        best_other=_words(means, best, tasks),
        verdicts=_verdicts(found, others, reference),
        met=_met(found, unseeing, [key]),
        met_of_all=_met(found, unseeing, METRICS),
    )


def _met(found: Found, rows: Sequence[Row], keys: Sequence[str]) -> Share:
    """Return how many printed figures of some metrics are met, and how many are not."""
    near = [
        abs(means[task] - claims[key]) <= CLOSE
        for row in rows
        for key in keys
        if (means := _means(found, row, key))
        for task, claims in row.printed.items()
        if key in claims and task in means
    ]
    return Share(sum(near), len(near))


def _verdicts(
    found: Found, others: Sequence[Row], reference: Row | None
) -> Counter[str]:
    if reference is None:
        return Counter()
    names = {row.name for row in others}
    judged = [
        d
        for d in differences(found.spec, list(found.records.values()))
        if d.task is not None and d.row in names
    ]
    compared = Counter(d.verdict for d in judged)
    asked = sum(
        1
        for task in found.spec.tasks
        for row in others
        if found.expected(row, task) and found.expected(reference, task)
    )
    compared["few"] += asked - len(judged)
    compared.update(f"{d.verdict} together" for d in judged if d.stands)
    return compared


def _means(found: Found, row: Row, key: str) -> dict[str, float]:
    """Return the mean of a row on each task that has a record."""
    by_task = {task.name: found.by_seed(row, task, key) for task in found.spec.tasks}
    return {name: mean(seeds.values()) for name, seeds in by_task.items() if seeds}


def _in_common(means: Means, reference: Row | None, others: Sequence[Row]) -> list[str]:
    """Return the tasks on which the reference and another have records."""
    if reference is None:
        return []
    recorded = {task for row in others for task in means[row.name]}
    return [task for task in means[reference.name] if task in recorded]


def _best(means: Means, others: Sequence[Row], tasks: Sequence[str]) -> Row | None:
    """Return the row with the best mean, of those recorded on all these tasks."""
    rivals = [r for r in others if tasks and set(tasks) <= means[r.name].keys()]
    return max(
        rivals, key=lambda r: mean(means[r.name][t] for t in tasks), default=None
    )


def _words(means: Means, row: Row | None, tasks: Sequence[str]) -> str:
    """Name a row with its figures on these tasks."""
    if row is None or not tasks:
        return MISSING
    figures = [means[row.name][task] for task in tasks]
    low, high = f"{min(figures):.2f}", f"{max(figures):.2f}"
    return f"{row.name}: {low if len(figures) == 1 else f'{low} to {high}'}"


def glance_markdown(glances: Sequence[Glance], links: Sequence[str]) -> str:
    """Return the specs as a Markdown table, each title with its link."""
    titles = _short([glance.spec.title for glance in glances])
    lines = [
        [f"[{plain(title)}]({link})", *map(plain, _cells(glance))]
        for title, glance, link in zip(titles, glances, links, strict=True)
    ]
    return markdown_grid(HEADER, lines)


def _short(titles: Sequence[str]) -> list[str]:
    """Return titles up to their first comma, whole where that is not theirs alone."""
    starts = [title.partition(", ")[0] for title in titles]
    return [
        start if starts.count(start) == 1 else title
        for start, title in zip(starts, titles, strict=True)
    ]


def _cells(glance: Glance) -> list[str]:
    cells = f"{glance.recorded} of {glance.cells}"
    cells += f", {glance.failed} failed" if glance.failed else ""
    compared = [
        _count(glance.verdicts, word) if glance.verdicts else ""
        for word in ("ahead", "open", "behind", "few")
    ]
    met = ""
    if glance.met_of_all.of:
        met = f"{glance.met.words}; of all metrics {glance.met_of_all.words}"
    metric = title_of(glance.spec.metrics[0])
    return [cells, metric, glance.reference, glance.best_other, *compared, met]


def _count(verdicts: Counter[str], word: str) -> str:
    """Show a count, and in brackets how many of it stand together."""
    count = verdicts[word]
    judged = count and word in ("ahead", "behind")
    return f"{count} ({verdicts[f'{word} together']})" if judged else str(count)
