"""Folds: every row in one, both classes spread, no group split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspu.refinement.folds import make_folds


def folds(positive, groups=None, n_folds=3, seed=0):
    return make_folds(positive, groups, n_folds, np.random.default_rng(seed))


@given(
    n_positive=st.integers(1, 30),
    n_unlabeled=st.integers(1, 30),
    n_folds=st.integers(2, 5),
)
def test_both_classes_are_spread_evenly(n_positive, n_unlabeled, n_folds):
    positive = np.arange(n_positive + n_unlabeled) < n_positive
    fold = folds(positive, n_folds=n_folds)
    for rows in (positive, ~positive):
        counts = np.bincount(fold[rows], minlength=n_folds)
        assert len(counts) == n_folds
        assert np.ptp(counts) <= 1


@given(seed=st.integers(0, 100), n_groups=st.integers(2, 12))
def test_no_group_is_split(seed, n_groups):
    rng = np.random.default_rng(seed)
    groups = 7 * rng.integers(n_groups, size=60)
    fold = folds(rng.random(60) < 0.3, groups, seed=seed)
    for group in np.unique(groups):
        assert len(np.unique(fold[groups == group])) == 1


def test_groups_with_positives_are_spread_evenly():
    """Six groups hold a positive: two in each of three folds, however many rows."""
    groups = np.repeat(np.arange(12), 5)
    positive = (np.arange(60) % 5 == 0) & (groups < 6)
    fold = folds(positive, groups)
    assert np.bincount(fold[positive]).tolist() == [2, 2, 2]
    assert np.bincount(fold[groups >= 6]).tolist() == [10, 10, 10]


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(10), 4)])
def test_the_order_is_random_and_a_seed_repeats_it(groups):
    positive = np.arange(40) % 4 == 0
    assert np.array_equal(folds(positive, groups), folds(positive, groups))
    assert not np.array_equal(folds(positive, groups), folds(positive, groups, seed=1))
