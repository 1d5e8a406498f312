"""How long a run may take is judged by those most like it, on such a device."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from denspu.benchmark import Record
from denspu.benchmark.cells import Cell
from denspu.benchmark.pace import Pace, ran_on_gpu
from denspu.benchmark.schedule import Clock
from denspu.benchmark.spec import Row, Task
from denspu.benchmark.work import Place
from denspu.benchmark.workers import Job

ROW = Row("nnPU", "nnpu", prior="true")


def job(row=ROW, dataset="digits", spec="made", on_gpu=True, **shared):
    task = Task("any", dataset, 100)
    place = Place("cuda", Path("encoders"), spec, on_gpu=on_gpu)
    return Job(Cell(task, row, 0, shared), place)


def record(seconds, device="NVIDIA H200", **extra):
    return Record(
        dataset="digits",
        method="nnpu",
        variant="nnPU",
        n_labeled=100,
        seed=0,
        metrics={},
        estimates={},
        seconds=seconds,
        device=device,
        extra=extra,
    )


def known(**seconds):
    """Return a pace that has seen jobs; of several of a kind the longest counts."""
    pace = Pace()
    for name, times in seconds.items():
        for time_ in times:
            pace.learn(JOBS[name], time_)
    return pace


OTHER = replace(ROW, name="other", method="upu")
JOBS = {
    "mine": job(),
    "elsewhere": job(dataset="cifar10"),
    "beside": job(OTHER),
    "twin": job(replace(ROW, name="the same run"), spec="another"),
    "twin_elsewhere": job(ROW, dataset="cifar10", spec="another"),
    "stranger": job(replace(OTHER, method="vpu"), spec="third"),
}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"mine": [1.0, 3.0, 2.0], "twin": [40.0]}, 3.0),
        ({"twin": [40.0], "elsewhere": [20.0], "beside": [50.0]}, 40.0),
        ({"elsewhere": [20.0], "twin_elsewhere": [60.0], "beside": [50.0]}, 20.0),
        ({"twin_elsewhere": [60.0], "beside": [50.0]}, 60.0),
        ({"beside": [50.0], "stranger": [80.0]}, 50.0),
        ({"stranger": [80.0]}, 80.0),
        ({}, 0.0),
    ],
)
def test_those_most_alike_tell_how_long_a_job_takes(seen, expected):
    assert known(**seen).of(job()) == expected


def test_labels_and_names_do_not_change_the_work():
    def work(row=ROW, shared=(), **task):
        task = replace(Task("any", "digits", 100), **task)
        cell = Cell(task, row, 0, dict(shared))
        return cell.work, cell.encoder_work

    same = work()
    assert work(n_labeled=7, positive=(1,), mechanism="sar") == same
    told = replace(ROW, name="told nothing", prior="none", note="x", heavy=True)
    assert work(told) == same
    for change in (
        {"prior": "estimate"},
        {"parameters": {"epochs": 3}},
        {"encoder": "shared"},
        {"method": "upu"},
        {"method": "supervised", "oracle": "all"},
        {"device": "cpu"},
    ):
        assert work(replace(ROW, **change))[0] != same[0]
    some, every = (
        work(replace(ROW, method="supervised", oracle=oracle))
        for oracle in ("negatives", "all")
    )
    assert some[0] != every[0]
    assert work(shared={"positive_weight": 0})[1] == same[1]
    assert work(shared={"max_seconds": 36})[1] != same[1]


def test_an_encoder_is_judged_by_its_settings_first():
    short, long = (
        replace(job(**settings), encoder=True)
        for settings in ({"max_seconds": 5}, {"epochs": 500})
    )
    pace = Pace()
    for one, seconds in ((short, 5.0), (long, 500.0), (job(), 900.0)):
        pace.learn(one, seconds)
    assert [pace.of(one) for one in (short, long)] == [5.0, 500.0]
    elsewhere = replace(job(dataset="cifar10", max_seconds=5), encoder=True)
    assert pace.of(elsewhere) == 5.0
    unlike = replace(job(epochs=7), encoder=True)
    assert pace.of(unlike) == 500.0  # of encoders, not of cells
    pace = Pace()
    pace.learn(long, 500.0)
    assert pace.of(job()) == 0.0  # nor the other way round


def test_records_tell_of_their_cell_and_of_its_encoder():
    pace, one = Pace(), job(epochs=3)
    pace.learn_from(one, record({"total": 2.0, "shared_encoder": 150.0}))
    assert pace.of(one) == 2.0
    assert pace.of(replace(one, encoder=True)) == 150.0


@pytest.mark.parametrize(
    ("device", "on_gpu", "counts"),
    [
        ("NVIDIA H200", True, True),
        ("cpu, 1 threads", True, False),
        ("cpu, 1 threads", False, True),
        ("NVIDIA H200", False, False),
    ],
)
def test_a_record_of_another_kind_of_device_says_nothing(device, on_gpu, counts):
    pace = Pace()
    pace.learn_from(job(on_gpu=on_gpu), record({"total": 500.0}, device))
    assert bool(pace.longest) == counts
    assert ran_on_gpu(record({}, device)) == device.startswith("NVIDIA")


@pytest.mark.parametrize("encoder", [False, True])
def test_a_job_on_a_cpu_says_nothing_of_one_on_a_gpu(encoder):
    """Of one run both may be part: some rows keep to a CPU."""
    pace, mine = Pace(), replace(job(on_gpu=False), encoder=encoder)
    pace.learn(mine, 900.0)
    assert pace.of(mine) == 900.0
    assert pace.of(replace(job(), encoder=encoder)) == 0.0


def test_a_run_that_raised_says_nothing():
    pace = Pace()
    pace.learn_from(job(), record({"total": 0.1}, error="MemoryError: x"))
    assert not pace.longest


def test_the_clock_allows_what_would_end_in_time():
    clock = Clock(budget=10, began=time.perf_counter() - 5)
    clock.pace.learn(job(), 3.0)
    clock.pace.learn(job(dataset="cifar10"), 8.0)
    assert clock.allows(job())
    assert not clock.allows(job(dataset="cifar10"))
    assert not clock.allows(job(dataset="fashion-mnist"))
