"""The device, threads and the one clock."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
import torch

from denspu import DensPU, _machine
from denspu._machine import (
    Deadline,
    available_devices,
    in_threads,
    n_threads,
    resolve_device,
)
from denspu.encoders import CAEEncoder
from denspu.exceptions import DeviceError, InvalidParameterError


@pytest.fixture
def gpus(monkeypatch):
    """Pretend that a number of CUDA devices exist."""

    def pretend(count, mps=False):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return pretend


def test_cpu_always_exists(gpus):
    gpus(0)
    assert available_devices() == ["cpu"]
    assert resolve_device("cpu") == torch.device("cpu")


def test_auto(gpus):
    gpus(0)
    assert resolve_device("auto") == torch.device("cpu")
    gpus(2)
    assert resolve_device("auto") == torch.device("cuda:0")
    gpus(0, mps=True)
    assert resolve_device("auto") == torch.device("cpu")
    assert resolve_device("mps") == torch.device("mps")


def test_cuda_words(gpus):
    gpus(2)
    assert available_devices() == ["cuda:0", "cuda:1", "cpu"]
    assert resolve_device("cuda") == torch.device("cuda:0")
    assert resolve_device("cuda:1") == torch.device("cuda:1")
    assert resolve_device(torch.device("cuda:1")) == torch.device("cuda:1")


@pytest.mark.parametrize("word", ["cuda", "cuda:7", "gpu", torch.device("cuda")])
def test_absent_device_names_what_exists(gpus, word):
    gpus(0)
    with pytest.raises(DeviceError, match=r"not available here\. Available: cpu\."):
        resolve_device(word)


def test_absent_second_gpu(gpus):
    gpus(1)
    with pytest.raises(DeviceError, match="Available: cuda:0, cpu"):
        resolve_device("cuda:1")


@pytest.mark.parametrize("word", [0, None, ["cpu"]])
def test_not_a_device_name(word):
    with pytest.raises(InvalidParameterError, match="not a device name"):
        resolve_device(word)


def test_methods_and_parts_ask_this_gate(gpus, blobs):
    gpus(0)
    with pytest.raises(DeviceError, match="Available: cpu"):
        DensPU(device="cuda").fit(blobs.X, blobs.y)
    with pytest.raises(DeviceError, match="Available: cpu"):
        CAEEncoder(device="cuda", image_size=4).fit(np.zeros((2, 4, 4)))


def test_numbers_of_threads(monkeypatch):
    monkeypatch.setattr(
        os, "sched_getaffinity", lambda pid: set(range(8)), raising=False
    )
    assert [n_threads(n) for n in (None, 1, 3, -1, -2, -8, -20)] == [
        8,
        1,
        3,
        8,
        7,
        1,
        1,
    ]


def test_zero_has_no_meaning():
    with pytest.raises(InvalidParameterError, match="n_jobs=0 has no meaning"):
        n_threads(0)


@pytest.mark.parametrize("threads", [1, 3])
def test_results_keep_the_order_of_the_items(threads):
    def work(item):
        time.sleep(0.01 if item == 0 else 0)
        return item * 10

    assert in_threads(work, iter(range(5)), threads) == [0, 10, 20, 30, 40]
    assert in_threads(work, [], threads) == []


def test_work_is_shared_out():
    meet = threading.Barrier(3, timeout=10)
    assert len(in_threads(lambda _: meet.wait(), range(3), 3)) == 3


def test_an_error_comes_through():
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda item: 1 / item, [1, 0], 2)


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose last entry is the time."""
    now = [100.0]
    monkeypatch.setattr(_machine.time, "perf_counter", lambda: now[-1])
    return now


def test_none_means_any_number():
    deadline = Deadline(None)
    assert deadline.left() == float("inf")
    assert deadline.part(0.1) is deadline


def test_time_runs(clock):
    deadline = Deadline(10.0, began=100.0)
    assert deadline.left() == 10
    clock.append(104.0)
    assert deadline.left() == 6
    clock.append(111.0)
    assert deadline.left() == 0


def test_it_begins_when_it_is_made():
    deadline = Deadline(10.0)
    assert 9 < deadline.left() <= 10
    assert time.perf_counter() - deadline.began < 1


def test_a_part_is_a_share_of_what_is_left(clock):
    deadline = Deadline(10.0, began=100.0)
    clock.append(104.0)
    assert deadline.part(0.5).seconds == 3
    assert deadline.left() == 6


def test_a_part_begins_when_it_is_made():
    late = Deadline(10.0, began=time.perf_counter() - 4)
    assert 2.5 < late.part(0.5).left() <= 3


def test_a_part_of_a_past_deadline_is_a_moment(clock):
    """``max_seconds=0`` would be refused, or taken for no limit at all."""
    clock.append(200.0)
    part = Deadline(10.0, began=100.0).part(0.5)
    assert part.seconds == _machine.MOMENT > 0


def test_it_cannot_be_moved():
    with pytest.raises(AttributeError):
        Deadline(10.0).seconds = 20.0
