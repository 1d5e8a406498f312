"""The clock: what is left, and shares of it."""

from __future__ import annotations

import time

import pytest

from denspu import _machine
from denspu._machine import Deadline


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
