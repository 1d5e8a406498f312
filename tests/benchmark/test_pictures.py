"""Pictures of a spec show every row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.pictures import (
    draw,
    figure_names,
    labels_with_room,
    looks_of,
)

from denspu.benchmark import Record
from denspu.benchmark.spec import Row, Spec, Task, cells_of
from denspu.exceptions import InvalidInputError
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


def test_which_pictures_a_spec_has():
    assert figure_names(SPEC, RECORDS) == ["labels", "spread"]
    one = replace(SPEC, tasks=SPEC.tasks[:1])
    assert figure_names(one, RECORDS) == ["spread"]


def test_nothing_to_draw_says_what_to_run():
    assert figure_names(SPEC, FAILURES) == []
    spec = replace(SPEC, rows=SPEC.rows[1:])
    for name in ("spread", "labels"):
        with pytest.raises(InvalidInputError, match=r"denspu bench run .*small\.toml"):
            draw(name, spec, FAILURES)
