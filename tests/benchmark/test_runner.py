"""The runner: what is recorded is skipped, what fails is told, nothing is lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from denspu import DensPU
from denspu._random import Randomness
from denspu.benchmark import read_records, work, write_record
from denspu.benchmark.cells import Cell, cells_of, failed, recorded, spec_hash
from denspu.benchmark.oracle import Supervised
from denspu.benchmark.runner import run_specs
from denspu.benchmark.schedule import Clock, work_through
from denspu.benchmark.sheets import Sheet, only_writer
from denspu.benchmark.spec_file import load_spec, parse_spec
from denspu.benchmark.work import Place, died, encoder_folder, make_data, run_cell
from denspu.benchmark.workers import (
    PRIORITY,
    THREADS,
    Ended,
    Job,
    Processes,
    environment,
    undisturbed,
)
from denspu.encoders import ContrastiveEncoder
from denspu.exceptions import (
    DataIntegrityError,
    DensPUError,
    DeviceError,
    FewRowsWarning,
    InvalidParameterError,
)
from denspu.methods.elkan_noto import ElkanNoto
from denspu.methods.nnpu import NNPU

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
    return run_specs([(spec, out)], device="cpu", verbose=0, **settings)


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
    words = {"name": "other", "note": "words", "group": "quick", "tuning": "none"}
    one, two = spec_of(FAST), spec_of({**FAST, **words})
    assert cells_of(one)[0].id == cells_of(two)[0].id
    assert spec_hash(one) != spec_hash(two)


def test_a_cut_is_another_run_and_none_the_one_of_before():
    own = cells_of(spec_of({**FAST, "cut": "own"}))[0]
    assert own.id == cells_of(spec_of(FAST))[0].id
    moved = cells_of(spec_of({**FAST, "cut": "true prior"}))[0]
    assert moved.id != own.id
    records = [run_cell(cell, Place("cpu")) for cell in (own, moved)]
    assert [r.extra["cut"] for r in records] == ["own", "true prior"]
    ranking, again = (r.metrics["roc_auc"] for r in records)
    assert ranking == again
    assert records[0].metrics["recall"] != records[1].metrics["recall"]


def test_a_row_may_keep_to_a_cpu(tmp_path):
    """It is another run, wherever the rest is run, and its record is its own."""
    anywhere = cells_of(spec_of({**FAST, "device": "any"}))[0]
    assert anywhere.id == cells_of(spec_of(FAST))[0].id
    cells = cells_of(spec_of({**FAST, "device": "cpu"}, OTHER))
    kept, free = cells
    assert kept.id != anywhere.id
    place = Place("cuda", spec="made", on_gpu=True)
    sheet = Sheet(tmp_path / "r.jsonl", place, cells, cells)
    jobs = sheet.pending(retry=False)
    assert [(j.place.device, j.place.on_gpu) for j in jobs] == [
        ("cpu", False),
        ("cuda", True),
    ]
    sheet.add(jobs[0], run_cell(kept, jobs[0].place))
    [written] = read_records(sheet.out)
    assert written.device.startswith("cpu")
    assert "taken_from" not in written.extra
    [(job, record)] = sheet.done()
    assert (job, record.extra["cell"]) == (jobs[0], kept.id)
    assert [j.cell for j in sheet.pending(retry=False)] == [free]


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
    again, _ = make_data(cell.task, 10)
    assert np.array_equal(pu.X, again.X)
    _, others = make_data(cell.task, 11)  # each seed keeps others
    assert not np.array_equal(benchmark.X_test, others.X_test)


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
    wrong = {"name": "wrong", "method": "nnpu", "prior": "true"}
    wrong["parameters"] = {"network": "vgg16"}  # not on 8×8 images
    outcome = run(spec_of(wrong, FAST), out)
    assert (outcome.ran, outcome.failed) == (2, 1)
    assert "network='vgg16'" in read_records(out)[2].extra["error"]


def failing(monkeypatch, error):
    """Let every cell raise; return how many were tried."""
    tries = []

    def measure(*args, **settings):
        tries.append(1)
        raise error

    monkeypatch.setattr("denspu.benchmark.work.measure", measure)
    return tries


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: device-side assert triggered"),
        torch.AcceleratorError("an illegal memory access was encountered"),
    ],
    ids=["runtime", "accelerator"],
)
def test_after_a_broken_device_no_cell_is_begun(tmp_path, monkeypatch, error):
    out, tries = tmp_path / "records.jsonl", failing(monkeypatch, error)
    spec = spec_of(OTHER, FAST, seeds=(10, 11))
    with pytest.raises(DensPUError, match=r"^other · digits · seed 10 broke.*--jobs 2"):
        run(spec, out)
    [record] = read_records(out)
    assert record.extra["error"] == f"{type(error).__name__}: {error}"
    assert len(tries) == 1
    with pytest.raises(DensPUError, match=r"^fast · digits · seed 10"):
        run(spec, out)  # what is recorded is not tried again
    assert run(spec_of(OTHER), out, retry=True).failed == 1  # the last one may fail


def test_a_full_device_is_no_broken_one(tmp_path, monkeypatch):
    tries = failing(monkeypatch, torch.OutOfMemoryError("CUDA out of memory."))
    outcome = run(spec_of(OTHER, FAST), tmp_path / "records.jsonl")
    assert (outcome.failed, len(tries)) == (2, 2)


def test_an_encoder_can_break_the_device_too(tmp_path, monkeypatch):
    def fit(self, X, y):
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr("denspu.benchmark.work.ContrastiveEncoder.fit", fit)
    out, spec = tmp_path / "r.jsonl", spec_of({**FAST, "encoder": "shared"}, OTHER)
    with pytest.raises(DensPUError, match=r"^fast"):
        run(spec, out, encoders=tmp_path / "encoders")
    assert [r.variant for r in read_records(out)] == ["fast"]


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
    outcome = run(spec, out, budget=1e-3, seeds=(11,))  # judged by seed 10 all the same
    assert (outcome.ran, outcome.left, outcome.skipped) == (0, 1, 0)


class Lasts:
    """A pool whose clock stands still but for the seconds that jobs say they took."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds, self.job, self.begun = clock, seconds, None, []

    def free(self):
        return self.job is None

    def begin(self, job):
        self.job = job
        self.begun.append((job.cell.row.name, job.cell.seed, job.encoder))

    def wait(self):
        job, self.job = self.job, None
        seconds = self.seconds(job)
        self.clock.began -= seconds
        if job.encoder:
            encoder_folder(job.cell, job.place).mkdir(parents=True)
            return [Ended(job, None, seconds)]
        record = replace(died(job.cell, job.place, "", seconds), extra={})
        return [Ended(job, record, seconds)]


def test_what_a_cell_took_in_this_run_tells_of_the_next():
    clock = Clock(100.0)
    pool = Lasts(clock, lambda job: 40.0)
    list(work_through(jobs_of(spec_of(FAST, seeds=(10, 11, 12))), pool, clock))
    assert [seed for _, seed, _ in pool.begun] == [10, 11]


def test_an_encoder_that_would_not_end_in_time_is_not_begun(tmp_path):
    clock = Clock(100.0)
    pool = Lasts(clock, lambda job: 60.0 if job.encoder else 1.0)
    spec = spec_of({**FAST, "encoder": "shared"}, seeds=(10, 11))
    list(work_through(jobs_of(spec, tmp_path), pool, clock))
    assert pool.begun == [("fast", 10, True), ("fast", 10, False)]


def test_a_run_that_raised_does_not_make_the_next_seem_short():
    clock = Clock(100.0)
    clock.pace.learn(jobs_of(spec_of(OTHER))[0], 80.0)
    (job,) = jobs_of(spec_of(FAST))
    assert (
        len(list(work_through([job], Watched(), clock))) == 1
    )  # with an error, at once
    clock.began -= 50
    assert not clock.allows(job)


def test_processes_ignore_ctrl_c_from_their_first_moment_on():
    before = signal.getsignal(signal.SIGINT)
    with undisturbed():
        code = "import signal; print(signal.getsignal(signal.SIGINT))"
        told = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert told.strip() in (str(signal.SIG_IGN), str(int(signal.SIG_IGN)))
    assert signal.getsignal(signal.SIGINT) is before
    with ThreadPoolExecutor(1) as pool:  # where signals cannot be set

        def elsewhere():
            with undisturbed():
                return True

        assert pool.submit(elsewhere).result()


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("budget", -1),
        ("budget", float("nan")),
        ("jobs", 0),
        ("jobs", 2.5),
        ("cell_limit", 0),
        ("cell_limit", -3.0),
    ],
)
def test_limits_that_make_no_sense_are_refused(tmp_path, argument, value):
    out = tmp_path / "records.jsonl"
    with pytest.raises(
        InvalidParameterError, match=f"{argument} must be .* Got {value}"
    ):
        run(spec_of(FAST), out, **{argument: value})
    assert not out.exists()


def test_a_choice_that_no_cell_meets_is_refused(quick, tmp_path):
    rows = ({**FAST, "tasks": ["digits"]}, OTHER)
    table = {
        "title": "t",
        "seeds": [10],
        "tasks": [
            {"name": "digits", "dataset": "digits", "n_labeled": 0.2},
            {"name": "pair", "dataset": "digits", "n_labeled": 30, "positive": [0, 1]},
        ],
        "rows": list(rows),
    }
    spec = parse_spec(table, "made")
    with pytest.raises(
        InvalidParameterError, match=r"rows=\['fast'\], tasks=\['pair'\]"
    ):
        run(spec, tmp_path / "r.jsonl", rows=("fast",), tasks=("pair",))
    with pytest.raises(InvalidParameterError, match="Did you mean 'fast'"):
        run(spec, tmp_path / "r.jsonl", rows=("fats",))


def test_rows_seeds_and_tasks_can_be_chosen(quick, tmp_path):
    out = tmp_path / "records.jsonl"
    outcome = run(load_spec(quick), out, seeds=(11,), rows=("Rocchio",))
    assert outcome.ran == 2
    assert {(r.seed, r.variant) for r in read_records(out)} == {(11, "Rocchio")}
    with pytest.raises(InvalidParameterError, match="rows has 'Roccio'"):
        run(load_spec(quick), out, rows=("Roccio",))
    with pytest.raises(InvalidParameterError, match="seeds has 3"):
        run(load_spec(quick), out, seeds=(3,))
    one = tmp_path / "one.jsonl"
    run(load_spec(quick), one, seeds=(11,), tasks=("a pair of digits",))
    assert {r.extra["task"] for r in read_records(one)} == {"a pair of digits"}
    with pytest.raises(InvalidParameterError, match="tasks has 'pairs'"):
        run(load_spec(quick), one, tasks=("pairs",))


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
    one, two = tmp_path / "one" / "r.jsonl", tmp_path / "two" / "r.jsonl"
    run(spec, one)
    outcome = run(spec, two, jobs=2)
    assert outcome.ran == 8
    assert figures(one) == figures(two)


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
    whole, cut = tmp_path / "whole" / "r.jsonl", tmp_path / "cut" / "r.jsonl"
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
    encoder = work.shared_encoder(cell, Place("cpu", home)).encoder
    for record in (one, two):
        loss = record.extra["shared_encoder_loss"]
        assert loss == encoder.history_.last["loss"] > 0


def test_other_settings_are_another_encoder():
    plain, long = (
        cells_of(spec_of({**FAST, "encoder": "shared"}, shared_encoder=settings))[0]
        for settings in ({}, {"epochs": 7})
    )
    assert plain.encoder_id != long.encoder_id
    assert plain.id != long.id


def test_a_cell_is_a_task_a_row_and_a_seed():
    spec = spec_of(FAST)
    assert cells_of(spec) == [Cell(spec.tasks[0], spec.rows[0], 10)]


def test_warnings_go_into_the_record(recwarn):
    row = {"name": "flood", "method": "label_propagation"}
    record = run_cell(cells_of(spec_of(row, n_labeled=5))[0], Place("cpu"))
    assert not failed(record)
    [told] = record.extra["warnings"]
    assert told.startswith("DegenerateFitWarning: LabelPropagation calls")
    assert not [w for w in recwarn if w.category.__module__.startswith("denspu")]


# --- what methods and encoders are told -----------------------------------------------


class Told(Exception):
    """Ends a run once something has been seen."""


def watch_fit(monkeypatch, cls):
    """Replace ``fit`` by one that remembers whom and what it was given."""
    seen = {}

    def fit(self, X, y, **given):
        seen.update(model=self, X=X, y=np.asarray(y), **given)
        raise Told

    monkeypatch.setattr(cls, "fit", fit)
    return seen


def test_a_method_sees_the_labels_of_p_alone(monkeypatch):
    seen = watch_fit(monkeypatch, ElkanNoto)
    cell = cells_of(spec_of(FAST))[0]
    assert "Told" in run_cell(cell, Place("cpu")).extra["error"]
    pu, _ = make_data(cell.task, 10)
    assert np.array_equal(seen["y"], pu.y)
    assert seen["y"].sum() < pu.oracle.labels.sum()
    assert set(seen) == {"model", "X", "y"}
    assert seen["model"].random_state == 10


def test_the_device_is_awake_before_a_clock_starts(monkeypatch, tmp_path):
    told = []
    monkeypatch.setattr(work, "wake", lambda device: told.append(device))
    monkeypatch.setattr(ContrastiveEncoder, "fit", lambda *_: told.append("encoder"))
    monkeypatch.setattr(ContrastiveEncoder, "save", lambda self, folder: None)
    monkeypatch.setattr(work, "measure", lambda *_, **__: told.append("cell"))
    cell = cells_of(spec_of(FAST))[0]
    work.train_encoder(cell, Place("cpu", tmp_path))
    run_cell(cell, Place("cpu", tmp_path))
    assert told == ["cpu", "encoder", "cpu", "cell"]


def test_an_encoder_sees_the_labels_of_p_alone(monkeypatch, tmp_path):
    seen = watch_fit(monkeypatch, ContrastiveEncoder)
    spec = spec_of({**FAST, "encoder": "shared"}, shared_encoder={"epochs": 3})
    run(spec, tmp_path / "records.jsonl", encoders=tmp_path)
    pu, _ = make_data(spec.tasks[0], 10)
    assert np.array_equal(seen["y"], pu.y)
    assert seen["model"].random_state == Randomness(10).seed("encoder")
    assert seen["model"].epochs == 3


@pytest.mark.parametrize("scenario", ["one-sample", "two-sample"])
def test_prior_and_scenario_are_those_of_the_task(monkeypatch, scenario):
    seen = watch_fit(monkeypatch, NNPU)
    for prior in ("true", "estimate"):
        row = {"name": "nnPU", "method": "nnpu", "prior": prior}
        cell = cells_of(spec_of(row, scenario=scenario))[0]
        run_cell(cell, Place("cpu"))
        pu, _ = make_data(cell.task, 10)
        truth = pu.oracle.labels
        overall = truth.mean() if scenario == "one-sample" else truth[pu.y == 0].mean()
        wanted = pytest.approx(overall) if prior == "true" else "estimate"
        assert seen["model"].prior == wanted
        assert seen["model"].scenario == scenario


@pytest.mark.parametrize("scenario", ["one-sample", "two-sample"])
def test_our_default_may_be_told_the_prior_of_all_rows(monkeypatch, scenario):
    """It takes P and U together, whoever drew them."""
    seen = watch_fit(monkeypatch, DensPU)
    row = {"name": "told", "method": "dens_pu", "prior": "true"}
    cell = cells_of(spec_of(row, scenario=scenario))[0]
    run_cell(cell, Place("cpu"))
    pu, _ = make_data(cell.task, 10)
    rows = np.where(pu.y == 1, True, pu.oracle.labels)
    assert seen["model"].prior == pytest.approx(rows.mean())


@pytest.mark.parametrize("scenario", ["one-sample", "two-sample"])
def test_an_oracle_weighs_classes_as_the_population_has_them(monkeypatch, scenario):
    seen = watch_fit(monkeypatch, Supervised)
    row = {"name": "oracle", "method": "supervised", "oracle": "all"}
    cell = cells_of(spec_of(row, scenario=scenario))[0]
    run_cell(cell, Place("cpu"))
    pu, _ = make_data(cell.task, 10)
    truth = pu.oracle.labels
    overall = truth.mean() if scenario == "one-sample" else truth[pu.y == 0].mean()
    assert seen["model"].prior == pytest.approx(overall)


def test_an_encoder_belongs_to_a_task_and_a_seed():
    row = {**FAST, "encoder": "shared"}
    cells = [
        *cells_of(spec_of(row, seeds=(10, 11))),
        *cells_of(spec_of(row, n_labeled=0.3)),
    ]
    assert len({cell.encoder_id for cell in cells}) == 3
    two = cells_of(spec_of(row, {**OTHER, "encoder": "shared"}))
    assert two[0].encoder_id == two[1].encoder_id


def test_the_supervised_risk_is_weighted_to_the_prior():
    rng = np.random.default_rng(12)
    p, n = rng.normal(size=7), rng.normal(size=9)
    caught = {}

    class Task:
        known_negative = None

        def network(self):
            return torch.nn.Identity()

        def loss(self, risk):
            caught["risk"] = risk

        def batches(self, **given):
            return None

        def train(self, *given, **more):
            return None

    Supervised(prior=0.3)._learn(Task())
    wanted = 0.3 * np.log1p(np.exp(-p)).mean() + 0.7 * np.log1p(np.exp(n)).mean()
    found = caught["risk"](torch.tensor(p), torch.tensor(n))
    assert float(found) == pytest.approx(wanted)


# --- what goes wrong ------------------------------------------------------------------


def test_an_encoder_that_fails_is_tried_once_and_told_in_its_cells(
    tmp_path, monkeypatch
):
    tries = []

    def fit(self, X, y):
        tries.append(1)
        raise RuntimeError("no memory")

    monkeypatch.setattr("denspu.benchmark.work.ContrastiveEncoder.fit", fit)
    spec = spec_of({**FAST, "encoder": "shared"}, {**OTHER, "encoder": "shared"})
    out = tmp_path / "records.jsonl"
    outcome = run(spec, out, encoders=tmp_path / "encoders")
    assert (outcome.ran, outcome.failed, len(tries)) == (2, 2, 1)
    errors = [r.extra["error"] for r in read_records(out)]
    assert errors == ["Its shared encoder failed. RuntimeError: no memory"] * 2


def test_a_shared_encoder_is_the_one_our_default_trains(tmp_path):
    short = {"epochs": 1, "batch_size": 64}
    row = {"name": "ours", "method": "dens_pu", "encoder": "shared"}
    [cell] = cells_of(spec_of(row, shared_encoder=short))
    work.train_encoder(cell, Place("cpu", tmp_path))
    shared, _ = work.shared_encoder(cell, Place("cpu", tmp_path))
    pu, _ = make_data(cell.task, cell.seed)
    own = DensPU(
        encoder=ContrastiveEncoder(**short),
        selector="by_score",
        classifier="logistic",
        device="cpu",
        random_state=cell.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one epoch
        own.fit(pu.X, pu.y)
    X = pu.X[:50]
    assert np.array_equal(shared.transform(X), own.encoder_.transform(X))


def test_warnings_of_an_encoder_reach_every_record(tmp_path, monkeypatch):
    plain = ContrastiveEncoder.fit

    def fit(self, X, y=None):
        warnings.warn("it collapsed", FewRowsWarning, stacklevel=1)
        return plain(self, X, y)

    monkeypatch.setattr("denspu.benchmark.work.ContrastiveEncoder.fit", fit)
    short = {"epochs": 1, "batch_size": 64}
    row = {**FAST, "encoder": "shared"}
    spec = spec_of(row, shared_encoder=short, positive=[0, 1], n_labeled=30)
    out = tmp_path / "records.jsonl"
    run(spec, out, encoders=tmp_path / "encoders")
    [record] = read_records(out)
    assert "shared encoder: FewRowsWarning: it collapsed" in record.extra["warnings"]


@pytest.mark.parametrize(
    ("part", "value", "error"),
    [
        ("extra", {"oracle": {"purity": float("nan")}}, None),
        ("estimates", {"prior": np.float32(0.5), "interval": np.ones(2)}, None),
        ("metrics", {"f1": float("nan")}, "f1 is nan"),
    ],
)
def test_odd_figures_do_not_end_the_run(tmp_path, monkeypatch, part, value, error):
    plain = work.measure

    def measure(*given, **more):
        return replace(plain(*given, **more), **{part: value})

    monkeypatch.setattr(work, "measure", measure)
    out = tmp_path / "records.jsonl"
    assert run(spec_of(FAST, OTHER), out).ran == 2
    record = read_records(out)[0]
    assert failed(record) == (error is not None)
    assert (error or "") in record.extra.get("error", "")
    if part == "estimates":
        assert record.estimates == {"prior": 0.5, "interval": [1.0, 1.0]}
    if part == "extra":
        assert record.extra["oracle"] == {"purity": None}


def test_what_would_make_every_cell_fail_is_an_error_at_once(tmp_path, monkeypatch):
    out = tmp_path / "records.jsonl"
    with pytest.raises(DeviceError):
        run_specs([(spec_of(FAST), out)], device="cuda:77", verbose=0)
    monkeypatch.setattr(
        "denspu.benchmark.runner.loaded", lambda name: (_ for _ in ()).throw(Told(name))
    )
    with pytest.raises(Told, match="digits"):
        run(spec_of(FAST), out)
    assert read_records(out) == []


def test_a_cell_that_takes_too_long_is_ended(tmp_path):
    slow = {"name": "slow", "method": "nnpu", "prior": "true"}
    slow["parameters"] = {"epochs": 1_000_000}
    out = tmp_path / "records.jsonl"
    outcome = run(spec_of(slow), out, cell_limit=8.0)
    assert (outcome.ran, outcome.failed) == (1, 1)
    assert "more than the 8 s a cell may take" in read_records(out)[0].extra["error"]


def test_a_script_without_a_guard_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from denspu.benchmark.runner import run_specs\n"
        "from denspu.benchmark.spec_file import load_spec\n"
        f"run_specs([(load_spec({str(tmp_path / 'quick.toml')!r}), "
        f"{str(tmp_path / 'records.jsonl')!r})], device='cpu', jobs=2, verbose=0)\n"
    )
    (tmp_path / "quick.toml").write_text(QUICK)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120
    )
    assert "must do so under if __name__" in done.stderr
    assert read_records(tmp_path / "records.jsonl") == []


def test_no_worker_outlives_a_run_that_is_killed(tmp_path):
    slow = QUICK + "[rows.parameters]\nfolds = 100\n"
    (tmp_path / "slow.toml").write_text(slow)
    words = ["bench", "run", str(tmp_path / "slow.toml"), "--device", "cpu", "--jobs"]
    process = subprocess.Popen(
        [sys.executable, "-m", "denspu", *words, "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.time() + 60
    while len(workers := children_of(process.pid)) < 2 and time.time() < deadline:
        time.sleep(0.1)
    assert len(workers) >= 2
    time.sleep(3)
    process.kill()
    process.wait()
    while any(alive(pid) for pid in workers) and time.time() < deadline:
        time.sleep(0.1)
    assert not any(alive(pid) for pid in workers)


def children_of(pid):
    """Return the workers that a process has spawned."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            words = (folder / "cmdline").read_text()
        except OSError:
            continue
        if int(parent) == pid and "spawn_main" in words:
            found.append(int(folder.name))
    return found


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# --- records of other specs -----------------------------------------------------------


def test_the_same_cell_of_another_spec_is_taken_over(tmp_path):
    first = spec_of(FAST)
    run(first, tmp_path / "first.jsonl")
    second = replace(spec_of({**FAST, "name": "the same"}, OTHER), name="second")
    outcome = run(second, tmp_path / "second.jsonl")
    assert (outcome.ran, outcome.skipped) == (1, 1)
    taken = read_records(tmp_path / "second.jsonl")[0]
    assert taken.extra["taken_from"] == "made"
    assert taken.extra["spec"] == "second"
    assert taken.variant == "the same"
    assert taken.metrics == read_records(tmp_path / "first.jsonl")[0].metrics
    assert run(second, tmp_path / "second.jsonl").ran == 0


def test_a_record_that_is_taken_over_keeps_how_many_ran_at_once(tmp_path):
    [cell] = cells_of(spec_of(FAST))
    found = run_cell(cell, Place("cpu", spec="made", jobs=4))
    place = Place("cpu", spec="two", jobs=2)
    sheet = Sheet(tmp_path / "r.jsonl", place, [cell], [cell])
    sheet.take(cell, found)
    [taken] = read_records(sheet.out)
    assert (taken.extra["jobs"], taken.extra["taken_from"]) == (4, "made")


def test_nothing_is_taken_over_where_that_is_not_wanted(tmp_path):
    run(spec_of(FAST), tmp_path / "first.jsonl")
    second = replace(spec_of(FAST), name="second")
    outcome = run(second, tmp_path / "second.jsonl", borrowing=False)
    assert (outcome.ran, outcome.skipped) == (1, 0)


def test_files_of_other_things_beside_the_records_are_left_alone(tmp_path):
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    run(spec_of(FAST), tmp_path / "first.jsonl")
    second = replace(spec_of(FAST), name="second")
    assert run(second, tmp_path / "second.jsonl").skipped == 1
    assert (tmp_path / "other.jsonl").read_text("utf-8") == '{"a": 1}\n'


def test_records_that_cannot_be_written_are_refused_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    for out in (tmp_path, tmp_path / "file" / "r.jsonl"):
        with pytest.raises(InvalidParameterError, match="Records cannot be written to"):
            run(spec_of(FAST), out)


def test_a_success_stays_whatever_comes_after(tmp_path):
    [cell] = cells_of(spec_of(FAST))
    good = run_cell(cell, Place("cpu"))
    bad = died(cell, Place("cpu"), "told", 0.0)
    assert recorded([bad, good, bad])[cell.id] is good
    assert recorded([bad, replace(bad, seed=5)])[cell.id].seed == 5


def test_a_cell_without_its_seconds_is_named():
    [cell] = cells_of(spec_of(FAST))
    bad = replace(died(cell, Place("cpu"), "told", 0.0), seconds={})
    with pytest.raises(DataIntegrityError, match=rf"cell {cell.id} \(fast, seed 10\)"):
        recorded([bad])


@pytest.mark.parametrize("text", ['{"fit": 1', "{}", None])
def test_a_damaged_encoder_fails_its_cells_and_no_others(tmp_path, text):
    spec = spec_of({**FAST, "encoder": "shared"}, OTHER)
    folder = encoder_folder(cells_of(spec)[0], Place(encoders=tmp_path / "encoders"))
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "about.json").write_text(text, encoding="utf-8")
    outcome = run(spec, tmp_path / "r.jsonl", encoders=tmp_path / "encoders")
    assert (outcome.ran, outcome.failed) == (2, 1)
    errors = {
        r.variant: r.extra.get("error") for r in read_records(tmp_path / "r.jsonl")
    }
    assert str(folder) in errors["fast"]
    assert errors["other"] is None


def test_failures_of_before_are_counted(tmp_path):
    out = tmp_path / "records.jsonl"
    spec = spec_of(FAST, OTHER, n_labeled=1)
    assert run(spec, out).failed == 2
    again = run(spec, out)
    assert (again.ran, again.failed, again.failed_before) == (0, 0, 2)
    retried = run(spec, out, retry=True)
    assert (retried.ran, retried.failed, retried.failed_before) == (2, 2, 0)


def jobs_of(spec, encoders="encoders", on_gpu=True):
    """Return the jobs of a spec, laid out as on a GPU."""
    place = Place("cpu", Path(encoders), spec.name, on_gpu=on_gpu)
    return [Job(cell, place) for cell in cells_of(spec)]


class Watched:
    """A pool of three that ends its oldest job, and remembers what ran beside what."""

    def __init__(self):
        self.busy, self.beside, self.order = [], {}, []

    def free(self):
        return len(self.busy) < 3

    def begin(self, job):
        self.order.append(job.cell.row.name)
        self.busy.append(job)
        for one in self.busy:
            self.beside.setdefault(one.cell.row.name, set()).update(
                other.cell.row.name for other in self.busy if other is not one
            )

    def wait(self):
        job = self.busy.pop(0)
        return [Ended(job, died(job.cell, Place("cpu"), "told", 0.0), 0.0)]


def test_a_cell_bound_by_seconds_runs_alone():
    spec = spec_of(
        FAST,
        {**TIMED, "name": "bound"},
        OTHER,
        {"name": "third", "method": "spy"},
        {"method": "nnpu", "name": "bound too", "prior": "estimate",
         "parameters": {"max_seconds": 5}},
    )  # fmt: skip
    pool = Watched()
    ended = list(work_through(jobs_of(spec), pool, Clock(1e9)))
    assert len(ended) == 5
    assert pool.beside["bound"] == pool.beside["bound too"] == set()
    assert pool.beside["fast"] == {"other", "third"}
    assert pool.order == ["fast", "other", "third", "bound", "bound too"]
    first = Watched()
    turned = replace(spec, rows=spec.rows[::-1])
    list(work_through(jobs_of(turned), first, Clock(1e9)))
    assert first.beside["bound"] == first.beside["bound too"] == set()
    assert first.order[0] == "bound too"


HEAVY = {"method": "spy", "heavy": True}
TIMED = {"name": "timed", "method": "dens_pu", "parameters": {"max_seconds": 5}}


def test_of_heavy_cells_one_runs_at_a_time_beside_light_ones():
    spec = spec_of(
        FAST,
        OTHER,
        {**HEAVY, "name": "heavy"},
        {**HEAVY, "name": "heavy too", "parameters": {"spy_share": 0.2}},
        {"name": "light", "method": "ncpu"},
    )
    pool = Watched()
    assert len(list(work_through(jobs_of(spec), pool, Clock(1e9)))) == 5
    assert "heavy too" not in pool.beside["heavy"]
    assert pool.beside["heavy"] == {"fast", "other", "light"}
    assert pool.order == ["fast", "heavy", "other", "light", "heavy too"]


def test_on_a_cpu_no_cell_is_heavy():
    rows = [{**HEAVY, "name": "heavy"}, {**OTHER, "heavy": True}]
    pool = Watched()
    list(work_through(jobs_of(spec_of(*rows), on_gpu=False), pool, Clock(1e9)))
    assert pool.beside["heavy"] == {"other"}


class OneByOne(Watched):
    """A pool of one."""

    def free(self):
        return not self.busy


def test_one_at_a_time_cells_keep_their_order():
    rows = FAST, {**HEAVY, "name": "heavy"}, OTHER
    pool = OneByOne()
    list(work_through(jobs_of(spec_of(*rows, seeds=(10, 11))), pool, Clock(1e9)))
    assert pool.order == ["fast", "heavy", "other"] * 2


class Trains(Watched):
    """A pool that makes the folder of an encoder and remembers the jobs as begun."""

    def __init__(self):
        super().__init__()
        self.begun = []

    def begin(self, job):
        assert not (job.heavy and any(one.heavy for one in self.busy))
        self.begun.append((job.cell.row.name, job.cell.seed, job.encoder))
        super().begin(job)

    def wait(self):
        job = self.busy[0]
        [ended] = super().wait()
        if not job.encoder:
            return [ended]
        encoder_folder(job.cell, job.place).mkdir(parents=True)
        return [Ended(job, None, 0.0)]


def test_an_encoder_is_not_trained_twice_at_once(tmp_path):
    rows = {**FAST, "encoder": "shared"}, {**OTHER, "encoder": "shared"}
    pool = Trains()
    jobs = jobs_of(spec_of(*rows, seeds=(10, 11)), tmp_path, on_gpu=False)
    assert len(list(work_through(jobs, pool, Clock(1e9)))) == 4
    assert pool.begun[:2] == [("fast", 10, True), ("fast", 11, True)]
    assert sum(encoder for *_, encoder in pool.begun) == 2


def test_encoders_are_trained_one_at_a_time_beside_light_cells(tmp_path):
    shared = {**FAST, "encoder": "shared"}
    spec = spec_of(OTHER, shared, seeds=(10, 11))
    pool = Trains()
    ended = list(work_through(jobs_of(spec, tmp_path), pool, Clock(1e9)))
    assert len(ended) == 4
    assert pool.begun == [
        ("other", 10, False),
        ("fast", 10, True),
        ("other", 11, False),
        ("fast", 11, True),
        ("fast", 10, False),
        ("fast", 11, False),
    ]


def test_a_short_encoder_does_not_wait_for_the_time_of_a_long_one(tmp_path):
    shared = spec_of({**FAST, "encoder": "shared"})
    clock = Clock(100.0)
    jobs = {}
    for settings, seconds in (({}, 500.0), ({"max_seconds": 5}, 5.0)):
        (job,) = jobs_of(replace(shared, shared_encoder=settings), tmp_path)
        jobs[seconds] = replace(job, encoder=True)
        clock.pace.learn(jobs[seconds], seconds)
    assert clock.allows(jobs[5.0])
    assert not clock.allows(jobs[500.0])


@pytest.mark.parametrize(
    ("settings", "others"), [({"max_seconds": 5}, set()), ({"epochs": 2}, {"other"})]
)
def test_an_encoder_bound_by_seconds_is_trained_alone(tmp_path, settings, others):
    spec = spec_of(OTHER, {**FAST, "encoder": "shared"})
    spec = replace(spec, shared_encoder=settings)
    pool = Trains()
    assert len(list(work_through(jobs_of(spec, tmp_path), pool, Clock(1e9)))) == 2
    assert pool.beside["fast"] == others


def test_an_encoder_that_fails_fails_its_own_cells_alone(tmp_path):
    class Breaks(Trains):
        def wait(self):
            job = self.busy[0]
            if job.encoder and job.cell.seed == 10:
                self.busy.pop(0)
                return [Ended(job, None, 0.0, "no memory")]
            return super().wait()

    shared = {**FAST, "encoder": "shared"}
    one, two = spec_of(shared, seeds=(10, 11)), spec_of({**OTHER, "encoder": "shared"})
    jobs = [*jobs_of(one, tmp_path), *jobs_of(replace(two, name="two"), tmp_path)]
    found = {
        (job.cell.row.name, job.cell.seed): record
        for job, record in work_through(jobs, Breaks(), Clock(1e9))
    }
    told = {where: record.extra["error"] for where, record in found.items()}
    broken = "Its shared encoder failed. no memory"
    assert told == {("fast", 10): broken, ("other", 10): broken, ("fast", 11): "told"}
    assert found["other", 10].extra["spec"] == "two"


class Started:
    """In place of a process that is begun: what it found around it."""

    def __init__(self, **settings):
        self.alive = True

    def start(self):
        self.found = {name: os.environ.get(name) for name in (THREADS, PRIORITY)}

    def is_alive(self):
        return self.alive

    def kill(self):
        self.alive = False

    def join(self):
        pass


class Line:
    """In place of a pipe."""

    def send(self, job):
        pass

    def close(self):
        pass


def processes(monkeypatch, count):
    monkeypatch.delenv(THREADS, raising=False)
    monkeypatch.delenv(PRIORITY, raising=False)
    monkeypatch.setattr("denspu.benchmark.workers.n_threads", lambda given: 8)
    pool = Processes(count)
    pool.context = SimpleNamespace(Process=Started, Pipe=lambda: (Line(), Line()))
    return pool


def worker_for(pool, job):
    pool.begin(job)
    return pool.busy.pop()


def test_heavy_and_light_jobs_have_workers_of_their_own(monkeypatch):
    """One that has compiled its steps may use them again; kernels know their rank."""
    pool = processes(monkeypatch, 4)
    light, heavy = jobs_of(spec_of(FAST, {**HEAVY, "name": "heavy"}))
    first, strong = worker_for(pool, light), worker_for(pool, heavy)
    assert first.process.found == {THREADS: "2", PRIORITY: "1"}
    assert strong.process.found == {THREADS: "2", PRIORITY: None}
    for waiting in ([first, strong], [strong, first]):
        for job, expected in ((light, first), (heavy, strong)):
            pool.idle = list(waiting)
            assert worker_for(pool, job) is expected
            assert len(pool.idle) == 1
    pool.idle = [first]
    assert worker_for(pool, heavy) not in (first, strong)
    assert pool.idle == [first]


def test_a_job_under_max_seconds_has_all_cores(monkeypatch):
    """No other runs beside it; what it gets done must not depend on ``jobs``."""
    pool = processes(monkeypatch, 4)
    [light, timed] = jobs_of(spec_of(FAST, TIMED), on_gpu=False)
    found = worker_for(pool, timed)
    assert found.process.found[THREADS] == "8"
    pool.idle = [found]
    assert worker_for(pool, light).process.found[THREADS] == "2"
    assert worker_for(pool, timed) is found


def test_a_worker_that_died_waiting_is_replaced(monkeypatch):
    pool = processes(monkeypatch, 4)
    [job] = jobs_of(spec_of(FAST))
    gone = worker_for(pool, job)
    gone.process.kill()
    pool.idle = [gone]
    assert worker_for(pool, job) is not gone
    assert not pool.idle


def test_on_a_cpu_no_worker_has_a_rank(monkeypatch):
    pool = processes(monkeypatch, 4)
    [job] = jobs_of(spec_of(FAST), on_gpu=False)
    assert worker_for(pool, job).process.found[PRIORITY] is None


# --- several specs in one run ---------------------------------------------------------


def test_several_specs_run_as_one(tmp_path):
    one = spec_of(FAST, OTHER)
    spy = {"name": "spy", "method": "spy"}
    two = replace(spec_of({**FAST, "name": "the same"}, spy), name="two")
    outs = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    specs = list(zip((one, two), outs, strict=True))
    seen = []
    outcome = run_specs(
        specs,
        device="cpu",
        verbose=0,
        report=lambda cell, record: seen.append(cell.title),
    )
    assert (outcome.ran, outcome.skipped, outcome.left) == (3, 0, 0)
    assert seen == [f"{name} · digits · seed 10" for name in ("fast", "other", "spy")]
    assert [r.variant for r in read_records(outs[0])] == ["fast", "other"]
    taken, own = read_records(outs[1])
    assert (taken.variant, own.variant) == ("the same", "spy")
    assert taken.metrics == read_records(outs[0])[0].metrics
    assert (taken.extra["spec"], taken.extra["taken_from"]) == ("two", "made")
    assert (own.extra["spec"], own.extra["spec_hash"]) == ("two", spec_hash(two))
    again = run_specs(specs, device="cpu", verbose=0)
    assert (again.ran, again.skipped) == (0, 3)  # runs, not lines of records
    assert [len(read_records(out)) for out in outs] == [2, 2]


def test_a_run_that_three_specs_ask_for_is_in_all_their_records(tmp_path):
    specs = [
        (replace(spec_of(FAST), name=name), tmp_path / f"{name}.jsonl")
        for name in ("one", "two", "three")
    ]
    outcome = run_specs(specs, device="cpu", verbose=0, jobs=2)
    assert (outcome.ran, outcome.left) == (1, 0)
    for spec, out in specs:
        [record] = read_records(out)
        assert (record.extra["spec"], record.extra["jobs"]) == (spec.name, 2)


def test_a_success_makes_good_the_failure_of_another_spec(tmp_path):
    one, two = spec_of(FAST), replace(spec_of(FAST), name="two")
    cell, outs = cells_of(one)[0], [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    write_record(died(cell, Place("cpu", spec="made"), "broken", 0.0), outs[0])
    specs = list(zip((one, two), outs, strict=True))
    outcome = run_specs(specs, device="cpu", verbose=0)
    assert (outcome.ran, outcome.failed, outcome.failed_before) == (1, 0, 0)
    for out in outs:
        assert not failed(recorded(read_records(out))[cell.id])


def test_a_failure_is_told_in_all_specs_and_counted_once(tmp_path):
    few = {"n_labeled": 1}
    one, two = spec_of(FAST, **few), replace(spec_of(FAST, **few), name="two")
    specs = [(one, tmp_path / "one.jsonl"), (two, tmp_path / "two.jsonl")]
    first = run_specs(specs, device="cpu", verbose=0)
    assert (first.ran, first.failed) == (1, 1)
    again = run_specs(specs, device="cpu", verbose=0)
    assert (again.ran, again.skipped, again.failed_before) == (0, 1, 1)
    retried = run_specs(specs, device="cpu", verbose=0, retry=True)
    assert (retried.ran, retried.failed, retried.failed_before) == (1, 1, 0)
    assert len(read_records(specs[1][1])) == 1  # no news there


def test_each_spec_of_a_run_takes_over_what_others_have(tmp_path):
    run(spec_of(FAST), tmp_path / "there.jsonl")
    spy = {"name": "spy", "method": "spy"}
    one, two = (
        replace(spec_of(row), name=name) for name, row in (("a", spy), ("b", FAST))
    )
    specs = [(one, tmp_path / "a.jsonl"), (two, tmp_path / "b.jsonl")]
    outcome = run_specs(specs, device="cpu", verbose=0)
    assert (outcome.ran, outcome.skipped) == (1, 1)


def test_one_file_for_two_specs_is_refused(tmp_path):
    spec, out = spec_of(FAST), tmp_path / "r.jsonl"
    with pytest.raises(InvalidParameterError, match="records of made and of made"):
        run_specs([(spec, out), (spec, tmp_path / "." / "r.jsonl")], device="cpu")
    assert not out.exists()


def test_rows_are_chosen_in_the_specs_that_have_them(tmp_path):
    two = replace(spec_of({"name": "spy", "method": "spy"}), name="two")
    specs = [(spec_of(FAST), tmp_path / "1.jsonl"), (two, tmp_path / "2.jsonl")]
    outcome = run_specs(specs, device="cpu", verbose=0, rows=("spy",))
    assert (outcome.ran, outcome.skipped) == (1, 0)
    with pytest.raises(
        InvalidParameterError, match=r"made and two have not.*fast, spy"
    ):
        run_specs(specs, device="cpu", verbose=0, rows=("spi",))


def test_an_encoder_that_sees_no_label_serves_any_labels(tmp_path):
    row = {**FAST, "encoder": "shared"}
    blind = {"positive_weight": 0, "epochs": 1, "batch_size": 64}

    def cell(n, settings, **task):
        return cells_of(spec_of(row, n_labeled=n, shared_encoder=settings, **task))[0]

    few, many = cell(20, blind), cell(60, blind)
    assert few.encoder_id == many.encoder_id
    assert few.id != many.id
    seeing = {**blind, "positive_weight": 0.5}
    assert cell(20, seeing).encoder_id != cell(60, seeing).encoder_id
    biased = cell(20, blind, mechanism="sar")
    share = cell(0.2, blind, share_of="training set")
    assert biased.encoder_id == share.encoder_id == few.encoder_id
    others = cell(20, blind, positive=[0, 1])
    assert others.encoder_id == few.encoder_id
    assert cell(20, seeing, positive=[0, 1]).encoder_id != cell(20, seeing).encoder_id
    rare = cell(20, blind, keep_positive=0.5)
    also_rare = cell(20, blind, keep_positive=0.5, positive=[0, 1])
    assert len({few.encoder_id, rare.encoder_id, also_rare.encoder_id}) == 3
    copies = {"scenario": "two-sample"}  # here P is put before U
    assert cell(20, blind, **copies).encoder_id != cell(60, blind, **copies).encoder_id
    made = []
    for number, one in enumerate((few, many, others)):
        place = Place("cpu", tmp_path / str(number))
        work.train_encoder(one, place)
        made.append(work.shared_encoder(one, place)[0])
    X = make_data(few.task, 10)[0].X[:50]
    for encoder in made[1:]:
        assert np.array_equal(made[0].transform(X), encoder.transform(X))


def test_what_failed_here_is_taken_from_where_it_went_well(tmp_path):
    spec = spec_of(FAST)
    cell = cells_of(spec)[0]
    write_record(died(cell, Place("cpu"), "broken", 0.0), tmp_path / "here.jsonl")
    run(spec, tmp_path / "there.jsonl")
    assert run(spec, tmp_path / "here.jsonl").ran == 0
    assert not failed(recorded(read_records(tmp_path / "here.jsonl"))[cell.id])


@pytest.mark.parametrize(("set_before", "seen"), [(None, "2"), ("7", "7")])
def test_what_the_user_has_set_stays(monkeypatch, set_before, seen):
    monkeypatch.delenv(THREADS, raising=False)
    if set_before:
        monkeypatch.setenv(THREADS, set_before)
    with environment({THREADS: "2"}):
        assert os.environ[THREADS] == seen
    assert os.environ.get(THREADS) == set_before
