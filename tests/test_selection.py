"""Each rule against a brute-force twin, and every way to say how many."""

from __future__ import annotations

import numpy as np
import pytest

from denspu.base import BoundaryResult
from denspu.exceptions import InvalidParameterError, SelectionWarning
from denspu.selection import ByDistance, ByScore, RandomLeftover, RandomUnlabeled

ALL = [ByScore, ByDistance, RandomLeftover, RandomUnlabeled]


def boundary(seed=0, n=30, n_positive=5, inlier_share=0.4):
    rng = np.random.default_rng(seed)
    return BoundaryResult(
        scores=rng.normal(size=n),
        inlier=rng.random(n) < inlier_share,
        n_positive=n_positive,
        Z_unlabeled=rng.normal(size=(n, 2)),
        Z_positive=rng.normal(size=(n_positive, 2)),
    )


def chosen(selector, found, seed=0):
    return selector.select(found, np.random.default_rng(seed)).tolist()


@pytest.mark.parametrize("seed", range(2))
def test_each_rule_equals_its_twin(seed):
    found = boundary(seed)
    outside = np.flatnonzero(~found.inlier)
    reference = np.r_[found.Z_positive, found.Z_unlabeled[found.inlier]]

    def nearest(i):
        return min(np.linalg.norm(found.Z_unlabeled[i] - z) for z in reference)

    by_score = sorted(outside, key=lambda i: found.scores[i])
    assert chosen(ByScore(size="leftovers"), found) == by_score
    assert chosen(ByScore(size=3), found, seed=1) == by_score[:3]
    by_distance = sorted(outside, key=nearest, reverse=True)
    assert chosen(ByDistance(size="leftovers"), found) == by_distance
    drawn = chosen(RandomLeftover(size="leftovers"), found)
    assert sorted(drawn) == outside.tolist()
    assert drawn == chosen(RandomLeftover(size="leftovers"), found)
    assert drawn != chosen(RandomLeftover(size="leftovers"), found, seed=1)
    everything = chosen(RandomUnlabeled(size="leftovers"), found)
    assert sorted(everything) == list(range(30))


@pytest.mark.parametrize("cls", ALL)
def test_sizes(cls):
    found = boundary()
    available = 30 if cls is RandomUnlabeled else (~found.inlier).sum()
    for size, count in (
        ("positives", 5),
        ("leftovers", available),
        (np.int64(7), 7),
        (0.5, round(0.5 * available)),
        (np.float32(0.5), round(0.5 * available)),
        (1e-9, 1),
    ):
        assert len(chosen(cls(size=size), found)) == count


def test_random_size_is_uniform_over_all_counts():
    found = boundary()
    counts = {len(chosen(ByScore(size="random"), found, seed)) for seed in range(300)}
    assert counts == set(range(1, (~found.inlier).sum() + 1))


def test_too_few_leftovers_are_all_taken_with_a_warning():
    found = boundary(n_positive=25)
    outside = np.flatnonzero(~found.inlier)
    with pytest.warns(SelectionWarning, match=f"25 negatives.*{len(outside)} leftover"):
        assert sorted(chosen(ByScore(), found)) == outside.tolist()
    assert len(chosen(ByScore(size=len(outside)), found)) == len(outside)  # no warning


@pytest.mark.parametrize("n", [30, 1])
def test_no_leftovers_ranks_the_least_normal_half_with_a_warning(n):
    found = boundary(n=n, inlier_share=2)
    with pytest.warns(SelectionWarning, match="no leftovers"):
        drawn = chosen(ByScore(size="leftovers"), found)
    assert drawn == np.argsort(found.scores)[: max(1, n // 2)].tolist()


@pytest.mark.parametrize("size", [0, 1.0, "all", True])
def test_bad_sizes(size):
    with pytest.raises(InvalidParameterError, match="'size' parameter of ByScore"):
        chosen(ByScore(size=size), boundary())
