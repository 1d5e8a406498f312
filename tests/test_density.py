"""New points on segments: which segments, where the points lie, the laws of λ."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from denspu.density import (
    GreatCircle,
    LiteralVariance,
    Midpoint,
    Mixup,
    NoDensity,
    cochran_pairs,
    sample_pairs,
    unrank_pairs,
)
from denspu.exceptions import InvalidInputError, InvalidParameterError

ALL = [Midpoint, LiteralVariance, Mixup]
Z = np.random.default_rng(0).normal(size=(12, 4))


def rng(seed=0):
    return np.random.default_rng(seed)


# --- pairs ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 29])
def test_unranking_is_a_bijection(n):
    pairs = unrank_pairs(np.arange(math.comb(n, 2)))
    assert pairs.tolist() == sorted(
        map(list, combinations(range(n), 2)), key=lambda pair: pair[::-1]
    )


def test_large_ranks_do_not_overflow_or_round():
    """Beyond 2^53 a float square root slips to the next row."""
    n = np.r_[100_000, rng().integers(2 * 10**8, 2 * 10**9, 500)]
    first = (n - 1) * (n - 2) // 2  # rank of (0, n-1)
    assert np.array_equal(unrank_pairs(first), np.column_stack([0 * n, n - 1]))
    assert np.array_equal(unrank_pairs(first - 1), np.column_stack([n - 3, n - 2]))
    last = n * (n - 1) // 2 - 1
    assert np.array_equal(unrank_pairs(last), np.column_stack([n - 2, n - 1]))


@given(n=st.integers(2, 60), data=st.data())
def test_sampled_pairs_are_distinct_and_join_two_rows(n, data):
    size = data.draw(st.integers(1, math.comb(n, 2)))
    pairs = sample_pairs(n, size, rng(data.draw(st.integers(0, 9))))
    assert pairs.shape == (size, 2) == np.unique(pairs, axis=0).shape
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert 0 <= pairs.min() <= pairs.max() < n


def test_every_pair_is_equally_likely():
    counts = np.zeros((5, 5))
    for seed in range(1_000):
        for i, j in sample_pairs(5, 3, rng(seed)):
            counts[i, j] += 1
    # binomial(1000, 0.3): mean 300, standard deviation 14.5
    assert np.abs(counts[np.triu_indices(5, 1)] - 300).max() < 4 * 14.5


def test_cochran():
    """With z = 2.576 for 99 %, the 16,056 that the paper rounds to 16,000."""
    infinite = 2.576**2 * 0.5 * 0.5 / 0.01**2
    size = infinite / (1 + (infinite - 1) / math.comb(1000, 2))
    assert round(size) == 16_056
    assert cochran_pairs(1000) == round(size, -3)
    found = [cochran_pairs(n) for n in (100, 10, 2, 50, 100_000)]
    assert found == [4_000, 45, 1, 1_000, 17_000]


# --- points ---------------------------------------------------------------------------


@pytest.mark.parametrize("cls", ALL)
def test_points_lie_between_two_rows(cls):
    """Each group of s points satisfies |a-p| + |p-b| = |a-b| for one pair (a, b)."""
    dense = cls(s=3, n_pairs="all").densify(Z, rng())
    found = set()
    for group in dense.reshape(-1, 3, 4):
        to = np.linalg.norm(Z[:, None] - group[None], axis=2)
        detour = (
            to[:, None] + to[None] - np.linalg.norm(Z[:, None] - Z, axis=2)[..., None]
        )
        i, j = np.unravel_index(
            np.argmin(detour.max(axis=2) + 9 * np.eye(12)), (12, 12)
        )
        assert detour[i, j].max() < 1e-9
        found.add(frozenset((i, j)))
    assert len(found) == math.comb(12, 2)


@pytest.mark.parametrize("cls", [*ALL, GreatCircle])
def test_counts_chunks_seeds_and_types(cls, monkeypatch):
    for n_pairs, s, count in ((7, 3, 21), ("all", 2, 132), ("cochran", 1, 66),
                              (10_000, 1, 66)):  # fmt: skip
        assert cls(n_pairs=n_pairs, s=s).densify(Z, rng()).shape == (count, 4)
    whole, other = cls().densify(Z, rng()), cls().densify(Z, rng(1))
    assert not np.array_equal(whole, other)
    assert cls().densify(Z.astype(np.float32), rng()).dtype == np.float32
    monkeypatch.setattr("denspu.density._CHUNK", 100)
    assert np.array_equal(cls().densify(Z, rng()), whole)


def test_great_circles_stay_on_the_sphere_between_their_ends():
    ends = np.array([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    arc = GreatCircle(s=50, n_pairs=1).densify(ends, rng())
    assert np.linalg.norm(arc, axis=1) == pytest.approx(1)
    assert (arc[:, :2] > 0).all()
    assert not arc[:, 2].any()


# --- laws of λ ------------------------------------------------------------------------


def truncated(sd):
    return stats.truncnorm(-0.5 / sd, 0.5 / sd, loc=0.5, scale=sd)


@pytest.mark.parametrize(
    ("model", "law"),
    [
        (Midpoint(k=0.9), truncated(0.45)),
        (LiteralVariance(k=0.9), truncated(math.sqrt(math.exp(0.9) / 4))),
        (Mixup(alpha=0.2), stats.beta(0.2, 0.2)),
    ],
    ids=lambda v: str(v)[:24],
)
def test_lambda_follows_its_law(model, law):
    lam = model.sample_lambda((2000, 10), rng(1)).ravel()
    assert lam.mean() == pytest.approx(law.mean(), abs=4 * law.std() / 20_000**0.5)
    assert lam.std() == pytest.approx(law.std(), rel=0.02)
    assert stats.kstest(lam, law.cdf).pvalue > 0.01


class Ends:
    """A generator that only ever draws the ends of its range."""

    def uniform(self, low, high, size):
        return np.array([low, high])


@pytest.mark.parametrize("cls", [Midpoint, LiteralVariance])
def test_gaussian_lambda_is_strictly_inside(cls):
    for k in (1e-6, 0.01, 0.2, 1 - 1e-9):
        lam = cls(k=k).sample_lambda((2,), Ends())
        assert 0 < lam[0] < lam[1] < 1


# --- the rest -------------------------------------------------------------------------


def test_none_adds_nothing():
    dense = NoDensity().densify(Z.astype(np.float32), rng())
    assert dense.shape == (0, 4)
    assert dense.dtype == np.float32


@pytest.mark.parametrize("cls", [*ALL, NoDensity])
def test_bad_rows(cls):
    with pytest.raises(InvalidInputError, match="NaN"):
        cls().densify([[1.0, np.nan], [0.0, 1.0]], rng())
    if cls is not NoDensity:
        with pytest.raises(InvalidInputError, match="minimum of 2"):
            cls().densify(Z[:1], rng())


@pytest.mark.parametrize(
    "model",
    [LiteralVariance(k=1), Mixup(alpha=0), Midpoint(n_pairs="most")],
    ids=str,
)
def test_bad_parameters(model):
    with pytest.raises(InvalidParameterError, match="must be"):
        model.densify(Z, rng())
