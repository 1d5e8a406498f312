"""Two ways to show a table: Markdown that also reads well in a terminal, and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TypeVar

from denspu.benchmark.tables import Line, Table, Value

T = TypeVar("T")


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


# --- Markdown -----------------------------------------------------------------------


def to_markdown(table: Table) -> str:
    """Return a table as Markdown that also reads well in a terminal."""
    header = ["", *table.columns, "seeds", "seconds"]
    lines = [_markdown_cells(line) for line in table.lines]
    return markdown_grid(header, lines, [line.group for line in table.lines])


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
    lines = [_html_cells(line) for line in table.lines]
    groups = [line.group for line in table.lines]
    return html_grid(header, lines, table.title, groups)


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
    header: Sequence[str],
    lines: Sequence[tuple[str, list[str]]],
    caption: str,
    groups: Sequence[str] | None = None,
) -> str:
    """Return an HTML table of cells that are HTML already; the rest is plain text.

    Where lines have groups, the name of each stands in a line of its own.
    """
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in header)
    bodies: list[list[str]] = [[]]
    for group, line in under_headings(lines, groups or [""] * len(lines)):
        if line is None:
            bodies.append([_html_heading(group, len(header))])
        else:
            bodies[-1].append(_html_line(*line))
    body = "\n".join(
        "\n".join(["<tbody>", *rows, "</tbody>"]) for rows in bodies if rows
    )
    return (
        f"<table>\n<caption>{escape(caption)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n{body}\n</table>"
    )


def _html_line(name: str, cells: Sequence[str]) -> str:
    figures = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{name}</th>{figures}</tr>'


def _html_heading(name: str, columns: int) -> str:
    """Return a line that names those below it; its words stay in sight."""
    words = f"<span>{escape(name)}</span>"
    return f'<tr><th scope="rowgroup" colspan="{columns}">{words}</th></tr>'
