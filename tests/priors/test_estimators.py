"""Every estimator of the prior: closed forms, both ends, easy mixtures, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspu._registry import registry
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.priors import (
    KM2,
    BestBin,
    DensityRatioPrior,
    Mixture,
    PenL1,
    TIcE,
    by_features,
    estimate_prior_from_scores,
    mixture_share,
)
from denspu.priors.by_features import (
    GRID,
    best_split,
    fold_means,
    nearest_distribution,
    on_simplex,
    penalised,
)
from denspu.priors.by_scores import densities

ENTRIES = registry().of_kind("prior")
SCORES = [key for key, entry in ENTRIES.items() if entry.load().sees == "scores"]
FEATURES = [key for key in ENTRIES if key not in SCORES]
SMALL = {"km2": {"max_rows": 120, "n_draws": 2}}


def rng(seed=0):
    return np.random.default_rng(seed)


def samples(key, prior, *, n=200, m=600, apart=5.0, seed=0):
    """Return P and U as the estimator sees them: bells ``apart`` widths apart."""
    draw = rng(seed)
    columns = 1 if key in SCORES else 3
    P = draw.normal(apart, 1, (n, columns))
    U = draw.normal(0, 1, (m, columns))
    U[: round(prior * m)] += apart
    return (P[:, 0], U[:, 0]) if key in SCORES else (P, U)


def share(key, P, U, seed=0):
    return ENTRIES[key].build(**SMALL.get(key, {})).estimate(P, U, rng(seed))


# --- all of them ----------------------------------------------------------------------


@pytest.mark.parametrize("key", ENTRIES)
def test_easy_mixtures_and_both_ends(key):
    for prior in (0.2, 0.7):
        P, U = samples(key, prior)
        assert share(key, P, U) == pytest.approx(prior, abs=0.1)
    assert share(key, P, U, seed=3) == share(key, P, U, seed=3)
    assert share(key, *samples(key, 1.0)) > 0.75
    assert share(key, *samples(key, 0.0, apart=8.0)) < 0.06


@pytest.mark.parametrize("key", ENTRIES)
def test_answers_are_shares_even_for_very_few_rows(key):
    one = 2 if key == "pen_l1" else 1  # it holds rows out
    for n, m in ((2, 2), (one, 30), (30, one)):
        P, U = samples(key, 0.5, n=n, m=m)
        assert 0 <= share(key, P, U) <= 1
    assert 0 <= share(key, np.ones_like(P), np.ones_like(U)) <= 1


@pytest.mark.parametrize("key", ENTRIES)
def test_what_units_and_which_bends_do_not_matter(key):
    """Ranks count for some, place and scale of scores for others, units for rows."""
    P, U = samples(key, 0.4, n=60, m=150, apart=3.0)
    found, near = share(key, P, U), 0.02
    if key in ("density_ratio", "bbe", "elkan_noto"):
        P, U, near = P**3, U**3, 1e-9
    elif key in SCORES:
        P, U = 7 * P - 3, 7 * U - 3
    else:
        P, U = P * 1000, U * 1000
    assert share(key, P, U) == pytest.approx(found, abs=near)


@given(seed=st.integers(0, 1000), hidden=st.integers(5, 60))
def test_more_positives_inside_u_never_mean_a_smaller_ratio(seed, hidden):
    P, U = samples("bbe", 0.0, n=50, m=100, apart=9.0, seed=seed)
    more = U.copy()
    U[:hidden], more[: hidden + 20] = 99.0, 99.0
    for key in ("bbe", "density_ratio"):
        assert share(key, P, more) >= share(key, P, U)


def test_odd_samples_are_refused():
    for bad in ([], [np.nan, 1.0], [[1.0, 2.0]]):
        with pytest.raises(InvalidInputError, match="positive must be one finite"):
            share("bbe", np.array(bad), np.ones(3))
        with pytest.raises(InvalidInputError, match="unlabeled must be one finite"):
            share("bbe", np.ones(3), np.array(bad))
    good = np.ones((4, 2))
    with pytest.raises(InvalidInputError, match="positive contains NaN"):
        share("tice", np.full((4, 2), np.nan), good)
    with pytest.raises(InvalidInputError, match="has 2 features and unlabeled 3"):
        share("tice", good, np.ones((4, 3)))
    with pytest.raises(InvalidInputError, match=r"at least 2 of each\. Give more"):
        share("pen_l1", *samples("pen_l1", 0.5, n=1, m=30))


def test_odd_settings_are_refused():
    with pytest.raises(InvalidParameterError, match=r"'delta' parameter.*'gamma'"):
        BestBin(delta=0, gamma=2).estimate(np.ones(3), np.ones(3), rng())
    with pytest.raises(InvalidParameterError, match="'max_rows'"):
        KM2(max_rows=1).estimate(np.ones((3, 1)), np.ones((3, 1)), rng())


# --- density_ratio and bbe ------------------------------------------------------------


def from_scores(positive, unlabeled, seed=0, **options):
    return estimate_prior_from_scores(positive, unlabeled, rng=rng(seed), **options)


@pytest.mark.parametrize("hidden", [0, 30, 100])
def test_a_pure_top_gives_the_exact_share(hidden):
    P, U = np.full(40, 9.0), np.r_[np.full(hidden, 9.0), np.zeros(100 - hidden)]
    for estimator in (BestBin(), DensityRatioPrior()):
        assert estimator.estimate(P, U, rng()) == pytest.approx(hidden / 100)
    found = from_scores(P, U)
    assert found.low <= found.prior_in_unlabeled <= found.high
    assert found.prior == pytest.approx((40 + hidden) / 140)
    assert found.label_frequency == pytest.approx(40 / (40 + hidden))
    assert found.with_share(0.5).low == found.with_share(0.5).high == 0.5


@pytest.mark.parametrize("prior", [0.001, 0.5])
def test_the_ratio_errs_little_at_any_prior(prior):
    errors = []
    for seed in range(20):
        P, U = samples("density_ratio", prior, n=100, m=1000, apart=4.0, seed=seed)
        found = from_scores(P, U, n_resamples=0)
        assert (found.low, found.high) == (0, 1)
        assert found.prior_in_unlabeled == share("density_ratio", P, U)
        errors.append(found.prior_in_unlabeled - prior)
    assert abs(np.mean(errors)) < min(0.03, 0.005 + 0.1 * prior)


def test_its_intervals_hold_the_truth_about_as_often_as_they_say():
    held = []
    for seed in range(60):
        P, U = samples("density_ratio", 0.3, n=100, m=1000, apart=4.0, seed=seed)
        found = from_scores(P, U, level=0.8, n_resamples=25)
        held.append(found.low <= 0.3 <= found.high)
    assert 0.68 <= np.mean(held) <= 0.97
    narrow, wide = from_scores(P, U, level=0.5), from_scores(P, U, level=0.95)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert from_scores(P, U) == from_scores(P, U) != from_scores(P, U, seed=1)
    few = from_scores(P[:5], U)
    assert 0 <= few.low < few.prior_in_unlabeled < few.high <= 1


def test_odd_options_of_the_ratio_are_refused():
    with pytest.raises(InvalidInputError, match="scores_positive"):
        from_scores(np.array([]), np.ones(3))
    for name, value in (("level", 1.0), ("n_resamples", -1)):
        with pytest.raises(InvalidParameterError, match=name):
            from_scores(np.ones(3), np.ones(3), **{name: value})


@given(seed=st.integers(0, 1000))
def test_best_bin_against_its_twin(seed):
    """One cut at a time."""
    P, U = samples("bbe", 0.3, n=25, m=60, apart=2.0, seed=seed)
    slack = np.sqrt(np.log(4 / 0.1) / 2) * (60**-0.5 + 25**-0.5)
    best = (np.inf, None)
    for cut in sorted(P, reverse=True):
        q_p, q_u = np.mean(cut <= P), np.mean(cut <= U)
        bound = q_u / q_p + 1.01 * slack / q_p
        if bound < best[0]:
            best = bound, q_u / q_p
    assert share("bbe", P, U) == pytest.approx(min(1.0, best[1]))


# --- the other scores -----------------------------------------------------------------


def test_elkan_noto_on_two_values_and_on_overlap():
    """All positives score 1: c is the labelled share there, 40 of 100."""
    U = np.r_[np.ones(60), np.zeros(140)]
    assert share("elkan_noto", np.ones(40), U) == pytest.approx(60 / 200, abs=0.005)
    # where negatives reach among positives P(s=1|x) falls, and the share rises
    assert share("elkan_noto", *samples("elkan_noto", 0.3, apart=1.0)) > 0.4


def test_dedpul_ends_where_the_densities_touch():
    """D(π) = ∫ max(π f_P - f_U, 0) by hand on the same grid."""
    P, U = samples("dedpul", 0.4, apart=3.0)
    f_p, f_u = densities(P, U, 1.5)
    assert f_p.sum() == pytest.approx(1)
    assert f_u.sum() == pytest.approx(1)
    found = share("dedpul", P, U)
    for factor, small in ((1.0, True), (1.25, False)):  # there, and before it
        pi = factor * found
        noise = np.sqrt(1 / len(P) + 1 / (pi * len(U)))
        assert bool(np.maximum(pi * f_p - f_u, 0).sum() < 0.3 * noise * pi) is small
    far = [share("dedpul", *samples("dedpul", 0.4, apart=9, seed=s)) for s in range(8)]
    assert np.mean(far) == pytest.approx(0.4, abs=0.035)  # P and U are blurred alike


@pytest.mark.parametrize("prior", [0.1, 0.8])
def test_the_mixture_finds_the_share_of_two_bells(prior):
    P, U = samples("mixture", prior, m=4000, apart=4.0)
    assert mixture_share(P, U, 0.4) == pytest.approx(prior, abs=0.03)
    exact = mixture_share(P, U, share("density_ratio", P, U))
    assert Mixture().estimate(P, U, rng()) == pytest.approx(exact, abs=0.01)


def test_the_mixture_takes_many_rows_and_keeps_a_guess_where_scores_say_nothing():
    P, U = samples("mixture", 0.35, n=5_000, m=20_000, apart=3.0)
    assert share("mixture", P, U) == pytest.approx(0.35, abs=0.01)
    assert mixture_share(np.ones(5), np.arange(9.0), 0.2) == 0.2
    assert mixture_share(np.arange(5.0), np.ones(9), 0.2) == 0.2


# --- features -------------------------------------------------------------------------


def test_tice_finds_the_pure_box():
    """Half the square holds positives alone, a quarter of them labelled."""
    draw = rng(1)
    U, P = draw.random((2_000, 2)), draw.random((250, 2))
    P[:, 0] /= 2
    U[:750, 0] /= 2
    U[750:, 0] = 0.5 + U[750:, 0] / 2
    found = share("tice", P, U)  # c = 250 / 1000; the bound lies a little below
    assert 750 / 2_000 <= found < 1.3 * 750 / 2_000
    few = TIcE(max_rows=600).estimate(P, U, rng())
    assert few == pytest.approx(0.4, abs=0.15)
    assert few != found
    X = np.array([[0.1, 0.9], [0.2, 0.1], [0.8, 0.8], [0.9, 0.2]])
    labelled, low, high = np.array([False, False, True, True]), np.zeros(2), np.ones(2)
    assert best_split(X, labelled, low, high, 1) == (0, 0.25)
    assert best_split(X[:, 1:], labelled, low[1:], high[1:], 3) is None


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12))
def test_the_nearest_point_of_the_simplex(values):
    v = np.array(values)
    w = on_simplex(v)
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    # v - w is the same for all entries in use, and no larger for the others
    used = w > 0
    assert np.ptp((v - w)[used]) < 1e-9
    assert (v[~used] <= (v - w)[used].max() + 1e-9).all()


def test_the_nearest_distribution_satisfies_its_conditions():
    draw = rng(2)
    A = draw.normal(size=(12, 12))
    K, target, w = A @ A.T, draw.normal(size=12), np.full(12, 1 / 12)
    for _ in range(40):
        w = nearest_distribution(K, target, w, 1 / np.linalg.eigvalsh(K)[-1])
    gradient = K @ (w - target)
    assert np.ptp(gradient[w > 1e-6]) < 1e-3
    assert gradient.min() > gradient[w > 1e-6].min() - 1e-3


def test_km2_never_builds_a_large_kernel(monkeypatch):
    sizes, original = [], by_features.cdist
    monkeypatch.setattr(
        by_features,
        "cdist",
        lambda X, *more: sizes.append(len(X)) or original(X, *more),
    )
    P, U = samples("km2", 0.4, n=3_000, m=30_000)
    found = KM2(max_rows=50, n_draws=2).estimate(P, U, rng())
    assert sizes == [100, 100]
    assert found == pytest.approx(0.4, abs=0.15)


def test_penalised_l1_against_its_formula(monkeypatch):
    p, u, ridge = np.array([0.5, 0.2]), np.array([0.2, 0.3]), 0.1
    for theta, value in zip(GRID[::50], penalised(p, u, ridge)[::50], strict=True):
        beta = theta * p - u
        alpha = np.maximum(0, beta) / ridge
        assert value == pytest.approx((alpha * beta).sum() - theta + 1)
    X, centers = rng(3).normal(size=(7, 2)), rng(4).normal(size=(3, 2))
    fold = np.array([0, 1, 0, 1, 0, 1, 0])
    found = fold_means(X, centers, 0.7, fold, 2)
    for k in range(2):
        squared = ((X[fold == k][:, None] - centers) ** 2).sum(axis=2)
        assert found[k] == pytest.approx(np.exp(-squared / (2 * 0.7**2)).mean(axis=0))
    P, U = samples("pen_l1", 0.4, n=60, m=90)
    whole = PenL1().estimate(P, U, rng())
    monkeypatch.setattr(by_features, "BLOCK", 7)
    assert PenL1().estimate(P, U, rng()) == whole
