"""Records of a spec as the pictures of docs/results.md: see results.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle, product
from math import inf, log
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from denspu.benchmark.record import Record, failed
from denspu.benchmark.results import alike_but_labels, command_of
from denspu.benchmark.spec import Row, Spec, Task
from denspu.benchmark.tables import Found, title_of, under_headings
from denspu.exceptions import InvalidInputError
from denspu.report.style import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    RULE,
    SKY,
    SOFT_INK,
    new_figure,
    styled,
)

WIDTH, PANEL, LINE = 8.0, 2.9, 0.19
"""Inches: width of a picture, height of a panel, and of a row's name."""
PRINTED: dict[str, Any] = {"marker": "d", "s": 20, "lw": 0.9, "c": "none"}
PRINTED["edgecolor"] = INK
"""How a figure that the paper prints looks."""
HEADING = {"color": INK, "fontstyle": "italic"}
"""How the name of a group looks, unlike those of rows."""
CAPTIONS = {
    "labels": "How much each row gains from more labels",
    "spread": "Every seed",
}
"""The pictures, the main one first."""


def figure_names(spec: Spec, records: Sequence[Record]) -> list[str]:
    """Return the names of pictures that apply; none if all runs failed."""
    found = Found(spec, records)
    if all(map(failed, found.records.values())):
        return []
    return [name for name in CAPTIONS if name != "labels" or _recorded_groups(found)]


def draw(name: str, spec: Spec, records: Sequence[Record]) -> Figure:
    """Return one picture of a spec by its name."""
    if name not in figure_names(spec, records):
        raise InvalidInputError(
            f"There is nothing to draw: {spec.name} has no record for {name!r}. Run "
            f"{command_of(spec)} first."
        )
    picture = {"labels": _labels_against_metric, "spread": _spread_by_seed}[name]
    with styled():
        return picture(Found(spec, records))


# --- what the pictures share --------------------------------------------------------


def looks_of(spec: Spec) -> dict[str, tuple[str, str]]:
    """Return colour and marker of each row: the reference blue, true labels grey."""
    greys = cycle(product("XP*", [GREY]))
    colors = cycle(product("os^Dv", (ORANGE, GREEN, PINK, AMBER, SKY, SOFT_INK)))
    looks = {spec.reference or "": (BLUE, "o")}
    for row in spec.rows:
        if row.name != spec.reference:
            marker, color = next(colors if row.oracle == "no" else greys)
            looks[row.name] = color, marker
    return looks


def _panels(spec: Spec, count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with room for panels, two side by side, and a legend."""
    columns = min(count, 2)
    lines = -(-count // columns)
    height = max(PANEL * lines, LINE * len(spec.rows) + 0.4)
    figure = new_figure(WIDTH, height)
    panels = list(figure.subplots(lines, columns, squeeze=False).ravel())
    for axes in panels[count:]:
        axes.remove()
    return figure, panels[:count]


def _legend_of_rows(
    figure: Figure, spec: Spec, names: Iterable[str], printed: bool
) -> None:
    """Name the rows that are drawn at the right, in the order of the spec."""
    drawn, looks = set(names), looks_of(spec)
    rows = [row for row in spec.rows if row.name in drawn]
    handles = []
    for group, row in under_headings(rows, [row.group for row in rows]):
        handle = Line2D([], [], lw=0, ms=5, label=group if row is None else row.name)
        if row is not None:
            color, marker = looks[row.name]
            handle.set(color=color, marker=marker)
        handles.append(handle)
    if printed:
        dotted = Line2D([], [], color=SOFT_INK, ls=":", lw=0.9, label="the paper")
        dotted.set(marker="o", markersize=5, markerfacecolor="none")
        handles.append(dotted)
    legend = figure.legend(
        handles=handles, loc="outside right upper", handletextpad=0.2
    )
    groups = {row.group for row in rows}
    for text in legend.get_texts():
        if text.get_text() in groups:
            text.set(**HEADING)


def _rows_of(found: Found, task: Task, key: str) -> list[Row]:
    """Return the rows with a figure on a task, ours or printed."""
    values = ((row, found.value(row, task, key)) for row in found.spec.rows)
    return [row for row, value in values if value.by_seed or value.printed is not None]


def _is_printed(spec: Spec, tasks: Iterable[Task], key: str) -> bool:
    return any(key in r.printed.get(t.name, {}) for t in tasks for r in spec.rows)


# --- spread by seed -----------------------------------------------------------------


def _spread_by_seed(found: Found) -> Figure:
    """Draw every seed of every row as a dot, their mean as a tick, the paper's value.

    One panel a task, below each other; rows in the order of the spec.
    """
    spec, key = found.spec, found.spec.metrics[0]
    tasks = [task for task in spec.tasks if _rows_of(found, task, key)]
    rows = [_rows_of(found, task, key) for task in tasks]
    lines = [list(under_headings(one, [row.group for row in one])) for one in rows]
    heights = [LINE * len(one) + 0.75 for one in lines]
    figure = new_figure(WIDTH, sum(heights) + 0.25)
    panels = figure.subplots(
        len(tasks), 1, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    for axes, task, one in zip(panels, tasks, lines, strict=True):
        _spread(axes, found, task, one, key)
    last = panels[-1]
    last.scatter([], [], s=17, color=SOFT_INK, alpha=0.65, lw=0, label="one seed")
    last.plot([], [], "|", ms=8, mew=1.4, color=SOFT_INK, label="mean over seeds")
    if _is_printed(spec, tasks, key):
        last.scatter([], [], **PRINTED, label="paper")
    figure.legend(loc="outside lower right", ncols=3, handletextpad=0.3)
    return figure


def _spread(
    axes: Axes, found: Found, task: Task, lines: list[tuple[str, Row | None]], key: str
) -> None:
    looks = looks_of(found.spec)
    for y, (_, row) in enumerate(lines):
        if row is None:
            continue
        value, (color, _) = found.value(row, task, key), looks[row.name]
        if value.mean is not None:
            axes.scatter(
                value.by_seed,
                [y] * len(value.by_seed),
                s=17,
                color=color,
                alpha=0.65,
                lw=0,
            )
            axes.plot([value.mean] * 2, [y - 0.32, y + 0.32], color=color, lw=1.4)
        if value.printed is not None:
            axes.scatter(value.printed, y, **PRINTED)
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
            tick.label1.set(**HEADING)
        elif row.name == found.spec.reference:
            tick.label1.set(color=INK, fontweight="bold")


# --- a metric against the number of labels ------------------------------------------


def _labels_against_metric(found: Found) -> Figure:
    """Draw the mean of a metric over the number of labelled positives.

    One panel for tasks that differ in nothing else; bars reach from the worst to the
    best seed, hollow marks on dotted lines what the paper prints.
    """
    spec, key = found.spec, found.spec.metrics[0]
    groups = _recorded_groups(found)
    figure, panels = _panels(spec, len(groups))
    for axes, tasks in zip(panels, groups, strict=True):
        _labels(axes, found, tasks, key)
    drawn = [task for group in groups for task in group]
    names = [row.name for task in drawn for row in _rows_of(found, task, key)]
    _legend_of_rows(figure, spec, names, _is_printed(spec, drawn, key))
    return figure


def _recorded_groups(found: Found) -> list[list[Task]]:
    """Return the recorded tasks that differ in their number of labels alone."""
    groups = [group for group in alike_but_labels(found.spec.tasks) if len(group) > 1]
    return [g for g in groups if any(_count(found, t) is not None for t in g)]


def _count(found: Found, task: Task) -> float | None:
    """Return the number of labelled positives, as the records say."""
    counts = [r.n_labeled for row in found.spec.rows for r in found.good(row, task)]
    return median(counts) if counts else None


def _labels(axes: Axes, found: Found, tasks: Sequence[Task], key: str) -> None:
    counted = [(c, t) for t in tasks if (c := _count(found, t)) is not None]
    counted.sort(key=lambda pair: pair[0])
    for row in found.spec.rows:
        _label_line(axes, found, row, counted, key)
    places = sorted({count for count, _ in counted})
    is_log = places[-1] >= 8 * places[0]
    if is_log:
        axes.set_xscale("log")
    axes.set_xticks(places, labels_with_room(places, is_log))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.05)
    axes.set(title=tasks[0].dataset, xlabel="labelled positives")
    axes.set_ylabel(f"{title_of(key)}, %, worst to best seed")


def labels_with_room(places: Sequence[float], is_log: bool) -> list[str]:
    """Return what to write at each tick: nothing where it would touch the last."""
    at = [log(p) if is_log else p for p in places]
    room = 0.07 * (at[-1] - at[0])
    labels, last = [], -inf
    for place, x in zip(places, at, strict=True):
        labels.append(f"{place:,.0f}" if x - last >= room else "")
        last = x if labels[-1] else last
    return labels


def _label_line(
    axes: Axes, found: Found, row: Row, counted: list[tuple[float, Task]], key: str
) -> None:
    color, marker = looks_of(found.spec)[row.name]
    points = [(x, found.value(row, task, key)) for x, task in counted]
    if printed := [(x, v.printed) for x, v in points if v.printed is not None]:
        line = zip(*printed, strict=True)
        axes.plot(*line, color=color, marker=marker, ms=5, lw=0.9, ls=":", mfc="none")
    ours = [
        (x, v.mean, (v.mean - min(v.by_seed), max(v.by_seed) - v.mean))
        for x, v in points
        if v.mean is not None
    ]
    if not ours:
        return
    x, y, reach = zip(*ours, strict=True)
    axes.errorbar(
        x,
        y,
        yerr=tuple(zip(*reach, strict=True)),
        color=color,
        marker=marker,
        ms=4,
        lw=2.2 if row.name == found.spec.reference else 1.2,
        elinewidth=0.8,
    )
