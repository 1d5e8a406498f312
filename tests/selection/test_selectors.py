"""Each rule against a brute-force twin, and every way to say how many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspu.base import BoundaryResult
from denspu.exceptions import InvalidParameterError, SelectionWarning
from denspu.selection import ByDistance, ByScore, RandomLeftover, RandomUnlabeled

ALL = [ByScore, ByDistance, RandomLeftover, RandomUnlabeled]


def boundary(seed=0, n=30, n_positive=5, inlier_share=0.4, d=2):
    rng = np.random.default_rng(seed)
    return BoundaryResult(
        scores=rng.normal(size=n),
        inlier=rng.random(n) < inlier_share,
        n_positive=n_positive,
        Z_unlabeled=rng.normal(size=(n, d)),
        Z_positive=rng.normal(size=(n_positive, d)),
    )


def rng(seed=0):
    return np.random.default_rng(seed)


def leftovers(found):
    return np.flatnonzero(~found.inlier)


# --- the rules ------------------------------------------------------------------------


@given(seed=st.integers(0, 1000))
def test_by_score_equals_its_twin(seed):
    found = boundary(seed)
    twin = sorted(leftovers(found), key=lambda i: found.scores[i])
    assert ByScore(size="leftovers").select(found, rng()).tolist() == twin
    assert ByScore(size=3).select(found, rng()).tolist() == twin[:3]


@given(seed=st.integers(0, 1000))
def test_by_distance_equals_its_twin(seed):
    found = boundary(seed)
    reference = np.r_[found.Z_positive, found.Z_unlabeled[found.inlier]]

    def nearest(i):
        return min(np.linalg.norm(found.Z_unlabeled[i] - z) for z in reference)

    twin = sorted(leftovers(found), key=nearest, reverse=True)
    assert ByDistance(size="leftovers").select(found, rng()).tolist() == twin


def test_the_two_rankings_differ():
    found = boundary()
    assert not np.array_equal(
        ByScore(size="leftovers").select(found, rng()),
        ByDistance(size="leftovers").select(found, rng()),
    )


@given(seed=st.integers(0, 1000))
def test_random_leftover_draws_leftovers_only(seed):
    found = boundary(seed)
    chosen = RandomLeftover(size="leftovers").select(found, rng(seed))
    assert sorted(chosen) == leftovers(found).tolist()


def test_random_unlabeled_draws_from_all_of_u():
    found = boundary()
    chosen = RandomUnlabeled(size="leftovers").select(found, rng())
    assert sorted(chosen) == list(range(30))
    assert found.inlier[RandomUnlabeled(size=20).select(found, rng())].any()


@pytest.mark.parametrize("cls", [RandomLeftover, RandomUnlabeled])
def test_random_rules_follow_the_generator(cls):
    found = boundary()
    one, two, other = (cls().select(found, rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("cls", [ByScore, ByDistance])
def test_ranking_rules_ignore_the_generator(cls):
    found = boundary()
    assert np.array_equal(cls().select(found, rng(0)), cls().select(found, rng(1)))


# --- how many -------------------------------------------------------------------------


@pytest.mark.parametrize("cls", ALL)
def test_sizes(cls):
    found = boundary()
    available = 30 if cls is RandomUnlabeled else len(leftovers(found))

    def count(size):
        return len(cls(size=size).select(found, rng()))

    assert count("positives") == 5
    assert count("leftovers") == available
    assert count(7) == 7
    assert count(np.int64(7)) == 7
    assert count(0.5) == round(0.5 * available)
    assert count(np.float32(0.5)) == round(0.5 * available)
    assert count(1e-9) == 1


def test_random_size_is_uniform_over_all_counts():
    found = boundary()
    counts = {len(ByScore(size="random").select(found, rng(s))) for s in range(300)}
    assert counts == set(range(1, len(leftovers(found)) + 1))


@pytest.mark.parametrize("cls", ALL)
def test_no_row_is_chosen_twice(cls):
    chosen = cls(size="leftovers").select(boundary(), rng())
    assert len(set(chosen.tolist())) == len(chosen)


def test_too_few_leftovers_are_all_taken_with_a_warning():
    found = boundary(n_positive=25)
    n = len(leftovers(found))
    with pytest.warns(SelectionWarning, match=f"25 negatives.*and {n} leftovers"):
        chosen = ByScore().select(found, rng())
    assert sorted(chosen) == leftovers(found).tolist()


def test_exactly_enough_does_not_warn():
    found = boundary()
    assert len(ByScore(size=len(leftovers(found))).select(found, rng()))


@pytest.mark.parametrize("cls", [ByScore, ByDistance, RandomLeftover])
def test_no_leftovers_ranks_the_least_normal_half_with_a_warning(cls):
    found = boundary(inlier_share=2)
    with pytest.warns(SelectionWarning, match="no leftovers"):
        chosen = cls(size="leftovers").select(found, rng())
    assert sorted(chosen) == sorted(np.argsort(found.scores)[:15])


def test_one_unlabelled_row_inside():
    found = boundary(n=1, inlier_share=2)
    with pytest.warns(SelectionWarning, match="no leftovers"):
        assert ByScore(size=1).select(found, rng()).tolist() == [0]


@pytest.mark.parametrize("size", [0, 1.0, 0.0, -1, "all", None, True])
def test_bad_sizes(size):
    with pytest.raises(InvalidParameterError, match="'size' parameter of ByScore"):
        ByScore(size=size).select(boundary(), rng())
