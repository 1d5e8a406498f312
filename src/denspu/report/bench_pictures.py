"""The three pictures of a benchmark: every seed, seconds, and numbers of labels."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from denspu.benchmark.record import Record
from denspu.benchmark.results import alike_but_labels
from denspu.benchmark.spec import Row, Spec, Task
from denspu.benchmark.tables import Found, title_of, under_headings
from denspu.report.bench_parts import (
    LINE,
    WIDTH,
    as_heading,
    legend_of_rows,
    looks_of,
    panels_of,
    rows_of,
    some,
    value_of,
)
from denspu.report.style import INK, RULE, SOFT_INK, new_figure, styled

CLOSEST = 0.07
"""Share of an axis that two labels are apart at least."""
LOG_FROM = 8
"""An axis of counts is logarithmic if its ends differ by this factor."""

# --- spread by seed -----------------------------------------------------------------


def spread_by_seed(
    spec: Spec, records: Sequence[Record], metric: str | None = None
) -> Figure:
    """Draw every seed of every row as a dot, their mean as a tick, the paper's value.

    One panel a task, below each other; rows in the order of the spec.
    """
    found, key = Found(spec, records), metric or spec.metrics[0]
    tasks = [t for t in spec.tasks if rows_of(found, t, key)]
    some(tasks, spec, key)
    heights = [LINE * len(_lines(found, t, key)) + 0.75 for t in tasks]
    figure = new_figure(WIDTH, sum(heights) + 0.25)
    with styled():
        panels = figure.subplots(
            len(tasks), 1, squeeze=False, gridspec_kw={"height_ratios": heights}
        )[:, 0]
        for axes, task in zip(panels, tasks, strict=True):
            _spread(axes, found, task, key)
        printed = any(
            key in r.printed.get(t.name, {}) for t in tasks for r in spec.rows
        )
        _legend_of_dots(panels[-1], printed)
    return figure


def _lines(found: Found, task: Task, key: str) -> list[tuple[str, Row | None]]:
    """Return the rows of a panel, and the headings among them."""
    rows = rows_of(found, task, key)
    return list(under_headings(rows, [row.group for row in rows]))


def _spread(axes: Axes, found: Found, task: Task, key: str) -> None:
    lines = _lines(found, task, key)
    for y, (_, row) in enumerate(lines):
        if row is not None:
            _dots(axes, found, row, task, key, y)
    axes.set(ylim=(len(lines) - 0.4, -0.6), title=task.name)
    names = [group if row is None else row.name for group, row in lines]
    axes.set_yticks(range(len(lines)), names)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color=RULE, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"{title_of(key)}, %")
    for tick, (_, row) in zip(axes.yaxis.get_major_ticks(), lines, strict=True):
        if row is None:
            tick.gridline.set_visible(False)
            as_heading(tick.label1)
        elif row.name == found.spec.reference:
            tick.label1.set(color=INK, fontweight="bold")


def _dots(axes: Axes, found: Found, row: Row, task: Task, key: str, y: float) -> None:
    value = value_of(found, row, task, key)
    color = looks_of(found.spec)[row.name].color
    if value.mean is not None:
        axes.scatter(value.by_seed, [y] * value.n, s=17, color=color, alpha=0.65, lw=0)
        axes.plot([value.mean] * 2, [y - 0.32, y + 0.32], color=color, lw=1.4)
    if value.printed is not None:
        axes.scatter(
            value.printed, y, marker="d", s=20, lw=0.9, color="none", edgecolor=INK
        )


def _legend_of_dots(axes: Axes, printed: bool) -> None:
    axes.scatter([], [], s=17, color=SOFT_INK, alpha=0.65, lw=0, label="one seed")
    axes.plot([], [], "|", ms=8, mew=1.4, color=SOFT_INK, label="mean over seeds")
    if printed:
        axes.scatter(
            [], [], marker="d", s=20, lw=0.9, c="none", edgecolor=INK, label="paper"
        )
    axes.figure.legend(loc="outside lower right", ncols=3, handletextpad=0.3)


# --- seconds against accuracy -------------------------------------------------------


def seconds_against_accuracy(
    spec: Spec, records: Sequence[Record], metric: str | None = None
) -> Figure:
    """Draw the mean of a metric over the median seconds; one panel a task.

    Bars reach from the worst to the best seed.
    The metric is accuracy where the spec has it, else its first. The seconds of an
    encoder that rows share are added to each row that uses it.
    """
    found = Found(spec, records)
    key = metric or ("accuracy" if "accuracy" in spec.metrics else spec.metrics[0])
    tasks = [t for t in spec.tasks if any(found.by_seed(r, t, key) for r in spec.rows)]
    some(tasks, spec, key)
    with styled():
        figure, panels = panels_of(spec, len(tasks))
        for axes, task in zip(panels, tasks, strict=True):
            _seconds(axes, found, task, key)
        names = [r.name for r in spec.rows if any(found.good(r, t) for t in tasks)]
        legend_of_rows(figure, spec, names)
    return figure


def _seconds(axes: Axes, found: Found, task: Task, key: str) -> None:
    looks = looks_of(found.spec)
    for row in found.spec.rows:
        value = value_of(found, row, task, key)
        if value.mean is None:
            continue
        seconds = median(
            r.seconds["total"] + r.seconds.get("shared_encoder", 0.0)
            for r in found.good(row, task)
        )
        look = looks[row.name]
        below, above = value.reach
        axes.errorbar(
            seconds,
            value.mean,
            yerr=([below], [above]),
            color=look.color,
            elinewidth=0.8,
        )
        axes.scatter(
            seconds, value.mean, s=24, color=look.color, marker=look.marker, zorder=3
        )
    axes.set_xscale("log")  # not before: Matplotlib divides by an empty range
    axes.margins(x=0.08, y=0.1)
    _ticks_of_seconds(axes)
    axes.set(title=task.name, xlabel="seconds, median")
    axes.set_ylabel(f"{title_of(key)}, %, worst to best seed")


def _ticks_of_seconds(axes: Axes) -> None:
    """Write seconds as people do, at a few round places."""
    low, high = axes.get_xlim()
    steps: tuple[float, ...] = (1,)
    if high < 12 * low:
        steps = (1, 1.5, 2, 2.5, 3, 4, 5, 7)
    elif high < 1000 * low:
        steps = (1, 3)
    places = [step * 10.0**power for power in range(-4, 8) for step in steps]
    ticks = [x for x in places if low <= x <= high]
    axes.set_xticks(ticks, [f"{x:,.4g}" for x in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


# --- a metric against the number of labels ------------------------------------------


def labels_against_metric(
    spec: Spec, records: Sequence[Record], metric: str | None = None
) -> Figure:
    """Draw the mean of a metric over the number of labelled positives.

    One panel for tasks that differ in nothing else; bars reach from the worst to the
    best seed, hollow marks on dotted lines what the paper prints.
    """
    found, key = Found(spec, records), metric or spec.metrics[0]
    groups = recorded_groups(found)
    some(groups, spec, key)
    with styled():
        figure, panels = panels_of(spec, len(groups))
        for axes, tasks in zip(panels, groups, strict=True):
            _labels(axes, found, tasks, key)
        drawn = [t for g in groups for t in g]
        names = [r.name for t in drawn for r in rows_of(found, t, key)]
        printed = any(
            key in r.printed.get(t.name, {}) for t in drawn for r in spec.rows
        )
        legend_of_rows(figure, spec, names, printed)
    return figure


def groups_by_labels(spec: Spec) -> list[list[Task]]:
    """Return the tasks that differ in their number of labels alone, if several do."""
    return [group for group in alike_but_labels(spec.tasks) if len(group) > 1]


def recorded_groups(found: Found) -> list[list[Task]]:
    """Return those groups of tasks that have a record."""
    groups = groups_by_labels(found.spec)
    return [g for g in groups if any(_count(found, t) is not None for t in g)]


def _labels(axes: Axes, found: Found, tasks: Sequence[Task], key: str) -> None:
    counts = {t.name: c for t in tasks if (c := _count(found, t)) is not None}
    tasks = sorted((t for t in tasks if t.name in counts), key=lambda t: counts[t.name])
    for row in found.spec.rows:
        _label_line(axes, found, row, tasks, counts, key)
    places = sorted(set(counts.values()))
    is_log = places[-1] >= LOG_FROM * places[0]
    if is_log:
        axes.set_xscale("log")
    axes.set_xticks(places, _labels_with_room(places, is_log))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.05)
    axes.set(title=tasks[0].dataset, xlabel="labelled positives")
    axes.set_ylabel(f"{title_of(key)}, %, worst to best seed")


def _labels_with_room(places: Sequence[float], is_log: bool) -> list[str]:
    """Return what to write at each tick: nothing where it would touch the last."""
    at = [log(p) if is_log else p for p in places]
    room = CLOSEST * (at[-1] - at[0])
    labels, last = [], -inf
    for place, x in zip(places, at, strict=True):
        labels.append(f"{place:,.0f}" if x - last >= room else "")
        last = x if labels[-1] else last
    return labels


def _label_line(
    axes: Axes,
    found: Found,
    row: Row,
    tasks: Sequence[Task],
    counts: dict[str, float],
    key: str,
) -> None:
    look = looks_of(found.spec)[row.name]
    points = [(counts[t.name], value_of(found, row, t, key)) for t in tasks]
    if printed := [(x, v.printed) for x, v in points if v.printed is not None]:
        axes.plot(
            *zip(*printed, strict=True),
            color=look.color,
            marker=look.marker,
            ms=5,
            lw=0.9,
            ls=":",
            mfc="none",
        )
    ours = [(x, v.mean, v.reach) for x, v in points if v.mean is not None]
    if not ours:
        return
    x, y, reach = zip(*ours, strict=True)
    axes.errorbar(
        x,
        y,
        yerr=tuple(zip(*reach, strict=True)),
        color=look.color,
        marker=look.marker,
        ms=4,
        lw=look.width,
        elinewidth=0.8,
    )


def _count(found: Found, task: Task) -> float | None:
    """Return the number of labelled positives, as the records say."""
    counts = [r.n_labeled for row in found.spec.rows for r in found.good(row, task)]
    return median(counts) if counts else None
