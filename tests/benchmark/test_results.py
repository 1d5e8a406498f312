"""The page of results, the line of each spec, and what is missing."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.benchmark.test_tables import record, records_of

from denspu.benchmark import write_record
from denspu.benchmark.results import NOTHING_MISSING, spec_markdown, status_markdown
from denspu.benchmark.spec import Row, Spec, Task, cells_of, load_spec
from denspu.benchmark.tables import MISSING

HOME = Path(__file__).parents[2] / "benchmarks"


def script(name):
    sys.path.insert(0, str(HOME))
    spec = importlib.util.spec_from_file_location(name, HOME / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(HOME))
    return module


RESULTS = script("results")
glance_markdown, glance_of = RESULTS.glance_markdown, RESULTS.glance_of

# --- the page -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["results", "update_docs"])
def test_docs_agree_with_the_records(name):
    assert not script(name).outdated(), f"run: python benchmarks/{name}.py"


SPEC_FILE = """
title = "{title}"
seeds = [0]
metrics = ["f1"]
[[tasks]]
name = "digits"
dataset = "digits"
n_labeled = 0.2
[[rows]]
name = "one"
method = "elkan_noto"
"""


@pytest.fixture
def folders(tmp_path):
    """Specs of three titles; the first and the third have a record."""
    specs, records = tmp_path / "specs", tmp_path / "records"
    specs.mkdir()
    names = {"first": "The first", "second": "Two", "table9": "Table 9: 1 % of P, a_b"}
    for name, title in names.items():
        path = specs / f"{name}.toml"
        path.write_text(SPEC_FILE.format(title=title), encoding="utf-8")
        [cell] = cells_of(load_spec(path))
        made = record(cell, 0.5)
        if name == "second":  # of another script
            made = replace(made, extra={})
        write_record(made, records / f"{name}.jsonl")
    return specs, records


def test_a_changed_figure_is_noticed_and_drawn_anew(folders, tmp_path, monkeypatch):
    results = script("results")
    monkeypatch.setattr(results, "SPECS", folders[0])
    monkeypatch.setattr(results, "RECORDS", folders[1])
    monkeypatch.setattr(results, "PAGE", tmp_path / "results.md")
    monkeypatch.setattr("sys.argv", ["results.py"])
    results.main()
    assert not results.outdated()
    first, last = (
        tmp_path / "images" / "bench" / f"{name}-spread.svg"
        for name in ("first", "table9")
    )
    assert "![Every seed: The first](images/bench/first-spread.svg)" in (
        results.PAGE.read_text("utf-8")
    )
    kept = last.stat().st_mtime_ns
    lines = folders[1] / "first.jsonl"
    lines.write_text(lines.read_text("utf-8").replace('"f1": 0.5', '"f1": 0.4'))
    monkeypatch.setattr("sys.argv", ["results.py", "--check"])
    with pytest.raises(SystemExit, match=r"results\.md, first-spread\.svg"):
        results.main()
    monkeypatch.setattr("sys.argv", ["results.py"])
    before = first.read_bytes()
    results.main()
    assert not results.outdated()
    assert first.read_bytes() != before
    assert last.stat().st_mtime_ns == kept  # nothing about it changed


def test_numbered_tables_come_first_and_specs_without_a_record_last(folders):
    page = RESULTS.results_page(*folders)
    links = re.findall(r"^\| \[(.*)\]\((#\S+)\) ", page, re.MULTILINE)
    assert links == [
        ("Table 9: 1 % of P", "#table-9-1--of-p-a_b"),
        ("The first", "#the-first"),
    ]
    assert page.index("## Table 9") < page.index("## The first")
    assert "## Two" not in page
    assert page.endswith("Specs without a record so far: `second`.\n")
    for name in ("first", "table9"):
        (folders[1] / f"{name}.jsonl").unlink()
    assert RESULTS.NOTHING in RESULTS.results_page(*folders)


def test_verdicts_come_before_the_tables():
    spec = replace(SPEC, tasks=SPEC.tasks[:1])
    text = spec_markdown(spec, records_of(spec, FIGURES), level=2)
    assert text.startswith("## A \\| small table\n\nours, F1:\n\n- On A: ahead of")
    assert text.index("| far ") < text.index("minus each row") < text.index("- Task: ")
    assert text.endswith("```sh\ndenspu bench run small.toml\n```")
    alone = replace(spec, reference=None)
    assert "minus each row" not in spec_markdown(alone, records_of(spec, FIGURES))


# --- all tables at a glance -----------------------------------------------------------

SPEC = Spec(
    name="small",
    title="A | small table",
    tasks=(Task("A", "digits", 100), Task("B", "digits", 200)),
    rows=(
        Row("far", "nnpu", prior="true", printed={"A": {"f1": 72.5}, "B": {"f1": 90}}),
        Row("near", "pusb", prior="true"),
        Row("ours", "dens_pu", printed={"A": {"roc_auc": 50.0}}),
        Row("late", "upu", prior="true"),
        Row("truth", "supervised", oracle="all", printed={"A": {"f1": 99.0}}),
    ),
    seeds=(0, 1, 2),
    metrics=("f1", "roc_auc"),
    reference="ours",
)
ELSEWHERE = Task("C", "mnist", 100)
FIGURES = {
    ("far", "A"): (0.70, 0.71, 0.72),
    ("far", "B"): (0.70, 0.71, 0.72),
    ("near", "A"): (0.90, 0.91, 0.92),
    ("near", "B"): (0.97, 0.98, 0.99),
    ("ours", "A"): (0.92, 0.90, 0.91),
    ("ours", "B"): (0.901, 0.911, 0.921),
    ("late", "A"): (0.95,),
    ("truth", "A"): (0.99, 0.98, 0.99),
}


def line_of(figures=FIGURES, spec=SPEC, **changes):
    glance = glance_of(spec, records_of(spec, figures, **changes))
    line = glance_markdown([glance], ["#a"]).splitlines()[2].replace("\\|", "/")
    return [word.strip() for word in line.split("|")][1:-1]


def test_the_line_of_a_spec():
    """The best other row has records wherever ours has: late has one task alone."""
    assert line_of() == [
        *("[A / small table](#a)", "22 of 30", "F1", "ours: 91.00 to 91.10"),
        *("near: 91.00 to 98.00", "2 (2)", "1", "1 (1)", "2"),
        "1 of 2; of all metrics 1 of 3",
    ]
    one = line_of({k: v for k, v in FIGURES.items() if k[1] == "A"})
    assert one[3:5] == ["ours: 91.00", "late: 95.00"]
    assert one[-1] == "1 of 1; of all metrics 1 of 2"  # the other has no record yet
    three = line_of({**FIGURES, ("late", "A"): (0.95, 0.96, 0.96)})
    assert three[-2] == "1"
    alone = {("ours", "A"): (0.5,), ("ours", "B"): (0.9,), ("near", "B"): (0.8,)}
    assert line_of(alone)[3:5] == ["ours: 90.00", "near: 80.00"]
    seeing = line_of({k: v for k, v in FIGURES.items() if k[0] in ("ours", "truth")})
    assert seeing[4:-1] == [MISSING, "0", "0", "0", "6"]
    assert line_of({("ours", "A"): (0.9,)}, error="MemoryError: x")[1] == (
        "1 of 30, 1 failed"
    )
    none = line_of(spec=replace(SPEC, reference=None))
    assert none[4:] == [MISSING, *[""] * 4, "1 of 2; of all metrics 1 of 3"]


def test_what_stands_alone_and_not_beside_others_is_counted_apart():
    """4.58 standard errors: to leave out 0 takes 4.30 alone, 9.92 beside four more."""
    close = {**FIGURES, ("far", "A"): (0.90, 0.89, 0.898), ("late", "A"): (0.9,) * 3}
    assert line_of(close)[5] == "2 (1)"
    found = glance_of(SPEC, records_of(SPEC, close))
    assert isinstance(found.verdicts, Counter)
    assert found.verdicts["ahead together"] == 1


def test_titles_are_shortened_where_they_stay_apart():
    titles = ["Table 9: x, 10 labels", "Odd: y, one", "Odd: y, two", "Plain"]
    glances = [glance_of(replace(SPEC, title=title), []) for title in titles]
    lines = glance_markdown(glances, ["#a"] * 4).splitlines()[2:]
    shown = [line.split("]")[0].removeprefix("| [") for line in lines]
    assert shown == ["Table 9: x", "Odd: y, one", "Odd: y, two", "Plain"]


# --- what is missing ------------------------------------------------------------------


def test_the_table_names_what_is_open_and_sums_it_up():
    done = [c for c in cells_of(SPEC) if c.row.name in ("ours", "near")]
    records = [record(c, 0.9) for c in done[1:] if (c.task.name, c.seed) != ("B", 2)]
    records.append(record(done[0], error="MemoryError: x"))
    spec = replace(SPEC, rows=SPEC.rows[1:3], tasks=(SPEC.tasks[0], ELSEWHERE))
    table = status_markdown([(spec, records)])
    lines = [[w.strip() for w in line.split("|")[1:-1]] for line in table.splitlines()]
    assert lines[2:-2] == [
        ["small", "near", "digits", "0 of 3, 1 failed"],
        ["small", "near", "mnist", "3 of 3"],
        ["small", "ours", "mnist", "3 of 3"],
    ]
    assert table.endswith(
        "\n\n6 cells missing. 1 failed; `denspu bench run --retry` runs them again."
    )
    whole = [record(cell, 0.9) for cell in cells_of(spec)]
    assert status_markdown([(spec, whole)]) == NOTHING_MISSING


def test_what_two_specs_ask_for_is_missing_once():
    table = status_markdown([(SPEC, []), (replace(SPEC, name="alike"), [])])
    assert "alike" not in table
    assert table.endswith("30 cells missing.")
