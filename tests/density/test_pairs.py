"""Which segments are drawn, and how many."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspu.density import cochran_pairs, sample_pairs, unrank_pairs


@pytest.mark.parametrize("n", range(2, 30))
def test_unranking_is_a_bijection(n):
    pairs = unrank_pairs(np.arange(math.comb(n, 2)))
    assert sorted(map(tuple, pairs.tolist())) == list(combinations(range(n), 2))


def test_order_of_ranks():
    assert unrank_pairs(np.arange(5)).tolist() == [
        [0, 1], [0, 2], [1, 2], [0, 3], [1, 3],
    ]  # fmt: skip


def test_large_ranks_do_not_overflow_or_round():
    """Beyond 2^53 a float square root slips to the next row."""
    n = np.r_[100_000, np.random.default_rng(0).integers(2 * 10**8, 2 * 10**9, 500)]
    first = (n - 1) * (n - 2) // 2  # rank of (0, n-1)
    assert np.array_equal(unrank_pairs(first), np.column_stack([0 * n, n - 1]))
    assert np.array_equal(unrank_pairs(first - 1), np.column_stack([n - 3, n - 2]))
    last = n * (n - 1) // 2 - 1
    assert np.array_equal(unrank_pairs(last), np.column_stack([n - 2, n - 1]))


@given(n=st.integers(2, 60), data=st.data())
def test_sampled_pairs_are_distinct_and_join_two_rows(n, data):
    size = data.draw(st.integers(1, math.comb(n, 2)))
    pairs = sample_pairs(n, size, np.random.default_rng(data.draw(st.integers(0, 9))))
    assert pairs.shape == (size, 2)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert pairs.min() >= 0
    assert pairs.max() < n
    assert len(np.unique(pairs, axis=0)) == size


def test_sampling_from_many_rows():
    pairs = sample_pairs(100_000, 5_000, np.random.default_rng(0))
    assert len(np.unique(pairs, axis=0)) == 5_000
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert pairs.max() > 95_000


def test_every_pair_is_equally_likely():
    counts = np.zeros((5, 5))
    for seed in range(2_000):
        for i, j in sample_pairs(5, 3, np.random.default_rng(seed)):
            counts[i, j] += 1
    drawn = counts[np.triu_indices(5, 1)]
    # binomial(2000, 0.3): mean 600, standard deviation 20.5
    assert np.abs(drawn - 600).max() < 4 * 20.5


@pytest.mark.parametrize(
    ("n", "pairs"),
    [(1000, 16_000), (100, 4_000), (10, 45), (2, 1), (50, 1_000), (100_000, 17_000)],
)
def test_cochran(n, pairs):
    """16,587 for ever more positives, rounded to 17,000."""
    assert cochran_pairs(n) == pairs


def test_cochran_formula_by_hand():
    """With z = 2.576 for 99 %, the 16,056 that the paper rounds to 16,000."""
    infinite = 2.576**2 * 0.5 * 0.5 / 0.01**2
    size = infinite / (1 + (infinite - 1) / math.comb(1000, 2))
    assert round(size) == 16_056
    assert cochran_pairs(1000) == round(size, -3)


@given(n=st.integers(2, 3_000))
def test_cochran_never_exceeds_what_there_is(n):
    assert 1 <= cochran_pairs(n) <= min(math.comb(n, 2), 17_000)
