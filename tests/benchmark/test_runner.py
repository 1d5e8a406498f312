"""The runner: what is recorded is skipped, what fails is told, nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from denspu import DensPU, load
from denspu._random import Randomness
from denspu.benchmark import read_records, runner, work, write_record
from denspu.benchmark.record import failed, recorded
from denspu.benchmark.runner import run_specs, work_through
from denspu.benchmark.spec import cells_of, load_spec, parse_spec, spec_hash
from denspu.benchmark.work import (
    Job,
    Place,
    Supervised,
    do,
    make_data,
    without_figures,
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

FAST = {"name": "fast", "method": "elkan_noto"}
OTHER = {"name": "other", "method": "rocchio_svm"}
SHARES = {**FAST, "encoder": "shared"}
SHORT = {"epochs": 1, "batch_size": 64}


def spec_of(*rows, seeds=(10,), shared_encoder=None, name="made", **task):
    usual = {"name": "digits", "dataset": "digits", "n_labeled": 0.2}
    table = {
        "title": "t",
        "shared_encoder": shared_encoder or {},
        "seeds": list(seeds),
        "tasks": [{**usual, **task}],
        "rows": list(rows),
    }
    return parse_spec(table, name)


def run(spec, out, **settings):
    specs = spec if isinstance(spec, list) else [(spec, out)]
    return run_specs(specs, device="cpu", verbose=0, **settings)


def figures(path):
    """Return the metrics of each cell."""
    found = recorded(read_records(path))
    return {cell: dict(record.metrics) for cell, record in found.items()}


# --- data -----------------------------------------------------------------------------


def test_positives_can_be_made_rarer_in_both_parts():
    [cell] = cells_of(spec_of(FAST, positive=[8], n_labeled=5, keep_positive=0.25))
    pu, benchmark = make_data(cell.task, 10)
    [full] = cells_of(spec_of(FAST, positive=[8], n_labeled=5))
    whole, everything = make_data(full.task, 10)
    assert pu.oracle.labels.sum() == round(whole.oracle.labels.sum() / 4)
    kept = np.sum(benchmark.y_test == 8)
    assert kept == round(np.sum(everything.y_test == 8) / 4)
    assert np.sum(benchmark.y_test != 8) == np.sum(everything.y_test != 8)
    _, others = make_data(cell.task, 11)  # each seed keeps others
    assert not np.array_equal(benchmark.X_test, others.X_test)
    spec = spec_of(FAST, n_labeled=0.1, share_of="training set")
    pu, benchmark = make_data(spec.tasks[0], 10)
    assert pu.n_labeled == round(0.1 * len(benchmark.X_train))


# --- running, in this process ---------------------------------------------------------


def test_cells_are_run_once_and_then_skipped(tmp_path):
    spec, out = spec_of(FAST, OTHER, seeds=(10, 11)), tmp_path / "records.jsonl"
    part = run(spec, out, seeds=(11,), rows=("other",), tasks=("digits",))
    assert (part.ran, part.failed, part.skipped, part.left) == (1, 0, 0, 0)
    assert run(spec, out).ran == 3
    before = out.read_bytes()
    again = run(spec, out)
    assert (again.ran, again.skipped) == (0, 4)
    assert out.read_bytes() == before
    first = read_records(out)[0]
    assert (first.variant, first.seed) == ("other", 11)
    assert first.extra["spec_hash"] == spec_hash(spec)
    assert first.metrics["f1"] > 0.8


def test_choices_and_limits_that_make_no_sense_are_refused(tmp_path):
    out = tmp_path / "records.jsonl"
    spec = spec_of({**FAST, "seeds": [10]}, OTHER, seeds=(10, 11))
    for given, words in (
        ({"rows": ("fats",)}, "Did you mean 'fast'"),
        ({"seeds": (3,)}, "seeds has 3"),
        ({"tasks": ("pairs",)}, "tasks has 'pairs'"),
        ({"budget": float("nan")}, "budget must be"),
        ({"jobs": 0}, "jobs must be"),
        ({"cell_limit": 0}, "cell_limit must be"),
    ):
        with pytest.raises(InvalidParameterError, match=words):
            run(spec, out, **given)
    with pytest.raises(InvalidParameterError, match="more than one spec"):
        run([(spec, out), (spec, tmp_path / "." / "records.jsonl")], None)
    with pytest.raises(DeviceError):
        run_specs([(spec, out)], device="cuda:77", verbose=0)
    assert not out.exists()
    with pytest.raises(InvalidParameterError, match="Records cannot be written to"):
        run(spec, tmp_path)
    with (
        runner._only_writer(out),
        pytest.raises(InvalidParameterError, match="Another run"),
    ):
        run(spec, out)


def failing(monkeypatch, error):
    """Let every cell raise; return how many were tried."""
    tries = []

    def measure(*args, **settings):
        tries.append(1)
        raise error

    monkeypatch.setattr(work, "measure", measure)
    return tries


def test_a_cell_that_raises_is_recorded_and_run_again_when_asked(tmp_path, monkeypatch):
    out, spec = tmp_path / "records.jsonl", spec_of(FAST, OTHER)
    with monkeypatch.context() as broken:
        tries = failing(broken, torch.OutOfMemoryError("CUDA out of memory."))
        outcome = run(spec, out)
        assert (outcome.ran, outcome.failed, len(tries)) == (2, 2, 2)
    assert "CUDA out of memory" in read_records(out)[0].extra["error"]
    again = run(spec, out)
    assert (again.ran, again.failed_before) == (0, 2)
    assert run(spec, out, retry=True).failed == 0
    assert run(spec, out, retry=True).ran == 0
    assert not any(map(failed, recorded(read_records(out)).values()))


def test_after_a_broken_device_no_cell_is_begun(tmp_path, monkeypatch):
    out = tmp_path / "records.jsonl"
    tries = failing(monkeypatch, torch.AcceleratorError("an illegal memory access"))
    with pytest.raises(DensPUError, match=r"^other · digits · seed 10 broke.*--jobs 2"):
        run(spec_of(OTHER, FAST), out)
    assert (len(read_records(out)), len(tries)) == (1, 1)


def test_odd_figures_do_not_end_the_run(tmp_path, monkeypatch):
    plain = work.measure
    odd = iter(
        [
            {"extra": {"oracle": {"purity": float("nan")}}},
            {"estimates": {"prior": np.float32(0.5), "interval": np.ones(2)}},
            {"metrics": {"f1": float("nan")}},
        ]
    )

    def measure(*given, **more):
        return replace(plain(*given, **more), **next(odd))

    monkeypatch.setattr(work, "measure", measure)
    out = tmp_path / "records.jsonl"
    assert run(spec_of(FAST, seeds=(10, 11, 12)), out).failed == 1
    first, second, third = read_records(out)
    assert first.extra["oracle"] == {"purity": None}
    assert second.estimates == {"prior": 0.5, "interval": [1.0, 1.0]}
    assert "f1 is nan" in third.extra["error"]


def test_nothing_is_begun_after_the_budget(tmp_path):
    out = tmp_path / "records.jsonl"
    spec = spec_of(FAST, seeds=(10, 11, 12))
    run(spec, out, seeds=(10,))
    outcome = run(spec, out, budget=0)
    assert (outcome.ran, outcome.left, outcome.skipped) == (0, 2, 1)


def test_what_is_recorded_of_a_cell_is_its_first_success():
    [cell] = cells_of(spec_of(FAST))
    job = Job(cell, Place("cpu"))
    bad = without_figures(job, error="told")
    good = replace(bad, extra={"cell": cell.id})
    assert recorded([bad, good, bad])[cell.id] is good
    assert recorded([bad, replace(bad, seed=5)])[cell.id].seed == 5
    with pytest.raises(DataIntegrityError, match=rf"cell {cell.id} \(fast, seed 10\)"):
        recorded([replace(bad, seconds={})])


# --- records of other specs -----------------------------------------------------------


def test_what_several_specs_ask_for_is_run_once(tmp_path):
    outs = [tmp_path / f"{name}.jsonl" for name in ("made", "two")]
    one = spec_of(FAST)
    two = spec_of({**FAST, "name": "the same"}, OTHER, name="two")
    specs = list(zip((one, two), outs, strict=True))
    outcome = run(specs, None)
    assert (outcome.ran, outcome.skipped, outcome.left) == (2, 1, 0)
    taken, own = read_records(outs[1])
    assert (taken.variant, taken.extra["taken_from"]) == ("the same", "made")
    assert taken.metrics == read_records(outs[0])[0].metrics
    assert (own.extra["spec"], "taken_from" in own.extra) == ("two", False)
    assert run(specs, None).skipped == 3
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')  # not ours, left alone
    three = spec_of(OTHER, name="three")
    assert run(three, tmp_path / "three.jsonl").skipped == 1
    assert run(three, tmp_path / "four.jsonl", borrowing=False).ran == 1


def test_a_failure_of_one_spec_is_made_good_by_another(tmp_path):
    one, two = spec_of(FAST), spec_of(FAST, name="two")
    outs = [tmp_path / "made.jsonl", tmp_path / "two.jsonl"]
    bad = without_figures(
        Job(cells_of(one)[0], Place("cpu", spec="made")), error="broken"
    )
    write_record(bad, outs[0])
    assert run(two, outs[1]).ran == 1
    outcome = run(one, outs[0])
    assert (outcome.ran, outcome.skipped, outcome.failed_before) == (0, 1, 0)
    for out in outs:
        assert not any(map(failed, recorded(read_records(out)).values()))


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
    assert "Told" in do(Job(cell, Place("cpu"))).extra["error"]
    pu, _ = make_data(cell.task, 10)
    assert np.array_equal(seen["y"], pu.y)
    assert set(seen) == {"model", "X", "y"}
    assert seen["model"].random_state == 10


def test_an_encoder_sees_the_labels_of_p_alone(monkeypatch, tmp_path):
    seen = watch_fit(monkeypatch, ContrastiveEncoder)
    spec = spec_of(SHARES, {**OTHER, "encoder": "shared"}, shared_encoder=SHORT)
    out = tmp_path / "records.jsonl"
    assert run(spec, out, encoders=tmp_path / "encoders").failed == 2
    pu, _ = make_data(spec.tasks[0], 10)
    assert np.array_equal(seen["y"], pu.y)
    assert seen["model"].random_state == Randomness(10).seed("encoder")
    assert seen["model"].epochs == 1
    assert {r.extra["error"] for r in read_records(out)} == {
        "Its shared encoder failed. Told: "
    }


@pytest.mark.parametrize("scenario", ["one-sample", "two-sample"])
def test_prior_and_scenario_are_those_of_the_task(monkeypatch, scenario):
    def prior_told(cls, **row):
        seen = watch_fit(monkeypatch, cls)
        [cell] = cells_of(spec_of({"name": "a", **row}, scenario=scenario))
        do(Job(cell, Place("cpu")))
        return seen["model"]

    pu, _ = make_data(spec_of(FAST, scenario=scenario).tasks[0], 10)
    truth = pu.oracle.labels
    overall = truth.mean() if scenario == "one-sample" else truth[pu.y == 0].mean()
    told = prior_told(NNPU, method="nnpu", prior="true")
    assert (told.prior, told.scenario) == (pytest.approx(overall), scenario)
    assert prior_told(NNPU, method="nnpu", prior="estimate").prior == "estimate"
    oracle = prior_told(Supervised, method="supervised", oracle="all")
    assert oracle.prior == pytest.approx(overall)
    ours = prior_told(DensPU, method="dens_pu", prior="true")  # takes P and U together
    assert ours.prior == pytest.approx(np.where(pu.y == 1, True, truth).mean())


def test_a_cut_at_the_true_prior_moves_the_calls_and_not_the_ranking():
    own, moved = (
        do(Job(cells_of(spec_of({**FAST, "cut": cut}))[0], Place("cpu")))
        for cut in ("own", "true prior")
    )
    assert own.metrics["roc_auc"] == moved.metrics["roc_auc"]
    assert own.metrics["recall"] != moved.metrics["recall"]


def test_warnings_go_into_the_record(recwarn):
    row = {"name": "flood", "method": "label_propagation"}
    record = do(Job(cells_of(spec_of(row, n_labeled=5))[0], Place("cpu")))
    [told] = record.extra["warnings"]
    assert told.startswith("DegenerateFitWarning: LabelPropagation calls")
    assert not [w for w in recwarn if w.category.__module__.startswith("denspu")]


# --- rows that see true labels --------------------------------------------------------


def test_true_labels_are_for_supervised_rows_alone():
    settings = {"method": "supervised", "parameters": {"epochs": 15, "network": "mlp"}}
    rows = [{**settings, "name": o, "oracle": o} for o in ("negatives", "all")]
    some, everything = (do(Job(c, Place("cpu"))) for c in cells_of(spec_of(*rows)))
    assert everything.metrics["accuracy"] > some.metrics["accuracy"] > 0.7


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


# --- rows that share an encoder -------------------------------------------------------


def test_rows_share_the_encoder_that_our_default_would_train(tmp_path, monkeypatch):
    plain = ContrastiveEncoder.fit

    def fit(self, X, y=None):
        warnings.warn("it collapsed", FewRowsWarning, stacklevel=1)
        return plain(self, X, y)

    monkeypatch.setattr(ContrastiveEncoder, "fit", fit)
    pair = {"positive": [0, 1], "n_labeled": 30, "keep_positive": 0.5}
    spec = spec_of(SHARES, {**OTHER, "encoder": "shared"}, shared_encoder=SHORT, **pair)
    out, home = tmp_path / "records.jsonl", tmp_path / "encoders"
    assert run(spec, out, encoders=home).failed == 0
    cell = cells_of(spec)[0]
    assert list(home.iterdir()) == [Job(cell, Place("cpu", home)).shared_folder]
    one, two = read_records(out)
    assert one.seconds["shared_encoder"] == two.seconds["shared_encoder"] > 0
    assert "shared encoder: FewRowsWarning: it collapsed" in one.extra["warnings"]
    shared = load(Job(cell, Place("cpu", home)).shared_folder / "encoder")
    assert one.extra["shared_encoder_loss"] == shared.history_.last["loss"] > 0
    pu, _ = make_data(cell.task, cell.seed)
    own = DensPU(
        encoder=ContrastiveEncoder(**SHORT),
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


def test_a_damaged_encoder_fails_its_cells_and_no_others(tmp_path):
    spec = spec_of(SHARES, OTHER)
    folder = Job(cells_of(spec)[0], Place(encoders=tmp_path / "encoders")).shared_folder
    folder.mkdir(parents=True)
    (folder / "about.json").write_text('{"fit": 1', encoding="utf-8")
    outcome = run(spec, tmp_path / "r.jsonl", encoders=tmp_path / "encoders")
    assert (outcome.ran, outcome.failed) == (2, 1)
    errors = [r.extra.get("error") for r in read_records(tmp_path / "r.jsonl")]
    assert str(folder) in errors[0]
    assert errors[1] is None


# --- in which order -------------------------------------------------------------------


def watched(monkeypatch, spec, home, at_once=3, fails=()):
    """Work through a spec with jobs that end at once; return what was begun."""
    begun = []

    def told(job):
        begun.append((job.cell.row.name, job.cell.seed, job.encoder))
        if job.encoder and job.cell.seed not in fails:
            job.shared_folder.mkdir(parents=True)
        error = {"error": "no memory"} if job.encoder and job.cell.seed in fails else {}
        return without_figures(job, **error)

    def in_processes(jobs, count, limit, end):
        begun.append(count)
        return runner._here(jobs, end)

    monkeypatch.setattr(runner, "do", told)
    monkeypatch.setattr(runner, "_in_processes", in_processes)
    place = Place("cpu", Path(home), spec.name, spec_hash(spec), at_once)
    jobs = [Job(cell, place) for cell in cells_of(spec)]
    return list(work_through(jobs, at_once)), begun


def test_what_fills_a_device_or_is_bound_by_seconds_runs_alone_and_last(
    monkeypatch, tmp_path
):
    timed = {"name": "timed", "method": "dens_pu", "parameters": {"max_seconds": 5}}
    heavy = {"name": "heavy", "method": "spy", "heavy": True}
    spec = spec_of(FAST, timed, heavy, OTHER)
    _, begun = watched(monkeypatch, spec, tmp_path)
    names = [one if isinstance(one, int) else one[0] for one in begun]
    assert names == [1, 3, "fast", "other", 1, "timed", "heavy"]


def test_an_encoder_is_trained_once_before_its_cells(monkeypatch, tmp_path):
    light = {"name": "light", "method": "ncpu", "encoder": "shared"}
    spec = spec_of(OTHER, SHARES, light, seeds=(10, 11))
    found, begun = watched(monkeypatch, spec, tmp_path, fails=(11,))
    assert len(found) == 6
    assert begun[:3] == [1, ("light", 10, True), ("light", 11, True)]
    assert ("fast", 10, False) in begun
    lost = [(job.cell.seed, r.extra["error"]) for job, r in found if failed(r)]
    assert lost == [(11, "Its shared encoder failed. no memory")] * 2


# --- data of one's own ----------------------------------------------------------------

MY_DATA = """
from denspu.data import Benchmark, load_dataset
from dataclasses import replace

def one(digit="1"):
    digits = load_dataset("digits")
    return replace(digits, name=f"digit {digit}", positive=(int(digit),))
"""


def test_a_data_set_of_ones_own_is_named_by_its_function(tmp_path, monkeypatch):
    (tmp_path / "my_data.py").write_text(MY_DATA)
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "records.jsonl"
    for name in ("my_data:one", "my_data:one:7"):
        assert run(spec_of(FAST, dataset=name), out).failed == 0
    assert [r.dataset for r in read_records(out)] == ["digit 1", "digit 7"]
    with pytest.raises(InvalidParameterError, match="'my_data:big' cannot be imported"):
        spec_of(FAST, dataset="my_data:big")


# --- in processes of their own --------------------------------------------------------

MINE = '''
import os, time
import numpy as np

class Mine:
    """Ends its process under one seed, hangs under another."""

    def __init__(self, slope=1.0, random_state=None):
        self.slope, self.random_state = slope, random_state

    def fit(self, X, y):
        if self.random_state == 10:
            os._exit(3)
        if self.random_state == 11:
            time.sleep(1000)
        self.center = X[y == 1].mean(axis=0)
        return self

    def decision_function(self, X):
        return 30 - self.slope * np.linalg.norm(X - self.center, axis=(1, 2))
'''


def test_a_method_of_ones_own_that_dies_or_hangs_is_told(tmp_path, monkeypatch):
    (tmp_path / "my_methods.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "mine.toml"
    path.write_text(
        'title = "mine"\nseeds = [10, 11, 12, 13]\n'
        '[[tasks]]\nname = "digits"\ndataset = "digits"\nn_labeled = 0.2\n'
        '[[rows]]\nname = "mine"\nmethod = "my_methods:Mine"\nparameters = {slope = 2}'
    )
    out = tmp_path / "records.jsonl"
    outcome = run(load_spec(path), out, jobs=2, cell_limit=4.0)
    assert (outcome.ran, outcome.failed) == (4, 2)
    found = {r.seed: r for r in read_records(out)}
    assert "ended with no answer" in found[10].extra["error"]
    assert "more than the 4 s a cell may take" in found[11].extra["error"]
    assert 0 < found[12].metrics["accuracy"] < 1
    assert found[12].extra["parameters"] == {"slope": 2}
    path.write_text(path.read_text().replace("slope", "slop"))
    with pytest.raises(InvalidParameterError, match="no parameter 'slop'"):
        load_spec(path)


def test_killed_in_the_middle_and_resumed_it_equals_one_run(tmp_path):
    """Nothing is lost or doubled after kill -9, and no process stays behind."""
    spec = tmp_path / "quick.toml"
    spec.write_text(
        'title = "quick"\nseeds = [10, 11, 12]\n'
        '[[tasks]]\nname = "digits"\ndataset = "digits"\nn_labeled = 0.2\n'
        '[[rows]]\nname = "fast"\nmethod = "elkan_noto"\n'
        '[[rows]]\nname = "other"\nmethod = "rocchio_svm"\n'
    )
    whole, cut = tmp_path / "whole" / "r.jsonl", tmp_path / "cut" / "r.jsonl"
    run(load_spec(spec), whole)
    command = [sys.executable, "-m", "denspu", "bench", "run", str(spec), "--jobs", "2"]
    process = subprocess.Popen(
        [*command, "--device", "cpu", "--records", str(cut)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not read_records(cut) and process.poll() is None:
        time.sleep(0.01)
    children = children_of(process.pid)
    process.kill()
    process.wait()
    assert len(children) == 2
    kept = len(read_records(cut))
    assert 0 < kept < 6
    with cut.open("ab") as file:  # what a kill in the middle of a write leaves
        file.write(b'{"dataset": "dig')
    assert run(load_spec(spec), cut).ran == 6 - kept
    lines = [json.loads(line) for line in cut.read_text().splitlines()]
    assert len({line["extra"]["cell"] for line in lines}) == len(lines) == 6
    assert figures(cut) == figures(whole)
    assert not any(alive(pid) for pid in children)


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


def test_processes_that_cannot_begin_are_told(tmp_path, monkeypatch):
    """As when a script calls without a guard, and each process runs it again."""
    monkeypatch.setattr(runner, "_prepare", sys.exit)
    with pytest.raises(DensPUError, match="must do so under if __name__"):
        run(spec_of(FAST), tmp_path / "r.jsonl", cell_limit=60.0)
    assert read_records(tmp_path / "r.jsonl") == []
