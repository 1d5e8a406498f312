"""The reference row against every other, seed by seed.

Two rows with the same seed saw the same labels, so their difference is taken within
the seed. Figures are percent points, the reference's minus the other's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from scipy import stats

from denspu._progress import many
from denspu.benchmark.record import Record
from denspu.benchmark.spec import OVER_TASKS, Row, Spec
from denspu.benchmark.tables import MISSING, Found, Grid, signed, title_of

LEVEL = 0.95
FEWEST_TASKS = 3
"""Tasks from which an interval over them is given. Tasks that differ in their labels
only are one: they share their rows."""
FEWEST_SEEDS = 3
"""Seeds in common from which a difference is judged. Two seldom tell anything, and when
their interval leaves out 0 it is because they happen to agree."""
FEW = 4
"""Columns that always fit on a page."""


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


# --- words --------------------------------------------------------------------------


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
