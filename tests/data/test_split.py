from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denspu.data import holdout
from denspu.exceptions import InvalidInputError, InvalidParameterError

fractions = st.floats(0.01, 0.99)
seeds = st.integers(0, 10**6)


def rng(seed=0):
    return np.random.default_rng(seed)


@given(st.integers(2, 200), fractions, seeds)
@settings(max_examples=60, deadline=None)
def test_rows_part_with_the_rounded_share(n, fraction, seed):
    keep, held = holdout(n, fraction, rng=rng(seed))
    assert sorted([*keep, *held]) == list(range(n))
    assert len(held) == min(max(round(fraction * n), 1), n - 1)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=80), fractions, seeds)
@settings(max_examples=80, deadline=None)
def test_no_group_crosses_and_no_side_is_empty(groups, fraction, seed):
    groups = np.array([*groups, 0, 1])
    keep, held = holdout(len(groups), fraction, groups=groups, rng=rng(seed))
    assert not set(groups[keep]) & set(groups[held])
    assert sorted([*keep, *held]) == list(range(len(groups)))
    assert min(len(keep), len(held)) > 0


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.7])
def test_many_small_groups_come_near_the_share(fraction):
    groups = np.repeat(np.arange(100), 3)
    _, held = holdout(300, fraction, groups=groups, rng=rng())
    assert len(held) == pytest.approx(fraction * 300, abs=3)


@pytest.mark.parametrize("seed", range(8))
def test_a_giant_group_is_not_held_out(seed):
    groups = np.repeat([0, 1, 2, 3], [90, 4, 3, 3])
    _, held = holdout(100, 0.1, groups=groups, rng=rng(seed))
    assert len(held) == 10
    keep, _ = holdout(100, 0.9, groups=groups, rng=rng(seed))
    assert len(keep) == 10


def test_groups_too_large_for_the_share_give_the_smallest():
    groups = np.repeat([0, 1], [60, 40])
    _, held = holdout(100, 0.01, groups=groups, rng=rng())
    assert len(held) == 40


def test_an_index_is_split_into_its_own_values_in_order():
    index = np.array([50, 10, 40, 20, 30])
    keep, held = holdout(index, 0.4, groups=[1, 1, 2, 2, 3], rng=rng())
    assert set(keep) | set(held) == set(index)
    position = {value: i for i, value in enumerate(index)}
    assert (np.diff([position[v] for v in keep]) > 0).all()


def test_same_generator_state_same_split():
    first, second = holdout(50, 0.3, rng=rng(5)), holdout(50, 0.3, rng=rng(5))
    assert (first[1] == second[1]).all()
    assert (holdout(50, 0.3, rng=rng(6))[1] != first[1]).any()


@pytest.mark.parametrize("fraction", [0, 1, 1.0, -0.1, "0.2", True, None])
def test_bad_fractions_are_named(fraction):
    with pytest.raises(InvalidParameterError, match=r"fraction=.* \(0, 1\)"):
        holdout(10, fraction, rng=rng())


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows(n):
    with pytest.raises(InvalidInputError, match=rf"at least 2 rows.* {n}\."):
        holdout(n, 0.5, rng=rng())


def test_too_few_groups():
    with pytest.raises(InvalidInputError, match=r"at least 2 groups.*there is 1"):
        holdout(5, 0.5, groups=[7] * 5, rng=rng())
    with pytest.raises(InvalidInputError, match="groups has shape"):
        holdout(5, 0.5, groups=[1, 2], rng=rng())
