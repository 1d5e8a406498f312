"""Pictures and the page of a spec show every row, and ask for nothing outside."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.image import imread

from denspu.benchmark import Record
from denspu.benchmark.spec import Row, Spec, Task, cells_of
from denspu.exceptions import InvalidInputError
from denspu.report import save
from denspu.report.bench import (
    figure_names,
    save_figures,
    spec_page,
)
from denspu.report.bench_pictures import (
    _labels_with_room,
    groups_by_labels,
    labels_against_metric,
    seconds_against_accuracy,
    spread_by_seed,
)

PRINTED = {"A": {"f1": 70.0}, "B": {"f1": 75.0}}
SPEC = Spec(
    name="small",
    title="A <em>small</em> table",
    tasks=(Task("A", "digits", 50), Task("B", "digits", 500)),
    rows=(
        Row("<b>nnPU</b>", "nnpu", prior="true", printed=PRINTED),
        Row("ours", "dens_pu", note="Runs for `60` s & <i>no</i> more."),
        Row("truth", "supervised", oracle="all"),
    ),
    seeds=(0, 1),
    metrics=("f1", "accuracy"),
    layout="tasks",
    reference="ours",
)
F1 = {"<b>nnPU</b>": 0.8, "ours": 0.9, "truth": 0.95}


def f1_of(cell):
    return F1[cell.row.name] + 0.01 * cell.seed + 0.02 * (cell.task.name == "B")


def record(cell, **changes):
    facts = {
        "dataset": "digits",
        "method": cell.row.method,
        "variant": cell.row.name,
        "n_labeled": cell.task.n_labeled,
        "seed": cell.seed,
        "metrics": {"f1": f1_of(cell), "accuracy": f1_of(cell) - 0.1},
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


def points_of(axes):
    """Return all drawn dots as sorted (x, y)."""
    drawn = np.concatenate([np.asarray(c.get_offsets()) for c in axes.collections[:]])
    return sorted(map(tuple, np.ma.filled(drawn, np.nan).round(6).tolist()))


# --- pictures -----------------------------------------------------------------------


def test_spread_has_a_dot_for_each_seed_and_a_mark_for_the_paper():
    first, second = spread_by_seed(SPEC, RECORDS).axes
    assert [label.get_text() for label in first.get_yticklabels()] == [
        "<b>nnPU</b>",
        "ours",
        "truth",
    ]
    ours = [(80, 0), (81, 0), (90, 1), (91, 1), (95, 2), (96, 2)]
    assert points_of(first) == sorted([*ours, (70, 0)])
    assert [axes.get_title("left") for axes in (first, second)] == ["A", "B"]
    assert first.get_xlabel() == "F1, %"
    means = [line.get_xdata()[0] for line in first.get_lines()]
    assert means == pytest.approx([80.5, 90.5, 95.5])


GROUPED = replace(
    SPEC,
    rows=(
        replace(SPEC.rows[0], group="theirs"),
        SPEC.rows[1],
        replace(SPEC.rows[2], group="true labels"),
    ),
)


def test_spread_names_groups_on_lines_without_dots():
    first = spread_by_seed(GROUPED, RECORDS).axes[0]
    names = first.get_yticklabels()
    assert [name.get_text() for name in names] == [
        *("theirs", "<b>nnPU</b>", "ours", "true labels", "truth"),
    ]
    assert [n.get_fontstyle() == "italic" for n in names] == [1, 0, 0, 1, 0]
    ours = [(80, 1), (81, 1), (90, 2), (91, 2), (95, 4), (96, 4)]
    assert points_of(first) == sorted([*ours, (70, 1)])
    lines = [tick.gridline.get_visible() for tick in first.yaxis.get_major_ticks()]
    assert lines == [False, True, True, False, True]


def test_the_legend_of_rows_names_groups():
    [legend] = seconds_against_accuracy(GROUPED, RECORDS).legends
    marks = [
        (text.get_text(), handle.get_marker() != "None")
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)
    ]
    assert marks == [
        ("theirs", False),
        ("<b>nnPU</b>", True),
        ("ours", True),
        ("true labels", False),
        ("truth", True),
    ]


def test_seconds_are_those_of_the_method_and_its_shared_encoder():
    shared = replace(SPEC.rows[0], encoder="shared")
    spec = replace(SPEC, rows=(shared, *SPEC.rows[1:]))
    encoder = {"total": 4.0, "shared_encoder": 26.0}
    records = [
        record(c, seconds=encoder) if c.row == shared else record(c)
        for c in cells_of(spec)
    ]
    first = seconds_against_accuracy(spec, records).axes[0]
    assert first.get_xscale() == "log"
    assert first.get_ylabel().startswith("accuracy, %")  # not the first metric
    bars = [c.lines[2][0].get_segments()[0][:, 1] for c in first.containers]
    assert np.round(bars, 6).tolist() == [[70, 71], [80, 81], [85, 86]]
    dots = [c for c in first.collections if len(c.get_offsets())]
    found = [tuple(np.asarray(c.get_offsets())[0].round(6)) for c in dots]
    assert [p for p in found if p[0] > 1] == [(30, 70.5), (4, 80.5), (4, 85.5)]


def test_labels_run_from_few_to_many():
    turned = replace(SPEC, tasks=SPEC.tasks[::-1])
    [axes] = labels_against_metric(turned, RECORDS).axes
    lines = [np.round(line.get_xydata(), 6).tolist() for line in axes.get_lines()]
    assert [[50, 90.5], [500, 92.5]] in lines
    assert [[50, 70], [500, 75]] in lines  # the paper's
    bars = axes.containers[0].lines[2][0].get_segments()
    assert np.round(bars, 6).tolist() == [[[50, 80], [50, 81]], [[500, 82], [500, 83]]]
    assert axes.get_xscale() == "log"
    assert [t.get_text() for t in axes.get_xticklabels()] == ["50", "500"]


def test_labels_of_ticks_that_would_touch_are_left_out():
    assert _labels_with_room([200, 5000, 6000, 10000], True) == [
        "200",
        "5,000",
        "",
        "10,000",
    ]
    assert _labels_with_room([10, 20, 30], False) == ["10", "20", "30"]


def test_tasks_are_grouped_where_labels_alone_differ():
    a, b = SPEC.tasks
    other = replace(a, name="C", n_labeled=7, mechanism="sar")
    assert groups_by_labels(replace(SPEC, tasks=(a, other, b))) == [[a, b]]
    assert groups_by_labels(replace(SPEC, tasks=(a, other))) == []


@pytest.mark.parametrize(
    "draw", [spread_by_seed, seconds_against_accuracy, labels_against_metric]
)
def test_nothing_to_draw_says_what_to_run(draw):
    spec = replace(SPEC, rows=SPEC.rows[1:])
    with pytest.raises(InvalidInputError, match=r"denspu bench run .*small\.toml"):
        draw(spec, [failure(cell) for cell in cells_of(spec)])


def test_failed_runs_alone_have_no_picture(tmp_path):
    failures = [failure(cell) for cell in cells_of(SPEC)]
    assert figure_names(SPEC, failures) == []
    with pytest.raises(InvalidInputError, match=r"denspu bench run .*small\.toml"):
        save_figures(SPEC, failures, tmp_path)


def test_files_are_named_after_spec_and_picture(tmp_path):
    spec = replace(SPEC, tasks=SPEC.tasks[:1])
    paths = save_figures(spec, RECORDS, tmp_path)
    assert [p.name for p in paths] == [
        "small-spread.svg",
        "small-spread.png",
        "small-seconds.svg",
        "small-seconds.png",
    ]
    assert imread(paths[1]).shape[1] == 1600
    again = save(spread_by_seed(spec, RECORDS), tmp_path / "again.svg")
    assert again.read_bytes() == paths[0].read_bytes()


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


@pytest.fixture(scope="module")
def page():
    return spec_page(SPEC, RECORDS)


def test_page_holds_tables_comparison_and_pictures(page):
    found = Page(page)
    assert found.tags.count("table") == 2
    assert found.tags.count("svg") == 3
    for words in ("90.50", "(70.00, +10.50)", "ours minus each row: F1", "2 seeds"):
        assert words in found.text
    assert "denspu bench run small.toml" in found.text


def test_page_escapes_names_and_notes(page):
    found = Page(page)
    assert not {"b", "i", "em"} & set(found.tags)
    assert "<b>nnPU</b>" in found.text
    assert found.text.count("A <em>small</em> table") == 2  # title and heading
    assert "<code>60</code> s &amp; &lt;i&gt;no" in page


def test_page_asks_for_nothing_outside(page):
    found = Page(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(found.tags)
    for name, value in found.attributes:
        if name in ("href", "xlink:href", "src"):
            assert value.startswith("#")
    assert not re.search(r"@import|url\((?!#)", page)
    assert page.lower().count("<!doctype") == 1  # an SVG's names an address


def test_ids_are_unique_and_all_that_are_used_exist(page):
    ids = [value for name, value in Page(page).attributes if name == "id"]
    assert len(ids) == len(set(ids))
    used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page)
    assert used
    assert {a or b for a, b in used} <= set(ids)


def test_page_of_a_spec_in_which_all_failed_has_no_pictures():
    found = Page(spec_page(SPEC, [failure(cell) for cell in cells_of(SPEC)]))
    assert "svg" not in found.tags
    assert "2 of 2 failed: MemoryError" in found.text
