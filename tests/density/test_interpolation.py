"""New points on segments: where they lie, how many, and the laws of λ."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from denspu.density import LiteralVariance, Midpoint, Mixup, NoDensity
from denspu.exceptions import InvalidInputError, InvalidParameterError

ALL = [Midpoint, LiteralVariance, Mixup]
Z = np.random.default_rng(0).normal(size=(12, 4))


def rng(seed=0):
    return np.random.default_rng(seed)


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


def test_points_are_lambda_of_the_way():
    """With rows 0 and 1 on a line, the point itself is 1 - λ."""
    model = Midpoint(s=5, n_pairs=1)
    points = model.densify(np.array([[0.0], [1.0]]), rng()).ravel()
    same = rng()
    same.choice(1, size=1, replace=False, shuffle=False)
    assert np.allclose(points, 1 - model.sample_lambda((1, 5), same).ravel())


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    ("n_pairs", "s", "count"), [(7, 3, 21), ("all", 2, 132), ("cochran", 1, 66),
                                (10_000, 1, 66)]
)  # fmt: skip
def test_exact_count(cls, n_pairs, s, count):
    assert cls(n_pairs=n_pairs, s=s).densify(Z, rng()).shape == (count, 4)


def test_the_papers_numbers():
    model = Midpoint()
    assert (model.k, model.s, model.n_pairs) == (0.2, 11, "cochran")
    assert model.count_pairs(1000) * model.s == 176_000
    assert Mixup().alpha == 0.2


@pytest.mark.parametrize("cls", ALL)
def test_chunks_do_not_change_the_result(cls, monkeypatch):
    whole = cls().densify(Z, rng())
    monkeypatch.setattr("denspu.density._CHUNK", 100)
    assert np.array_equal(cls().densify(Z, rng()), whole)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept(cls, dtype):
    assert cls().densify(Z.astype(dtype), rng()).dtype == dtype


@pytest.mark.parametrize("cls", ALL)
def test_the_generator_decides(cls):
    one, two, other = (cls().densify(Z, rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_rows_are_left_alone():
    before = Z.copy()
    Midpoint().densify(Z, rng())
    assert np.array_equal(Z, before)


def test_equal_rows_stay_where_they_are():
    assert np.array_equal(
        np.unique(Midpoint().densify(np.ones((4, 2)), rng()), axis=0), [[1.0, 1.0]]
    )


# --- laws of λ ------------------------------------------------------------------------


def truncated(sd):
    return stats.truncnorm(-0.5 / sd, 0.5 / sd, loc=0.5, scale=sd)


LAWS = [
    (Midpoint(k=0.2), truncated(0.1)),
    (Midpoint(k=0.9), truncated(0.45)),
    (LiteralVariance(k=0.2), truncated(math.sqrt(math.exp(0.2) / 4))),
    (LiteralVariance(k=0.9), truncated(math.sqrt(math.exp(0.9) / 4))),
    (Mixup(alpha=0.2), stats.beta(0.2, 0.2)),
    (Mixup(alpha=3.0), stats.beta(3.0, 3.0)),
]


@pytest.mark.parametrize(("model", "law"), LAWS, ids=lambda v: str(v)[:24])
def test_lambda_follows_its_law(model, law):
    n = 20_000
    lam = model.sample_lambda((n // 10, 10), rng(1))
    assert lam.shape == (n // 10, 10)
    lam = lam.ravel()
    assert lam.mean() == pytest.approx(law.mean(), abs=4 * law.std() / math.sqrt(n))
    assert lam.std() == pytest.approx(law.std(), rel=0.02)
    assert stats.kstest(lam, law.cdf).pvalue > 0.01


@pytest.mark.parametrize("cls", [Midpoint, LiteralVariance])
@pytest.mark.parametrize("k", [1e-6, 0.2, 1 - 1e-9])
def test_gaussian_lambda_is_strictly_inside(cls, k):
    lam = cls(k=k).sample_lambda((50_000,), rng())
    assert lam.min() > 0
    assert lam.max() < 1


class Ends:
    """A generator that only ever draws the ends of its range."""

    def uniform(self, low, high, size):
        return np.array([low, high])


@pytest.mark.parametrize("cls", [Midpoint, LiteralVariance])
def test_gaussian_lambda_at_the_ends_of_the_draw(cls):
    for k in (0.01, 0.2, 0.9):
        lam = cls(k=k).sample_lambda((2,), Ends())
        assert 0 < lam[0] < lam[1] < 1


@pytest.mark.parametrize("cls", [Midpoint, LiteralVariance])
def test_a_larger_k_spreads_lambda_more(cls):
    spread = [cls(k=k).sample_lambda((50_000,), rng()).std() for k in (0.1, 0.5, 0.9)]
    assert spread[0] < spread[1] < spread[2]


def test_a_small_k_pulls_to_the_midpoint():
    lam = Midpoint(k=0.001).sample_lambda((1000,), rng())
    assert np.abs(lam - 0.5).max() < 0.005


# --- the rest -------------------------------------------------------------------------


def test_none_adds_nothing():
    dense = NoDensity().densify(Z.astype(np.float32), rng())
    assert dense.shape == (0, 4)
    assert dense.dtype == np.float32


@pytest.mark.parametrize("cls", ALL)
def test_one_row_has_no_segment(cls):
    with pytest.raises(InvalidInputError, match="minimum of 2"):
        cls().densify(Z[:1], rng())


@pytest.mark.parametrize("cls", [*ALL, NoDensity])
def test_nan_is_refused(cls):
    with pytest.raises(InvalidInputError, match="NaN"):
        cls().densify([[1.0, np.nan], [0.0, 1.0]], rng())


@pytest.mark.parametrize(
    "model",
    [
        Midpoint(k=0), Midpoint(k=1), LiteralVariance(k=1.5), Mixup(alpha=0),
        Midpoint(s=0), Mixup(n_pairs=0), Midpoint(n_pairs="most"), Midpoint(s=2.0),
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters(model):
    with pytest.raises(InvalidParameterError, match="must be"):
        model.densify(Z, rng())
