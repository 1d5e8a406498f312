"""How long a run may take is judged by those most like it, on such a device."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from denspu.benchmark import Record
from denspu.benchmark.cells import Cell
from denspu.benchmark.pace import Pace, kind_of, ran_on_gpu
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


def test_the_longest_of_those_most_alike_counts():
    pace = Pace()
    for kind, seconds in (
        (("a", "row", "digits"), 1.0),
        (("a", "row", "digits"), 3.0),
        (("a", "row", "digits"), 2.0),
        (("a", "row", "cifar10"), 20.0),
        (("a", "other", "digits"), 50.0),
        (("b", "row", "digits"), 80.0),
    ):
        pace.learn(kind, seconds)
    assert pace.of(("a", "row", "digits")) == 3.0
    assert pace.of(("a", "row", "fashion-mnist")) == 20.0
    assert pace.of(("a", "new", "digits")) == 50.0
    assert pace.of(("c", "row", "digits")) == 80.0
    assert Pace().of(("a", "row", "digits")) == 0.0


def test_an_encoder_is_judged_by_its_settings_first():
    short, long = job(max_seconds=5), job(epochs=500)
    kinds = [kind_of(replace(one, encoder=True)) for one in (short, long)]
    pace = Pace({kinds[0]: 5.0, kinds[1]: 500.0, kind_of(short): 900.0})
    assert [pace.of(kind) for kind in kinds] == [5.0, 500.0]
    elsewhere = replace(job(dataset="cifar10", max_seconds=5), encoder=True)
    assert pace.of(kind_of(elsewhere)) == 5.0
    unlike = replace(job(epochs=7), encoder=True)
    assert pace.of(kind_of(unlike)) == 500.0  # of encoders, not of cells
    assert Pace({kinds[1]: 500.0}).of(kind_of(short)) == 0.0  # nor the other way round


def test_records_tell_of_their_cell_and_of_its_encoder():
    pace, one = Pace(), job(epochs=3)
    pace.learn_from(one, record({"total": 2.0, "shared_encoder": 150.0}))
    assert pace.longest == {
        kind_of(one): 2.0,
        kind_of(replace(one, encoder=True)): 150.0,
    }
    assert kind_of(one) != kind_of(replace(one, encoder=True))


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


def test_a_run_that_raised_says_nothing():
    pace = Pace()
    pace.learn_from(job(), record({"total": 0.1}, error="MemoryError: x"))
    assert not pace.longest


def test_the_clock_allows_what_would_end_in_time():
    clock = Clock(budget=10, began=time.perf_counter() - 5)
    clock.pace.learn(kind_of(job()), 3.0)
    clock.pace.learn(kind_of(job(dataset="cifar10")), 8.0)
    assert clock.allows(job())
    assert not clock.allows(job(dataset="cifar10"))
    assert not clock.allows(job(dataset="fashion-mnist"))
