"""What the pictures of a benchmark share: how a row looks, panels, legends, figures."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from denspu.benchmark.results import command_of
from denspu.benchmark.spec import Row, Spec, Task
from denspu.benchmark.tables import Found, Value, under_headings
from denspu.exceptions import InvalidInputError
from denspu.report.style import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    SKY,
    SOFT_INK,
    new_figure,
)

WIDTH = 8.0
LINE = 0.19
"""Inches for a row's name."""
PANEL = 2.9
"""Inches of a panel's height."""
COLORS = (ORANGE, GREEN, PINK, AMBER, SKY, SOFT_INK)
MARKERS = "os^Dv"
ORACLE_MARKERS = "XP*"


@dataclass(frozen=True)
class Look:
    """How one row is drawn everywhere."""

    color: str
    marker: str
    width: float = 1.2


def looks_of(spec: Spec) -> dict[str, Look]:
    """Return the look of each row: the reference blue, true labels grey."""
    oracles = [r.name for r in spec.rows if r.oracle != "no"]
    others = [
        r.name for r in spec.rows if r.oracle == "no" and r.name != spec.reference
    ]
    looks = {
        name: Look(COLORS[i % len(COLORS)], MARKERS[i // len(COLORS) % len(MARKERS)])
        for i, name in enumerate(others)
    }
    for i, name in enumerate(oracles):
        looks[name] = Look(GREY, ORACLE_MARKERS[i % len(ORACLE_MARKERS)])
    if spec.reference is not None:
        looks[spec.reference] = Look(BLUE, "o", 2.2)
    return looks


def panels_of(spec: Spec, count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with room for panels, two side by side, and a legend."""
    columns = min(count, 2)
    lines = -(-count // columns)
    height = max(PANEL * lines, LINE * len(spec.rows) + 0.4)
    figure = new_figure(WIDTH, height)
    panels = list(figure.subplots(lines, columns, squeeze=False).ravel())
    for axes in panels[count:]:
        axes.remove()
    return figure, panels[:count]


def legend_of_rows(
    figure: Figure, spec: Spec, names: Iterable[str], printed: bool = False
) -> None:
    """Name the rows that are drawn at the right, in the order of the spec."""
    drawn, looks = set(names), looks_of(spec)
    rows = [row for row in spec.rows if row.name in drawn]
    handles = []
    for group, row in under_headings(rows, [row.group for row in rows]):
        handle = Line2D([], [], lw=0, ms=5, label=group if row is None else row.name)
        if row is not None:
            handle.set(color=looks[row.name].color, marker=looks[row.name].marker)
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
            as_heading(text)


def as_heading(text: Text) -> None:
    """Show the name of a group unlike those of rows."""
    text.set(color=INK, fontstyle="italic")


def value_of(found: Found, row: Row, task: Task, key: str) -> Value:
    """Return a figure of a row over seeds, and what the paper prints."""
    printed = row.printed.get(task.name, {}).get(key)
    return Value(tuple(found.by_seed(row, task, key).values()), printed)


def rows_of(found: Found, task: Task, key: str) -> list[Row]:
    """Return the rows with a figure on a task, ours or printed."""
    with_values = ((row, value_of(found, row, task, key)) for row in found.spec.rows)
    return [r for r, v in with_values if v.n or v.printed is not None]


def some(things: Sized, spec: Spec, key: str) -> None:
    """Refuse to draw nothing."""
    if not things:
        raise InvalidInputError(
            f"There is nothing to draw: no record of {spec.name} has {key!r}. Run "
            f"{command_of(spec)} first."
        )
