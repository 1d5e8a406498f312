"""Folds: every row in one, both classes spread, no group split; copies are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denspu._folds import (
    deal_even_folds,
    deal_folds,
    hold_groups,
    make_folds,
    same_rows,
)


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


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(10), 4)])
def test_the_order_is_random_and_a_seed_repeats_it(groups):
    positive = np.arange(40) % 4 == 0
    assert np.array_equal(folds(positive, groups), folds(positive, groups))
    assert not np.array_equal(folds(positive, groups), folds(positive, groups, seed=1))


# --- for rare positives -------------------------------------------------------------


def test_rare_positives_keep_groups_whole():
    rng = np.random.default_rng(0)
    groups = rng.integers(40, size=2_000)
    positive = rng.random(2_000) < 0.02
    fold = deal_folds(positive, groups, 4, rng)
    for group in np.unique(groups):
        assert len(np.unique(fold[groups == group])) == 1
    held = np.bincount(fold, weights=positive)
    assert len(held) == 4
    assert held.min() >= 5


def test_no_fold_is_left_without_unlabelled_rows():
    positive = np.r_[np.ones(4, bool), np.zeros(50, bool)]
    groups = np.r_[np.arange(4), np.full(50, 9)]
    fold = deal_folds(positive, groups, 3, np.random.default_rng(0))
    assert (fold == 0).all()


# --- with some of P and some of U in each -------------------------------------------


@pytest.mark.parametrize("units", [(3, 2), (12, 7)])
def test_few_groups_of_one_kind_each(units):
    """Patients are labelled or not: every fold gets some of both."""
    n_positive, _n_unlabeled = units
    groups = np.repeat(np.arange(sum(units)), 4)
    positive = groups < n_positive
    for seed in range(20):
        fold = deal_even_folds(positive, groups, 5, np.random.default_rng(seed))
        for part in np.unique(fold):
            assert positive[fold == part].any()
            assert (~positive)[fold == part].any()
        assert fold.max() == min(5, *units) - 1


def test_even_folds_share_out_p_and_u():
    positive = np.arange(103) < 23
    fold = deal_even_folds(positive, None, 5, np.random.default_rng(0))
    assert set(np.bincount(fold[positive])) <= {4, 5}
    assert np.ptp(np.bincount(fold[~positive])) <= 2


def test_even_folds_keep_groups_whole():
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 30, 200)
    positive = rng.random(200) < 0.2
    fold = deal_even_folds(positive, groups, 5, rng)
    assert all(len(set(fold[groups == g])) == 1 for g in np.unique(groups))
    assert len(set(fold)) == 5


def test_fewer_even_folds_than_groups_with_positives():
    groups = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    positive = np.array([1, 0, 1, 0, 0, 0, 0, 0], dtype=bool)
    assert deal_even_folds(positive, groups, 5, np.random.default_rng(0)).max() == 1


# --- copies -------------------------------------------------------------------------


def test_equal_rows_get_the_same_number():
    Z = np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 2.0], [-0.0, 3.0], [2.0, 1.0]])
    found = same_rows(Z)
    assert found[0] == found[2]
    assert found[1] == found[3]
    assert len(set(found)) == 3


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=80),
    st.floats(0.01, 0.99),
    st.integers(0, 10**6),
)
@settings(max_examples=40, deadline=None)
def test_no_group_is_held_in_part_and_never_all(groups, fraction, seed):
    codes = np.unique([*groups, 0, 10], return_inverse=True)[1]
    held = hold_groups(codes, fraction, np.random.default_rng(seed))
    assert not set(codes[held]) & set(codes[~held])
    assert 0 < held.sum() < len(codes)


@pytest.mark.parametrize(
    ("sizes", "share", "n"),
    [([3] * 100, 0.3, 90), ([90, 4, 3, 3], 0.1, 10), ([60, 40], 0.01, 40)],
)
def test_the_share_of_held_groups(sizes, share, n):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    held = hold_groups(codes, share, np.random.default_rng(0))
    assert held.sum() == pytest.approx(n, abs=3)
