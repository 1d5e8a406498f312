"""The reference row against every other, seed by seed.

Two rows with the same seed saw the same labels, so their difference is taken within
the seed. Figures are percent points, the reference's minus the other's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from scipy.special import stdtrit

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
        of = "task" if self.task is None else "seed"
        count = f"{self.n} {of}{'' if self.n == 1 else 's'}"
        if self.half_width is None:
            return f"{signed(self.mean)} ({count})"
        low, high = self.mean - self.half_width, self.mean + self.half_width
        return f"{signed(self.mean)} ({signed(low)} to {signed(high)}, {count})"


def t_interval(
    values: Sequence[float], comparisons: int = 1
) -> tuple[float, float | None]:
    """Return the mean and the half width of its 95 % t-interval.

    Of several ``comparisons`` each gets its share of the 5 % (Bonferroni), so that all
    intervals hold together.
    """
    n = len(values)
    if n < 2:
        return mean(values), None
    quantile = float(stdtrit(n - 1, 1 - (1 - LEVEL) / 2 / comparisons))
    return mean(values), quantile * stdev(values) / sqrt(n)


def differences(spec: Spec, records: Iterable[Record]) -> list[Difference]:
    """Return reference minus row, for every other row: by task, then over tasks.

    Nothing for a task on which the two have no seed in common, and none over tasks
    with fewer than three that differ in more than their labels.
    """
    if spec.reference is None:
        return []
    paired = _paired(Found(spec, records), spec.metrics[0])
    judged = Counter(  # over tasks is a question of its own
        task is None
        for row, task, values in paired
        if not row.sees_labels and len(values) >= FEWEST_SEEDS
    )
    found = []
    for row, task, values in paired:
        middle, half = t_interval(values)
        comparisons = max(1, judged[task is None])
        joint = None if row.sees_labels else t_interval(values, comparisons)[1]
        found.append(
            Difference(
                row.name, task, middle, half, len(values), row.sees_labels, joint
            )
        )
    return found


def _paired(found: Found, key: str) -> list[tuple[Row, str | None, list[float]]]:
    """Return the differences of each row on each task, seed by seed.

    After them the means over tasks, of tasks that are judged by themselves, if there
    are enough.
    """
    spec = found.spec
    seeds = found.frame.pivot(index=["task", "seed"], columns="row", values=key)
    out: list[tuple[Row, str | None, list[float]]] = []
    for row in spec.rows:
        if row.name == spec.reference:
            continue
        minus = (seeds[spec.reference] - seeds[row.name]).dropna()
        kinds: dict[object, list[float]] = {}
        for task in spec.tasks:
            here = minus[minus.index.get_level_values("task") == task.name]
            if len(here):
                out.append((row, task.name, here.tolist()))
            if len(here) >= FEWEST_SEEDS:
                same = (task.dataset, task.positive, task.keep_positive)
                kinds.setdefault(same, []).append(mean(here))
        if len(kinds) >= FEWEST_TASKS:
            out.append((row, None, [mean(values) for values in kinds.values()]))
    return out


# --- words --------------------------------------------------------------------------


def caption_of(spec: Spec) -> str:
    """Return the heading of the table of differences."""
    return f"{spec.reference} minus each row: {title_of(spec.metrics[0])}"


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
            by_task = {d.task: d for d in found if d.row == row and d.task is not None}
            tasks = [t for t, rows in compared.items() if t is not None and row in rows]
            absent = [str(t) for t in tasks if t not in by_task]
            named = [(str(t), d) for t, d in by_task.items()]
            what = f"{row}, trained on true labels" if row in oracles else row
            said.append(_verdict(f"Against {what}: ahead on", "task", named, absent))
        compared = {None: compared[None]} if None in compared else {}
    for task, rows in compared.items():
        here = {d.row: d for d in found if d.task == task}
        named = [(name, d) for name, d in here.items() if not d.sees_labels]
        absent = [r for r in rows if r not in here and r not in oracles]
        where = "Over tasks" if task is None else f"On {task}"
        text = _verdict(f"{where}: ahead of", "row", named, absent)
        if seeing := [_signed(r, d) for r, d in here.items() if d.sees_labels]:
            text += f" Trained on true labels, and not counted: {'; '.join(seeing)}."
        said.append(text)
    return said


def _verdict(
    start: str,
    of: str,
    named: Sequence[tuple[str, Difference]],
    absent: Sequence[str],
) -> str:
    """Say how many are won, and name the others with their differences."""
    rows = of == "row"
    ahead = [d for _, d in named if d.verdict == "ahead"]
    n = len(named) + len(absent)
    text = f"{start} {len(ahead)} of {n} {of}{'' if n == 1 else 's'}"
    text += " with an interval above 0"
    if any((d.joint_half_width or 0) > (d.half_width or 0) for d in ahead):
        stand = sum(d.stands for d in ahead)
        text += f"; {'of' if rows else 'on'} {stand} "
        text += "even if all intervals of the table must hold at once"
    text += "."
    if unsure := [_signed(name, d) for name, d in named if d.verdict == "open"]:
        text += f" Not told apart {'from' if rows else 'on'}: {'; '.join(unsure)}."
    if behind := [(name, d) for name, d in named if d.verdict == "behind"]:
        names = (f"{name} (by {-d.mean:.2f})" for name, d in behind)
        text += f" Behind{'' if rows else ' on'}: {'; '.join(names)}."
    with_ = "with" if rows else "on"
    if few := [_signed(name, d) for name, d in named if d.verdict == "few"]:
        text += f" Fewer than {FEWEST_SEEDS} seeds in common {with_}: {'; '.join(few)}."
    if absent:
        text += f" No seed in common {with_}: {'; '.join(absent)}."
    return text


def _signed(name: str, difference: Difference) -> str:
    return f"{name} ({signed(difference.mean)})"


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


def _many_tasks(compared: Mapping[str | None, Sequence[str]]) -> bool:
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

    title = caption_of(spec)
    tasks = {OVER_TASKS if task is None else task: task for task in compared}
    named = {name for names in compared.values() for name in names}
    rows = {row.name: row.group for row in spec.rows if row.name in named}
    if _many_tasks(compared):
        by_task = [[name, *(cell(r, t) for r in rows)] for name, t in tasks.items()]
        return Grid(title, ["", *rows], by_task)
    by_row = [[r, *(cell(r, t) for t in tasks.values())] for r in rows]
    return Grid(title, ["", *tasks], by_row, list(rows.values()))
