"""The runner: what is recorded is skipped, what fails is told, nothing is lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from denspu.benchmark import read_records
from denspu.benchmark.cells import Cell, cells_of, failed, recorded, spec_hash
from denspu.benchmark.runner import Clock, only_writer, run_spec
from denspu.benchmark.spec import load_spec, parse_spec
from denspu.benchmark.work import Place, encoder_folder, make_data, run_cell
from denspu.exceptions import InvalidParameterError

QUICK = """
title = "quick"
seeds = [10, 11]
metrics = ["f1", "accuracy"]

[[tasks]]
name = "digits"
dataset = "digits"
n_labeled = 0.2

[[tasks]]
name = "a pair of digits"
dataset = "digits"
n_labeled = 30
positive = [0, 1]

[[rows]]
name = "Rocchio"
method = "rocchio_svm"

[[rows]]
name = "Elkan-Noto"
method = "elkan_noto"
"""


@pytest.fixture
def quick(tmp_path):
    path = tmp_path / "quick.toml"
    path.write_text(QUICK)
    return path


def spec_of(*rows, seeds=(10,), shared_encoder=None, **task):
    usual = {"name": "digits", "dataset": "digits", "n_labeled": 0.2}
    table = {
        "title": "t",
        "shared_encoder": shared_encoder or {},
        "seeds": list(seeds),
        "tasks": [{**usual, **task}],
        "rows": list(rows),
    }
    return parse_spec(table, "made")


FAST = {"name": "fast", "method": "elkan_noto"}
OTHER = {"name": "other", "method": "rocchio_svm"}


def run(spec, out, **settings):
    return run_spec(spec, out, device="cpu", verbose=0, **settings)


def figures(path):
    """Return the metrics of each cell."""
    found = recorded(read_records(path))
    return {cell: dict(record.metrics) for cell, record in found.items()}


# --- cells --------------------------------------------------------------------------


def test_cells_come_seed_by_seed(quick):
    cells = cells_of(load_spec(quick))
    assert [c.seed for c in cells] == [10] * 4 + [11] * 4
    assert len({c.id for c in cells}) == 8


def test_a_title_does_not_change_which_run_it_is():
    one, two = spec_of(FAST), spec_of({**FAST, "name": "other", "note": "words"})
    assert cells_of(one)[0].id == cells_of(two)[0].id
    assert spec_hash(one) != spec_hash(two)


@pytest.mark.parametrize(
    "change",
    [
        {"n_labeled": 0.3},
        {"positive": [0, 1]},
        {"keep_positive": 0.5},
        {"scenario": "two-sample"},
        {"mechanism": "sar"},
    ],
)
def test_what_shapes_the_data_changes_which_run_it_is(change):
    assert cells_of(spec_of(FAST))[0].id != cells_of(spec_of(FAST, **change))[0].id


def test_settings_and_seed_change_which_run_it_is():
    other = {**FAST, "parameters": {"variant": "adjusted"}}
    ids = {
        cells_of(spec)[0].id
        for spec in (spec_of(FAST), spec_of(FAST, seeds=(11,)), spec_of(other))
    }
    assert len(ids) == 3


# --- data ---------------------------------------------------------------------------


def test_positives_can_be_made_rarer_in_both_parts():
    [cell] = cells_of(spec_of(FAST, positive=[8], n_labeled=5, keep_positive=0.25))
    pu, benchmark = make_data(cell.task, 10)
    [full] = cells_of(spec_of(FAST, positive=[8], n_labeled=5))
    whole, everything = make_data(full.task, 10)
    assert pu.oracle.labels.sum() == round(whole.oracle.labels.sum() / 4)
    kept = np.sum(benchmark.y_test == 8)
    assert kept == round(np.sum(everything.y_test == 8) / 4)
    assert np.sum(benchmark.y_test != 8) == np.sum(everything.y_test != 8)


def test_a_share_of_the_training_set():
    spec = spec_of(FAST, n_labeled=0.1, share_of="training set")
    pu, benchmark = make_data(spec.tasks[0], 10)
    assert pu.n_labeled == round(0.1 * len(benchmark.X_train))


# --- running ------------------------------------------------------------------------


def test_all_cells_are_run_once_and_then_skipped(quick, tmp_path):
    spec, out = load_spec(quick), tmp_path / "records.jsonl"
    first = run(spec, out)
    assert (first.ran, first.failed, first.skipped, first.left) == (8, 0, 0, 0)
    before = out.read_bytes()
    second = run(spec, out)
    assert (second.ran, second.skipped) == (0, 8)
    assert out.read_bytes() == before
    record = read_records(out)[0]
    assert record.extra["spec"] == "quick"
    assert record.extra["spec_hash"] == spec_hash(spec)
    assert record.extra["task"] == "digits"
    assert record.metrics["f1"] > 0.8


def test_a_cell_that_raises_is_recorded_and_the_rest_goes_on(tmp_path):
    out = tmp_path / "records.jsonl"
    spec = spec_of(OTHER, FAST, n_labeled=1)
    outcome = run(spec, out)
    assert (outcome.ran, outcome.failed) == (2, 2)
    assert "at least 2 are needed" in read_records(out)[0].extra["error"]
    wrong = {**FAST, "parameters": {"variant": "nonsense"}}
    outcome = run(spec_of(wrong, {**FAST, "name": "right"}), out)
    assert (outcome.ran, outcome.failed) == (2, 1)
    wrong, right = read_records(out)[2:]
    assert "'variant' parameter of ElkanNoto" in wrong.extra["error"]
    assert not failed(right)


def test_failures_are_run_again_only_when_asked(tmp_path, monkeypatch):
    out, spec = tmp_path / "records.jsonl", spec_of(FAST)
    with monkeypatch.context() as broken:
        broken.setattr(
            "denspu.benchmark.work.measure",
            lambda *a, **k: (_ for _ in ()).throw(RuntimeError("no memory")),
        )
        assert run(spec, out).failed == 1
    assert run(spec, out).ran == 0
    assert run(spec, out, retry=True).ran == 1
    [cell] = cells_of(spec)
    assert not failed(recorded(read_records(out))[cell.id])
    assert run(spec, out, retry=True).ran == 0


def test_nothing_is_begun_that_would_not_end_in_time(tmp_path):
    out = tmp_path / "records.jsonl"
    spec = spec_of(FAST, seeds=(10, 11, 12))
    run(spec, out, seeds=(10,))
    outcome = run(spec, out, budget=1e-3)
    assert (outcome.ran, outcome.left, outcome.skipped) == (0, 2, 1)


def test_the_clock_judges_by_the_longest_of_the_row():
    clock = Clock(budget=10, began=time.perf_counter() - 5)
    clock.learn("short", 1)
    clock.learn("long", 3)
    clock.learn("long", 8)
    assert clock.allows("short")
    assert not clock.allows("long")
    assert not clock.allows("never seen")


def test_rows_and_seeds_can_be_chosen(quick, tmp_path):
    out = tmp_path / "records.jsonl"
    outcome = run(load_spec(quick), out, seeds=(11,), rows=("Rocchio",))
    assert outcome.ran == 2
    assert {(r.seed, r.variant) for r in read_records(out)} == {(11, "Rocchio")}
    with pytest.raises(InvalidParameterError, match="rows has 'Roccio'"):
        run(load_spec(quick), out, rows=("Roccio",))
    with pytest.raises(InvalidParameterError, match="seeds has 3"):
        run(load_spec(quick), out, seeds=(3,))


def test_two_runs_cannot_write_to_the_same_records(tmp_path):
    out = tmp_path / "records.jsonl"
    with (
        only_writer(out),
        pytest.raises(InvalidParameterError, match="Another run is writing"),
    ):
        run(spec_of(FAST), out)
    assert run(spec_of(FAST), out).ran == 1


def test_processes_give_the_same_figures(quick, tmp_path):
    spec = load_spec(quick)
    run(spec, tmp_path / "one.jsonl")
    outcome = run(spec, tmp_path / "two.jsonl", jobs=2)
    assert outcome.ran == 8
    assert figures(tmp_path / "one.jsonl") == figures(tmp_path / "two.jsonl")


def test_a_process_that_dies_is_told_and_replaced(quick, tmp_path):
    spec, out = load_spec(quick), tmp_path / "records.jsonl"

    def kill_the_others(cell, record):
        for child in () if killed else multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)
            killed.append(child.pid)

    killed: list[int] = []
    outcome = run(spec, out, jobs=2, report=kill_the_others)
    assert outcome.ran == 8
    assert 1 <= outcome.failed <= 2
    errors = [r.extra["error"] for r in read_records(out) if failed(r)]
    assert all("exit code -9" in error for error in errors)
    assert run(spec, out, retry=True).failed == 0


def test_killed_twice_and_resumed_it_equals_one_run(quick, tmp_path):
    """Kill -9 at moments that differ from run to run: no cell is lost or doubled."""
    command = [sys.executable, "-m", "denspu", "bench", "run", str(quick)]
    command += ["--device", "cpu", "--records"]
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    run(load_spec(quick), whole)
    rng = np.random.default_rng()
    for least in (1, 3):
        process = subprocess.Popen(
            [*command, str(cut)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while len(read_records(cut)) < least and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        process.wait()
    with cut.open("ab") as file:  # what a kill in the middle of a write leaves
        file.write(b'{"dataset": "dig')
    kept = len(read_records(cut))
    assert kept < 8
    outcome = run(load_spec(quick), cut)
    assert outcome.ran == 8 - kept
    lines = [json.loads(line) for line in cut.read_text().splitlines()]
    assert len({line["extra"]["cell"] for line in lines}) == len(lines) == 8
    assert figures(cut) == figures(whole)


# --- rows with an oracle, rows that share an encoder ----------------------------------


def test_true_labels_are_for_supervised_rows_alone(tmp_path):
    spec = spec_of(
        {
            "name": "some",
            "method": "supervised",
            "oracle": "negatives",
            "parameters": {"epochs": 30, "network": "mlp"},
        },
        {
            "name": "all",
            "method": "supervised",
            "oracle": "all",
            "parameters": {"epochs": 30, "network": "mlp"},
        },
    )
    some, everything = (run_cell(c, Place("cpu")) for c in cells_of(spec))
    assert not failed(some), some.extra
    assert not failed(everything), everything.extra
    assert everything.metrics["accuracy"] > some.metrics["accuracy"] > 0.7


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_encoder_is_trained_once_for_all_rows_that_share_it(tmp_path, jobs):
    spec = spec_of(
        {**FAST, "encoder": "shared"},
        {**OTHER, "encoder": "shared"},
        positive=[0, 1],
        n_labeled=30,
        keep_positive=0.3,
        shared_encoder={"epochs": 1, "batch_size": 64},
    )
    out, home = tmp_path / "records.jsonl", tmp_path / "encoders"
    outcome = run(spec, out, encoders=home, jobs=jobs)
    assert (outcome.ran, outcome.failed) == (2, 0), [
        r.extra.get("error") for r in read_records(out)
    ]
    cell = cells_of(spec)[0]
    assert list(home.iterdir()) == [encoder_folder(cell, Place("cpu", home))]
    one, two = read_records(out)
    assert one.seconds["shared_encoder"] == two.seconds["shared_encoder"] > 0


def test_other_settings_are_another_encoder():
    plain, long = (
        cells_of(spec_of({**FAST, "encoder": "shared"}, shared_encoder=settings))[0]
        for settings in ({}, {"epochs": 7})
    )
    assert plain.encoder_id != long.encoder_id
    assert plain.id != long.id


def test_a_cell_is_a_task_a_row_and_a_seed():
    spec = spec_of(FAST)
    assert cells_of(spec) == [Cell(spec.tasks[0], spec.rows[0], 10, "last")]


def test_warnings_go_into_the_record(recwarn):
    row = {"name": "flood", "method": "label_propagation"}
    record = run_cell(cells_of(spec_of(row, n_labeled=5))[0], Place("cpu"))
    assert not failed(record)
    [told] = record.extra["warnings"]
    assert told.startswith("DegenerateFitWarning: LabelPropagation calls")
    assert not [w for w in recwarn if w.category.__module__.startswith("denspu")]
