"""Real data: how sources are split, and how tables become rows and positives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(HOME))
try:
    import real_data
    from real_sources import PARTS, SAME, TRIAL, part_of
finally:
    sys.path.remove(str(HOME))


def every(kind):
    return [task for part in PARTS for task in real_data.tasks(kind, part)]


def test_a_source_lies_where_its_hash_says_and_the_trial_in_development():
    assert [part_of(name) for name in ("nursery", "diamonds", "adult")] == [
        "sealed-b",
        "sealed-a",
        part_of("adult"),
    ]
    assert {part_of(name) for name in TRIAL.split()} == {"development"}


@pytest.mark.parametrize("kind", list(real_data.FILES))
def test_names_are_unique_and_sources_have_one_name(kind):
    found = every(kind)
    assert len({task.name for task in found}) == len(found)
    assert not {task.source for task in found} & set(SAME)
