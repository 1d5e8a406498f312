"""The default's rows of the specs are the runs of benchmarks/recipe.py."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from denspu.benchmark import read_records
from denspu.benchmark.cells import cells_of, recorded
from denspu.benchmark.spec_file import load_spec

HERE = Path(__file__).parents[2] / "benchmarks"
OURS = "Dens-PU, our default"


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("recipe", HERE / "recipe.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["recipe"] = module
    spec.loader.exec_module(module)
    return module


def cells(name):
    return cells_of(load_spec(HERE / "specs" / f"{name}.toml"))


@pytest.fixture(scope="module")
def runs():
    found = read_records(HERE / "records" / "recipe.jsonl")
    return {(r.dataset, r.seed): r for r in found if r.variant == "default"}


@pytest.mark.parametrize(
    ("name", "task"),
    [("table2-cifar10", "cifar10"), ("table2-fmnist", "fashion-mnist")],
)
def test_tables_show_what_the_script_recorded(name, task, runs):
    theirs = recorded(read_records(HERE / "records" / "specs" / f"{name}.jsonl"))
    own = [cell for cell in cells(name) if cell.row.name == OURS]
    assert len(own) == 5
    for cell in own:
        record = theirs[cell.id]
        assert record.metrics == runs[task, cell.seed].metrics
        assert record.commit == runs[task, cell.seed].commit
        assert record.extra["taken_from"] == "recipe"


def test_only_the_same_run_is_handed_over(recipe, runs):
    run = runs["cifar10", 0]
    same = [cell for cell in cells("table2-cifar10") if recipe.same_run(run, cell)]
    [cell] = same
    assert (cell.row.name, cell.seed) == (OURS, 0)
    task, row = cell.task, cell.row
    others = [
        replace(cell, seed=1),
        replace(cell, task=replace(task, n_labeled=500)),
        replace(cell, task=replace(task, positive=(0, 1))),
        replace(cell, task=replace(task, dataset="fashion-mnist")),
        replace(cell, task=replace(task, mechanism="sar")),
        replace(cell, task=replace(task, scenario="two-sample")),
        replace(cell, task=replace(task, keep_positive=0.5)),
        replace(cell, row=replace(row, prior="true")),
        replace(cell, row=replace(row, encoder="shared")),
        replace(cell, row=replace(row, parameters={"max_seconds": 60})),
        replace(cell, row=replace(row, method="nnpu")),
    ]
    assert not any(recipe.same_run(run, other) for other in others)
    assert not recipe.same_run(replace(run, variant="labels: 1000 labelled"), cell)


def test_records_are_handed_over_once(recipe, runs, tmp_path, monkeypatch):
    specs = tmp_path / "specs"
    specs.mkdir()
    text = (HERE / "specs" / "table2-cifar10.toml").read_text("utf-8")
    (specs / "table2-cifar10.toml").write_text(text, "utf-8")
    monkeypatch.setattr(recipe, "SPECS", specs)
    monkeypatch.setattr(recipe, "CELLS", tmp_path)
    for _ in range(2):
        recipe.hand_over(HERE / "records" / "recipe.jsonl")
    found = read_records(tmp_path / "table2-cifar10.jsonl")
    assert sorted(r.seed for r in found) == [0, 1, 2, 3, 4]
    assert {r.variant for r in found} == {OURS}
    assert found[0].seconds == runs["cifar10", found[0].seed].seconds
