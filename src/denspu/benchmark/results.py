"""A spec's records as one Markdown text, with what must be known to read its tables.

The verdicts, the tables, the comparison with the reference row, then notes: tasks,
seeds, tuning, devices, code. And of several specs: what has no record yet.

Two rows with the same seed saw the same labels, so their difference is taken within
the seed. Figures are percent points, the reference's minus the other's.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

from scipy import stats

from denspu._progress import many
from denspu.benchmark.record import Record, failed
from denspu.benchmark.spec import OVER_TASKS, Row, Spec, Task
from denspu.benchmark.tables import (
    MISSING,
    Found,
    Grid,
    markdown_grid,
    plain,
    signed,
    tables_of,
    title_of,
)

LEVEL = 0.95
FEWEST_TASKS = 3
"""Tasks from which an interval over them is given. Tasks that differ in their labels
only are one: they share their rows."""
FEWEST_SEEDS = 3
"""Seeds in common from which a difference is judged. Two seldom tell anything, and when
their interval leaves out 0 it is because they happen to agree."""
FEW = 4
"""Columns that always fit on a page."""
Pictures = Callable[[Spec, Sequence[Record]], Sequence[tuple[str, str]]]
"""What shows a spec's records: captions and links."""


def spec_markdown(
    spec: Spec,
    records: Sequence[Record],
    *,
    level: int = 1,
    pictures: Pictures = lambda spec, records: (),
) -> str:
    """Return a spec as Markdown, under a heading of some level.

    Records of other cells are not used. ``pictures`` stand below the tables.
    """
    parts = ["#" * level + " " + plain(spec.title)]
    found = differences(spec, records)
    if found:
        metric = title_of(spec.metrics[0])
        parts.append(f"{plain(str(spec.reference))}, {metric}:")
        parts.append(_bullets(verdicts(spec, found)))
    tables = tables_of(spec, records)
    for table in tables:
        if len(tables) > 1 or spec.layout == "tasks":
            parts.append(f"**{plain(table.title)}**")
        parts.append(table.markdown())
    for caption, link in pictures(spec, records):
        parts.append(f"![{plain(f'{caption}: {spec.title}')}]({link})")
    if found:
        grid = differences_grid(spec, found)
        parts += [f"**{plain(grid.title)}**", grid.markdown(), how_to_read(spec, found)]
    parts.append(_bullets(notes_of(spec, records)))
    parts.append(f"```sh\n{command_of(spec)}\n```")
    return "\n\n".join(parts)


def _bullets(sentences: Sequence[str]) -> str:
    """Return sentences as a list; a spec's notes may hold Markdown of their own."""
    return "\n".join(
        f"- {' '.join(sentence.replace('<', '&lt;').split())}" for sentence in sentences
    )


def command_of(spec: Spec) -> str:
    """Return the command that makes the records of a spec."""
    path = Path(spec.path or f"{spec.name}.toml")
    if path.parts[-3:-1] == ("benchmarks", "specs"):
        path = Path(*path.parts[-3:])  # wherever the repository lies
    return f"denspu bench run {shlex.quote(str(path))}"


# --- the reference row against every other ------------------------------------------


@dataclass(frozen=True)
class Difference:
    """Reference minus another row."""

    row: str
    task: str | None
    """``None``: the mean over tasks."""
    mean: float
    half_width: float | None
    """Of the 95 % t-interval; ``None`` with fewer than two differences."""
    n: int
    """Seeds that both rows have, or tasks."""
    sees_labels: bool = False
    """The other row is trained on true labels."""
    joint_half_width: float | None = None
    """Of the interval if all that are judged in the table are to hold at once; ``None``
    for rows that see true labels, which are not among these."""

    @property
    def verdict(self) -> str:
        """``ahead`` or ``behind`` where the interval leaves out 0, else ``open``.

        ``few`` where too few seeds are in common to say.
        """
        if self.half_width is None or self.n < FEWEST_SEEDS:
            return "few"
        if abs(self.mean) <= self.half_width:
            return "open"
        return "ahead" if self.mean > 0 else "behind"

    @property
    def stands(self) -> bool:
        """Tell whether the verdict is the same if all intervals must hold at once."""
        if self.joint_half_width is None or self.verdict not in ("ahead", "behind"):
            return False
        return abs(self.mean) > self.joint_half_width

    @property
    def words(self) -> str:
        """Show the mean, its interval and what it is taken over."""
        count = many(self.n, "task" if self.task is None else "seed")
        if self.half_width is None:
            return f"{signed(self.mean)} ({count})"
        low, high = self.mean - self.half_width, self.mean + self.half_width
        return f"{signed(self.mean)} ({signed(low)} to {signed(high)}, {count})"


def differences(spec: Spec, records: Iterable[Record]) -> list[Difference]:
    """Return reference minus row, for every other row: by task, then over tasks.

    Nothing for a task on which the two have no seed in common, and none over tasks
    with fewer than three that differ in more than their labels and are judged by
    themselves.
    """
    if spec.reference is None:
        return []
    index = ["task", "seed"]
    frame = Found(spec, records).frame
    seeds = frame.pivot(index=index, columns="row", values=spec.metrics[0])
    paired: list[tuple[Row, str | None, list[float]]] = []
    for row in (row for row in spec.rows if row.name != spec.reference):
        minus = (seeds[spec.reference] - seeds[row.name]).dropna()
        kinds: dict[object, list[float]] = {}
        for task in spec.tasks:
            here = minus[minus.index.get_level_values("task") == task.name].tolist()
            if here:
                paired.append((row, task.name, here))
            if len(here) >= FEWEST_SEEDS:
                same = (task.dataset, task.positive, task.keep_positive)
                kinds.setdefault(same, []).append(mean(here))
        if len(kinds) >= FEWEST_TASKS:
            paired.append((row, None, list(map(mean, kinds.values()))))
    judged = Counter(  # over tasks is a question of its own
        task is None
        for row, task, values in paired
        if not row.sees_labels and len(values) >= FEWEST_SEEDS
    )
    return [
        Difference(
            row=row.name,
            task=task,
            mean=mean(values),
            half_width=_half_width(values),
            n=len(values),
            sees_labels=row.sees_labels,
            joint_half_width=None
            if row.sees_labels
            else _half_width(values, max(1, judged[task is None])),
        )
        for row, task, values in paired
    ]


def _half_width(values: Sequence[float], comparisons: int = 1) -> float | None:
    """Return half the width of the mean's 95 % t-interval.

    Of several ``comparisons`` each gets its share of the 5 % (Bonferroni), so that all
    intervals hold together.
    """
    n = len(values)
    if n < 2:
        return None
    quantile = float(stats.t.ppf(1 - (1 - LEVEL) / 2 / comparisons, n - 1))
    return quantile * stdev(values) / sqrt(n)


def how_to_read(spec: Spec, found: Sequence[Difference]) -> str:
    """Say what the intervals are, and why there is no p-value."""
    text = (
        "Percent points, by seed: both rows had the same labelled positives. In "
        "brackets 95 % t-intervals of the mean where there are two or more, each for "
        "one comparison: over seeds, on the same training and test data."
    )
    if any(d.task is None for d in found):
        text += (
            " Over tasks: as if they had nothing to do with one another, though tasks "
            "may share their images."
        )
    judged = sum(d.verdict != "few" and not d.sees_labels for d in found)
    if judged > 1:
        chance = judged * (1 - LEVEL)
        text += (
            f" Of {judged} such intervals about {chance:.{1 if chance < 1 else 0}f} "
            "would leave out 0 by chance if no rows differed."
        )
    n = max((d.n for d in found if d.task is not None), default=0)
    if n > 1:
        text += (
            f" No p-values: {n} wins in {n} seeds would still be {2 ** (1 - n):.2g} in "
            "a sign test."
        )
    return text


def verdicts(spec: Spec, found: Sequence[Difference]) -> list[str]:
    """Say where the reference is ahead and where it is not.

    A line a task, or a line a row where there are more tasks than rows.
    """
    compared = _compared(spec, found)
    oracles = {row.name for row in spec.rows if row.sees_labels}
    said = []
    if _many_tasks(compared):
        for row in dict.fromkeys(d.row for d in found):
            by_task = {str(d.task): d for d in found if d.row == row and d.task}
            tasks = [task for task, rows in compared.items() if task and row in rows]
            what = f"{row}, trained on true labels" if row in oracles else row
            absent = [task for task in tasks if task not in by_task]
            said.append(_verdict(f"Against {what}: ahead on", "task", by_task, absent))
        compared = {None: compared[None]} if None in compared else {}
    for place, names in compared.items():
        here = {d.row: d for d in found if d.task == place}
        named = {name: d for name, d in here.items() if not d.sees_labels}
        absent = [name for name in names if name not in here and name not in oracles]
        where = "Over tasks" if place is None else f"On {place}"
        text = _verdict(f"{where}: ahead of", "row", named, absent)
        if seeing := {name: d for name, d in here.items() if d.sees_labels}:
            text += f" Trained on true labels, and not counted: {_signed(seeing)}."
        said.append(text)
    return said


def _verdict(
    start: str, of: str, named: dict[str, Difference], absent: Sequence[str]
) -> str:
    """Say how many are won, and name the others with their differences."""
    by_verdict: dict[str, dict[str, Difference]] = {}
    for name, difference in named.items():
        by_verdict.setdefault(difference.verdict, {})[name] = difference
    ahead = by_verdict.get("ahead", {}).values()
    tasks = of == "task"
    of_, from_, with_ = ("on", "on", "on") if tasks else ("of", "from", "with")
    text = f"{start} {len(ahead)} of {many(len(named) + len(absent), of)}"
    text += " with an interval above 0"
    if any((d.joint_half_width or 0) > (d.half_width or 0) for d in ahead):
        text += f"; {of_} {sum(d.stands for d in ahead)} "
        text += "even if all intervals of the table must hold at once"
    text += "."
    if unsure := by_verdict.get("open"):
        text += f" Not told apart {from_}: {_signed(unsure)}."
    if lost := by_verdict.get("behind"):
        names = (f"{name} (by {-d.mean:.2f})" for name, d in lost.items())
        text += f" Behind{' on' if tasks else ''}: {'; '.join(names)}."
    if few := by_verdict.get("few"):
        text += f" Fewer than {FEWEST_SEEDS} seeds in common {with_}: {_signed(few)}."
    if absent:
        text += f" No seed in common {with_}: {'; '.join(absent)}."
    return text


def _signed(named: dict[str, Difference]) -> str:
    return "; ".join(f"{name} ({signed(d.mean)})" for name, d in named.items())


def _compared(
    spec: Spec, found: Sequence[Difference]
) -> dict[str | None, tuple[str, ...]]:
    """Return the rows to compare with on each task, and over tasks."""
    out: dict[str | None, tuple[str, ...]] = {}
    for task in spec.tasks:
        names = [row.name for row in spec.rows_of(task)]
        if spec.reference in names:
            out[task.name] = tuple(n for n in names if n != spec.reference)
    if over_tasks := tuple(d.row for d in found if d.task is None):
        out[None] = over_tasks
    return out


def _many_tasks(compared: dict[str | None, tuple[str, ...]]) -> bool:
    """Tell whether tasks should stand below each other instead of rows."""
    rows = {row for names in compared.values() for row in names}
    return len(compared) > max(FEW, len(rows))


def differences_grid(spec: Spec, found: Sequence[Difference]) -> Grid:
    """Return the differences as a table.

    A line is a row, or a task where there are more of these.
    """
    compared = _compared(spec, found)
    words = {(d.row, d.task): d.words for d in found}

    def cell(row: str, task: str | None) -> str:
        return words.get((row, task), MISSING if row in compared[task] else "")

    title = f"{spec.reference} minus each row: {title_of(spec.metrics[0])}"
    tasks = {OVER_TASKS if task is None else task: task for task in compared}
    named = {name for names in compared.values() for name in names}
    rows = {row.name: row.group for row in spec.rows if row.name in named}
    if _many_tasks(compared):
        by_task = [[name, *(cell(r, t) for r in rows)] for name, t in tasks.items()]
        return Grid(title, ["", *rows], by_task)
    by_row = [[r, *(cell(r, t) for t in tasks.values())] for r in rows]
    return Grid(title, ["", *tasks], by_row, list(rows.values()))


# --- what must be known to read a table ----------------------------------------------


def notes_of(spec: Spec, records: Sequence[Record]) -> list[str]:
    """Return what must be known to read a spec's tables, as sentences."""
    found = Found(spec, records)
    groups = alike_but_labels(spec.tasks)
    names = ["; ".join(task.name for task in group) for group in groups]
    names = ["Task"] if len(spec.tasks) == 1 else names
    words = map(_task_words, groups)
    said = [f"{name}: {facts}." for name, facts in zip(names, words, strict=True)]
    shown = spec.metrics if spec.layout == "metrics" else spec.metrics[:1]
    claims = [claim for row in spec.rows for claim in row.printed.values()]
    if any(metric in claim for claim in claims for metric in shown):
        said.append("In brackets: what the paper prints, and ours minus it.")
    seeds = [", ".join(map(str, spec.seeds))]
    seeds += [f"{r.name}: {', '.join(map(str, r.seeds))}" for r in spec.rows if r.seeds]
    judged = (
        "Judged are the last epoch's weights, never those of the best epoch on the "
        "test set"
    )
    if own := [row.name for row in spec.rows if row.selection == "label-free"]:
        judged += (
            f"; {' · '.join(own)}: those that the method's own label-free rule chose"
        )
    said.append(f"Seeds: {'; '.join(seeds)}. {judged}.")
    said += [*_tuning(spec), *_trivial(found), *_sizes(found), *_devices(found)]
    said += [f"{row.name}: {row.note}" for row in spec.rows if row.note]
    said += [spec.note] if spec.note else []
    if found.strangers:
        said.append(
            f"{found.strangers} recorded cells are left out: the spec no longer asks "
            "for them."
        )
    return said


def alike_but_labels(tasks: Sequence[Task]) -> list[list[Task]]:
    """Return tasks in groups that differ in name and number of labels alone."""
    groups: dict[Task, list[Task]] = {}
    for task in tasks:
        groups.setdefault(replace(task, name="any", n_labeled=1), []).append(task)
    return list(groups.values())


def _task_words(tasks: Sequence[Task]) -> str:
    """Say in a line what tasks are made of that differ in their labels alone."""
    task = tasks[0]
    facts = [f"data set {task.dataset}"]
    if task.positive is not None:
        facts.append(f"positive classes {', '.join(map(str, task.positive))}")
    if task.keep_positive < 1:
        facts.append(f"{100 * task.keep_positive:g} % of the positives kept")
    facts += [task.scenario, task.mechanism.upper()]
    of = "positives" if task.share_of == "positives" else "training set's size"
    counts = [t.n_labeled for t in tasks]
    words = [f"{c:,}" if isinstance(c, int) else f"{100 * c:g} %" for c in counts]
    if all("%" in word for word in words):
        words[-1] += f" of the {of}"
    else:
        words = [f"{word} of the {of}" if "%" in word else word for word in words]
    return f"{', '.join(facts)}; labelled: {', '.join(words)}"


def _tuning(spec: Spec) -> list[str]:
    """Say which settings were tried out on these data, a line for each history."""
    text = "Settings were fixed beforehand and not tried out on these data"
    by_words: dict[str, list[str]] = {}
    for row in spec.rows:
        if row.tuning:
            by_words.setdefault(row.tuning, []).append(row.name)
    if not by_words:
        return [f"{text}."]
    tried = (f"Settings of {' · '.join(n)}: {w}." for w, n in by_words.items())
    return [f"{text}, but for those of the rows that follow.", *tried]


def _trivial(found: Found) -> list[str]:
    """Say what calling every row positive would score, to hold each F1 against."""
    tasks: dict[str, list[str]] = {}
    for task in found.spec.tasks:
        records = [r for row in found.spec.rows for r in found.good(row, task)]
        share = share_of_positives([r.metrics for r in records])
        if share is not None:
            f1 = 2 * share / (1 + share)
            words = f"accuracy {100 * share:.2f}, F1 {100 * f1:.2f}"
            tasks.setdefault(words, []).append(task.name)
    said = [f"{words} on {', '.join(names)}" for words, names in tasks.items()]
    if len(tasks) == 1:
        said = list(tasks)
    return [f"Calling every test row positive: {'; '.join(said)}."] if said else []


def share_of_positives(metrics: Sequence[Mapping[str, float]]) -> float | None:
    """Return the share of positives among the rows that figures are of.

    Accuracy is the mean of both classes' recalls, each weighted by its share.
    """
    best, gap = None, 1e-3  # recalls that lie nearer do not tell the classes' sizes
    for found in metrics:
        if not found.keys() >= {"accuracy", "balanced_accuracy", "recall"}:
            continue
        recall = found["recall"]
        of_negatives = 2 * found["balanced_accuracy"] - recall
        if abs(recall - of_negatives) > gap:
            gap = abs(recall - of_negatives)
            best = (found["accuracy"] - of_negatives) / (recall - of_negatives)
    return best


def _sizes(found: Found) -> list[str]:
    """Say how many negatives rows with the paper's ending chose.

    Where the boundary leaves fewer rows outside than were asked for, all are taken, and
    how they were to be chosen makes no difference.
    """
    words: dict[str, str] = {}
    for row in found.spec.rows:
        records = [r for task in found.spec.tasks for r in found.good(row, task)]
        chosen = [r.extra.get("stages", {}).get("select", {}) for r in records]
        if counts := [facts["negatives"] for facts in chosen if "negatives" in facts]:
            ends = dict.fromkeys([min(counts), max(counts)])
            words[row.name] = " to ".join(f"{count:,}" for count in ends)
    if not words:
        return []
    [(usual, _)] = Counter(words.values()).most_common(1)
    others = [f"{name}: {count}" for name, count in words.items() if count != usual]
    return [f"Size of Ñ: {'; '.join([usual, *others])}."]


def _devices(found: Found) -> list[str]:
    """Say what seconds are of, on which devices, and which code ran."""
    good = [r for r in found.records.values() if not failed(r)]
    devices = Counter(re.sub(r"\b1 threads$", "1 thread", r.device) for r in good)
    if not devices:
        return []
    names = [
        name if len(devices) == 1 else f"{name} ({many(count, 'cell')})"
        for name, count in devices.most_common()
    ]
    text = "Seconds: median over seeds"
    text += ", of several tasks the least and the most" * (found.spec.layout == "tasks")
    text += f"; device: {', '.join(names)}"
    most = max(r.extra.get("jobs", 1) for r in good)
    text += f", up to {most} cells at once." if most > 1 else "."
    if kept := [row.name for row in found.spec.rows if row.keeps_to_cpu]:
        text += f" On a CPU in any case: {' · '.join(kept)}."
    if any("shared_encoder" in r.seconds for r in good):
        text += (
            " “+ encoder”: seconds of the encoder that rows share, trained once a seed "
            "for all cells that can."
        )
    commits = Counter(r.commit.removesuffix("-dirty")[:12] for r in good)
    code = f"Code: commit{'' if len(commits) == 1 else 's'} {', '.join(commits)}"
    if dirty := sum(r.commit.endswith("-dirty") for r in good):
        code += f"; {many(dirty, 'cell')} ran with uncommitted changes"
    return [text, f"{code}."]


# --- what has no record yet ----------------------------------------------------------

HEADER = ("spec", "row", "data set", "missing")
NOTHING_MISSING = "Nothing is missing."


def status_markdown(specs: Sequence[tuple[Spec, Sequence[Record]]]) -> str:
    """Return how many cells of each row and data set are missing or have failed.

    What several specs ask for is missing once, in the first of them.
    """
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    asked: set[str] = set()
    for spec, records in specs:
        found = Found(spec, records)
        rows = [row.name for row in spec.rows]
        for cell in sorted(found.cells, key=lambda cell: rows.index(cell.row.name)):
            place = (spec.name, cell.row.name, cell.task.dataset)
            count = counts.setdefault(place, Counter())
            record = found.records.get(cell.id)
            count["cells"] += 1
            count["missing"] += record is None and cell.id not in asked
            count["failed"] += record is not None and failed(record)
            asked.add(cell.id)
    lines = []
    for (name, row, dataset), count in counts.items():
        words = f"{count['missing']} of {count['cells']}"
        words += f", {count['failed']} failed" if count["failed"] else ""
        if count["missing"] or count["failed"]:
            lines.append([plain(name), plain(row), dataset, words])
    if not lines:
        return NOTHING_MISSING
    said = f"{many(sum(n['missing'] for n in counts.values()), 'cell')} missing."
    if bad := sum(n["failed"] for n in counts.values()):
        said += f" {bad} failed; `denspu bench run --retry` runs them again."
    return f"{markdown_grid(HEADER, lines)}\n\n{said}"
