"""Pictures and the page of a spec show every row, and ask for nothing outside."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from denspu.benchmark import Record
from denspu.benchmark.spec import Row, Spec, Task, cells_of
from denspu.exceptions import InvalidInputError
from denspu.report.bench import (
    draw,
    figure_names,
    inline_svg,
    labels_with_room,
    looks_of,
    save_figures,
    spec_page,
)
from denspu.report.style import BLUE

PRINTED = {"A": {"f1": 70.0}, "B": {"f1": 75.0}}
SPEC = Spec(
    name="small",
    title="A <em>small</em> table",
    tasks=(Task("A", "digits", 50), Task("B", "digits", 500)),
    rows=(
        Row("<b>nnPU</b>", "nnpu", prior="true", printed=PRINTED, group="theirs"),
        Row("ours", "dens_pu", note="Runs for `60` s & <i>no</i> more."),
        Row("truth", "supervised", oracle="all", group="true labels"),
    ),
    seeds=(0, 1),
    metrics=("f1", "accuracy"),
    layout="tasks",
    reference="ours",
)
F1 = {"<b>nnPU</b>": 0.8, "ours": 0.9, "truth": 0.95}


def record(cell, **changes):
    f1 = F1[cell.row.name] + 0.01 * cell.seed + 0.02 * (cell.task.name == "B")
    facts = {
        "dataset": "digits",
        "method": cell.row.method,
        "variant": cell.row.name,
        "n_labeled": cell.task.n_labeled,
        "seed": cell.seed,
        "metrics": {"f1": f1, "accuracy": f1 - 0.1},
        "estimates": {},
        "seconds": {"total": 4.0},
        "device": "a GPU",
        "extra": {"cell": cell.id},
        "versions": {},
        "commit": "abc",
        "command": "test",
    }
    return Record(**{**facts, **changes})


def failure(cell):
    return record(cell, metrics={}, extra={"cell": cell.id, "error": "MemoryError: x"})


RECORDS = [record(cell) for cell in cells_of(SPEC)]
FAILURES = [failure(cell) for cell in cells_of(SPEC)]


def points_of(axes):
    """Return all drawn dots as sorted (x, y)."""
    drawn = np.concatenate([np.asarray(c.get_offsets()) for c in axes.collections[:]])
    return sorted(map(tuple, np.ma.filled(drawn, np.nan).round(6).tolist()))


# --- pictures -----------------------------------------------------------------------


def test_spread_has_dots_a_mark_for_the_paper_and_names_of_groups():
    first, second = draw("spread", SPEC, RECORDS).axes
    names = first.get_yticklabels()
    assert [name.get_text() for name in names] == [
        *("theirs", "<b>nnPU</b>", "ours", "true labels", "truth"),
    ]
    assert [n.get_fontstyle() == "italic" for n in names] == [1, 0, 0, 1, 0]
    ours = [(80, 1), (81, 1), (90, 2), (91, 2), (95, 4), (96, 4)]
    assert points_of(first) == sorted([*ours, (70, 1)])
    assert [axes.get_title("left") for axes in (first, second)] == ["A", "B"]
    assert first.get_xlabel() == "F1, %"
    means = [line.get_xdata()[0] for line in first.get_lines()]
    assert means == pytest.approx([80.5, 90.5, 95.5])
    alone = draw("spread", SPEC, [one for one in RECORDS if "nnPU" not in one.variant])
    assert (70, 1) in points_of(alone.axes[0]), "the paper's figure, without ours"


def test_seconds_are_those_of_the_method_and_its_shared_encoder():
    shared = replace(SPEC.rows[0], encoder="shared")
    spec = replace(SPEC, rows=(shared, *SPEC.rows[1:]))
    encoder = {"total": 4.0, "shared_encoder": 26.0}
    records = [
        record(c, seconds=encoder) if c.row.encoder == "shared" else record(c)
        for c in cells_of(spec)
    ]
    figure = draw("seconds", spec, records)
    first = figure.axes[0]
    assert first.get_xscale() == "log"
    assert first.get_ylabel().startswith("accuracy, %"), "not the first metric"
    bars = [c.lines[2][0].get_segments()[0][:, 1] for c in first.containers]
    assert np.round(bars, 6).tolist() == [[70, 71], [80, 81], [85, 86]]
    dots = [c for c in first.collections if len(c.get_offsets())]
    found = [tuple(np.asarray(c.get_offsets())[0].round(6)) for c in dots]
    assert [p for p in found if p[0] > 1] == [(30, 70.5), (4, 80.5), (4, 85.5)]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["theirs", "<b>nnPU</b>", "ours", "true labels", "truth"]


def test_labels_run_from_few_to_many():
    turned = replace(SPEC, tasks=SPEC.tasks[::-1])
    [axes] = draw("labels", turned, RECORDS).axes
    lines = [np.round(line.get_xydata(), 6).tolist() for line in axes.get_lines()]
    assert [[50, 90.5], [500, 92.5]] in lines
    assert [[50, 70], [500, 75]] in lines, "the paper's"
    bars = axes.containers[0].lines[2][0].get_segments()
    assert np.round(bars, 6).tolist() == [[[50, 80], [50, 81]], [[500, 82], [500, 83]]]
    assert axes.get_xscale() == "log"
    assert labels_with_room([200, 5000, 6000, 10000], True)[2:] == ["", "10,000"]
    assert labels_with_room([10, 20, 30], False) == ["10", "20", "30"]


def test_rows_are_told_apart():
    rows = [replace(SPEC.rows[0], name=f"row {i}") for i in range(20)]
    looks = looks_of(replace(SPEC, rows=(*rows, *SPEC.rows[1:])))
    assert len(set(looks.values())) == 22
    assert looks["ours"] == (BLUE, "o")


def test_which_pictures_a_spec_has_and_what_their_files_are_called(tmp_path):
    assert figure_names(SPEC, RECORDS) == ["labels", "spread", "seconds"]
    one = replace(SPEC, tasks=SPEC.tasks[:1])
    paths = save_figures(one, RECORDS, tmp_path, ["png"])
    assert [p.name for p in paths] == ["small-spread.png", "small-seconds.png"]
    assert imread(paths[0]).shape[1] == 1600


def test_nothing_to_draw_says_what_to_run(tmp_path):
    assert figure_names(SPEC, FAILURES) == []
    spec = replace(SPEC, rows=SPEC.rows[1:])
    for name in ("spread", "seconds", "labels"):
        with pytest.raises(InvalidInputError, match=r"denspu bench run .*small\.toml"):
            draw(name, spec, FAILURES)
    with pytest.raises(InvalidInputError, match=r"denspu bench run .*small\.toml"):
        save_figures(SPEC, FAILURES, tmp_path)


# --- the page -----------------------------------------------------------------------


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        self.text += data


def test_page_holds_tables_comparison_and_pictures_and_escapes_names():
    page = spec_page(SPEC, RECORDS)
    found = Page(page)
    assert found.tags.count("table") == 2
    assert found.tags.count("svg") == 3
    for words in ("90.50", "(70.00, +10.50)", "ours minus each row: F1", "2 seeds"):
        assert words in found.text
    assert "denspu bench run small.toml" in found.text
    assert not {"b", "i", "em"} & set(found.tags)
    assert found.text.count("A <em>small</em> table") == 2, "title and heading"
    assert "<code>60</code> s &amp; &lt;i&gt;no" in page


def test_page_asks_for_nothing_outside_and_follows_light_and_dark():
    page = spec_page(SPEC, RECORDS)
    found = Page(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(found.tags)
    for name, value in found.attributes:
        if name in ("href", "xlink:href", "src"):
            assert value.startswith("#")
    assert not re.search(r"@import|url\((?!#)", page)
    assert "prefers-color-scheme: dark" in page
    svg = page[page.index("<svg") : page.index("</svg>")]
    assert "fill: var(--paper)" in svg
    assert "#ffffff" not in svg
    ids = [value for name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page)
    assert {a or b for a, b in used} <= set(ids)


def test_inline_svg_is_whole_and_named():
    text = inline_svg(draw("spread", SPEC, RECORDS), "x", 'A "label" & <more>')
    root = ElementTree.fromstring(text)
    assert root.get("aria-label") == 'A "label" & <more>'
    assert root.get("role") == "img"


def test_page_of_a_spec_in_which_all_failed_has_no_pictures():
    found = Page(spec_page(SPEC, FAILURES))
    assert "svg" not in found.tags
    assert "2 of 2 failed: MemoryError" in found.text
