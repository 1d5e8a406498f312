"""Work in threads keeps its order."""

from __future__ import annotations

import os
import threading
import time

import pytest

from denspu._machine import in_threads, n_threads
from denspu.exceptions import InvalidParameterError


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
