"""Records of a benchmark spec as pictures, and as one page that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from denspu.benchmark.paired import (
    differences,
    differences_grid,
    how_to_read,
    verdicts,
)
from denspu.benchmark.record import Record, failed
from denspu.benchmark.results import command_of, notes_of
from denspu.benchmark.spec import Spec
from denspu.benchmark.tables import Found, tables_of
from denspu.report.bench_parts import some
from denspu.report.bench_pictures import (
    labels_against_metric,
    recorded_groups,
    seconds_against_accuracy,
    spread_by_seed,
)
from denspu.report.style import BLUE, GREY, INK, RULE, SOFT_INK, save, styled

PAGE_COLORS = {
    "#ffffff": "var(--paper)",
    INK: "var(--ink)",
    SOFT_INK: "var(--soft)",
    RULE: "var(--rule)",
    GREY: "var(--grey)",
    BLUE: "var(--blue)",
}
"""Colours that follow the page from light to dark."""


def figure_names(spec: Spec, records: Sequence[Record]) -> list[str]:
    """Return the names of pictures, the main one first; none if all runs failed."""
    found = Found(spec, records)
    if all(map(failed, found.records.values())):
        return []
    return [*(["labels"] if recorded_groups(found) else []), "spread", "seconds"]


def figures_of(spec: Spec, records: Sequence[Record]) -> dict[str, Figure]:
    """Return the pictures of a spec by name; those that do not apply are left out."""
    return {name: draw(name, spec, records) for name in figure_names(spec, records)}


def draw(name: str, spec: Spec, records: Sequence[Record]) -> Figure:
    """Return one picture of a spec by its name."""
    return DRAWN[name](spec, records)


def save_figures(
    spec: Spec,
    records: Sequence[Record],
    folder: str | Path,
    kinds: Iterable[str] = ("svg", "png"),
) -> list[Path]:
    """Write the pictures of a spec as ``SPEC-PICTURE.svg`` and ``.png``."""
    kinds, figures = tuple(kinds), figures_of(spec, records)
    some(figures, spec, spec.metrics[0])
    return [
        save(figure, Path(folder) / f"{spec.name}-{name}.{kind}")
        for name, figure in figures.items()
        for kind in kinds
    ]


DRAWN = {
    "labels": labels_against_metric,
    "spread": spread_by_seed,
    "seconds": seconds_against_accuracy,
}
CAPTIONS = {
    "labels": "How much each row gains from more labels",
    "spread": "Every seed",
    "seconds": "What a result costs",
}


def spec_page(spec: Spec, records: Sequence[Record]) -> str:
    """Return a spec as one HTML page: tables, comparison, pictures, notes.

    Nothing outside the page is asked for; it opens without a network.
    """
    found = differences(spec, records)
    parts = [f"<h1>{escape(spec.title)}</h1>"]
    if found:
        parts.append(f"<p>{escape(str(spec.reference))}, in percent points:</p>")
        parts.append(_list(verdicts(spec, found)))
    parts.append("<h2>Table</h2>")
    parts += [_scroll(table.html()) for table in tables_of(spec, records)]
    if found:
        parts.append("<h2>Comparison, seed by seed</h2>")
        parts.append(_scroll(differences_grid(spec, found).html()))
        parts.append(f'<p class="soft">{escape(how_to_read(spec, found))}</p>')
    for name, figure in figures_of(spec, records).items():
        parts.append(f"<h2>{CAPTIONS[name]}</h2>")
        picture = inline_svg(figure, name, f"{CAPTIONS[name]}: {spec.title}")
        parts.append(f'<figure class="scroll">{picture}</figure>')
    parts.append("<h2>How it was made</h2>")
    parts.append(_list(notes_of(spec, records)))
    parts.append(f"<pre><code>{escape(command_of(spec))}</code></pre>")
    return _page(spec.title, "\n".join(parts))


def _page(title: str, body: str) -> str:
    style = Path(__file__).with_name("bench.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _scroll(table: str) -> str:
    return f'<div class="scroll">{table}</div>'


def _list(sentences: Sequence[str]) -> str:
    return f"<ul>\n{''.join(f'<li>{_prose(s)}</li>' for s in sentences)}\n</ul>"


def _prose(sentence: str) -> str:
    """Escape a sentence; words between backticks become code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(sentence))


def inline_svg(figure: Figure, prefix: str, label: str) -> str:
    """Return a picture as an SVG element for a page.

    Its ids get a prefix, as a page may hold several; its greys and its background
    follow the page's colours.
    """
    buffer = BytesIO()
    with styled():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r'href="#', f'href="#{prefix}-', text)
    text = re.sub(r"url\(#", f"url(#{prefix}-", text)
    for color, variable in PAGE_COLORS.items():
        text = text.replace(color, variable)
    named = f'<svg role="img" aria-label="{escape(label)}"'
    return text.replace("<svg", named, 1)
