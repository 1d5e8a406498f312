"""Every estimator of the prior: closed forms, both ends, easy mixtures, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspu._registry import registry
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.priors import (
    DEDPUL,
    KM2,
    BestBin,
    DensityRatioPrior,
    ElkanNoto,
    Mixture,
    PenL1,
    TIcE,
    estimate_prior_from_scores,
)

ENTRIES = registry().of_kind("prior")
SCORES = [key for key, entry in ENTRIES.items() if entry.load().sees == "scores"]
FEATURES = [key for key in ENTRIES if key not in SCORES]


def rng(seed=0):
    return np.random.default_rng(seed)


def samples(key, prior, *, n=200, m=800, apart=5.0, seed=0):
    """Return P and U as the estimator sees them: bells ``apart`` widths apart."""
    draw = rng(seed)
    hidden = round(prior * m)
    columns = 1 if key in SCORES else 3
    P = draw.normal(apart, 1, (n, columns))
    U = draw.normal(0, 1, (m, columns))
    U[:hidden] += apart
    return (P[:, 0], U[:, 0]) if key in SCORES else (P, U)


SMALL = {"km2": {"max_rows": 120, "n_draws": 2}}


def share(key, P, U, seed=0):
    return ENTRIES[key].build(**SMALL.get(key, {})).estimate(P, U, rng(seed))


# --- all of them --------------------------------------------------------------------


def test_each_estimator_has_a_file_of_its_key():
    for key, entry in ENTRIES.items():
        assert entry.target.startswith(f"denspu.priors.{key}:")
    assert {"scores": SCORES, "features": FEATURES} == {
        "scores": ["density_ratio", "bbe", "dedpul", "mixture", "elkan_noto"],
        "features": ["tice", "km2", "pen_l1"],
    }


@pytest.mark.parametrize("prior", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("key", ENTRIES)
def test_an_easy_mixture(key, prior):
    assert share(key, *samples(key, prior)) == pytest.approx(prior, abs=0.1)


@pytest.mark.parametrize("key", ENTRIES)
def test_p_and_u_alike_mean_that_nearly_all_is_positive(key):
    assert share(key, *samples(key, 1.0)) > 0.75


@pytest.mark.parametrize("key", ENTRIES)
def test_p_and_u_apart_mean_that_hardly_any_is_positive(key):
    assert share(key, *samples(key, 0.0, apart=8.0)) < 0.06


@pytest.mark.parametrize("key", ENTRIES)
def test_same_generator_state_same_answer(key):
    P, U = samples(key, 0.4, apart=2.0)
    assert share(key, P, U, seed=3) == share(key, P, U, seed=3)


@pytest.mark.parametrize("key", ENTRIES)
def test_answers_are_shares_even_for_two_rows_each(key):
    P, U = samples(key, 0.5, n=2, m=2)
    assert 0 <= share(key, P, U) <= 1
    assert 0 <= share(key, P, P) <= 1


@pytest.mark.parametrize("key", ENTRIES)
def test_rows_that_never_vary_do_not_break_it(key):
    P, U = samples(key, 0.5, n=20, m=30)
    assert 0 <= share(key, np.ones_like(P), np.ones_like(U)) <= 1


@pytest.mark.parametrize("key", FEATURES)
def test_units_of_the_features_do_not_matter(key):
    P, U = samples(key, 0.4, n=60, m=120)
    scaled = share(key, P * 1000, U * 1000)
    assert scaled == pytest.approx(share(key, P, U), abs=1e-3)


@pytest.mark.parametrize("key", ["density_ratio", "bbe", "elkan_noto"])
@given(seed=st.integers(0, 1000), power=st.sampled_from([1 / 3, 3, 5]))
def test_only_the_order_of_scores_matters(key, seed, power):
    P, U = samples(key, 0.3, n=30, m=80, apart=2.0, seed=seed)
    bent = [np.sign(x) * np.abs(x) ** power for x in (P, U)]
    assert share(key, *bent) == pytest.approx(share(key, P, U))


@pytest.mark.parametrize("key", ["dedpul", "mixture"])
@given(seed=st.integers(0, 1000), scale=st.floats(0.01, 100), shift=st.floats(-9, 9))
def test_place_and_scale_of_scores_do_not_matter(key, seed, scale, shift):
    P, U = samples(key, 0.3, n=60, m=150, apart=3.0, seed=seed)
    moved = share(key, P * scale + shift, U * scale + shift)
    assert moved == pytest.approx(share(key, P, U), abs=0.02)


@given(seed=st.integers(0, 1000), hidden=st.integers(5, 60))
def test_more_positives_inside_u_never_mean_a_smaller_ratio(seed, hidden):
    P, U = samples("bbe", 0.0, n=50, m=100, apart=9.0, seed=seed)
    more = U.copy()
    U[:hidden], more[: hidden + 20] = 99.0, 99.0
    for key in ("bbe", "density_ratio"):
        assert share(key, P, more) >= share(key, P, U)


# --- refusals -----------------------------------------------------------------------


@pytest.mark.parametrize("bad", [[], [np.nan, 1.0], [[1.0, 2.0]]])
@pytest.mark.parametrize("key", SCORES)
def test_odd_scores_are_refused(key, bad):
    with pytest.raises(InvalidInputError, match="positive must be one finite score"):
        share(key, np.array(bad), np.ones(3))
    with pytest.raises(InvalidInputError, match="unlabeled must be one finite score"):
        share(key, np.ones(3), np.array(bad))


@pytest.mark.parametrize("key", FEATURES)
def test_odd_rows_are_refused(key):
    good = np.ones((4, 2))
    with pytest.raises(InvalidInputError, match="positive contains NaN"):
        share(key, np.full((4, 2), np.nan), good)
    with pytest.raises(InvalidInputError, match="2D array"):
        share(key, good, np.ones(4))
    with pytest.raises(InvalidInputError, match="has 2 features and unlabeled 3"):
        share(key, good, np.ones((4, 3)))


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (BestBin(delta=0), "'delta' parameter of BestBin"),
        (BestBin(gamma=2), "'gamma'"),
        (DEDPUL(tolerance=0), "'tolerance'"),
        (DEDPUL(bandwidth=0), "'bandwidth'"),
        (ElkanNoto(folds=1), "'folds'"),
    ],
)
def test_odd_settings_of_score_estimators_are_refused(estimator, words):
    with pytest.raises(InvalidParameterError, match=words):
        estimator.estimate(np.ones(3), np.ones(3), rng())


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (TIcE(folds=1), "'folds'"),
        (TIcE(max_splits=0), "'max_splits'"),
        (TIcE(min_rows=1), "'min_rows'"),
        (TIcE(max_rows=5), "'max_rows'"),
        (KM2(max_rows=1), "'max_rows'"),
        (KM2(n_draws=0), "'n_draws'"),
        (PenL1(n_centers=0), "'n_centers'"),
        (PenL1(folds=1), "'folds'"),
    ],
)
def test_odd_settings_of_feature_estimators_are_refused(estimator, words):
    with pytest.raises(InvalidParameterError, match=words):
        estimator.estimate(np.ones((3, 1)), np.ones((3, 1)), rng())


# --- density_ratio and bbe ----------------------------------------------------------


@pytest.mark.parametrize("hidden", [0, 1, 30, 99, 100])
@pytest.mark.parametrize("estimator", [BestBin(), DensityRatioPrior()])
def test_a_pure_top_gives_the_exact_share(estimator, hidden):
    U = np.r_[np.full(hidden, 9.0), np.zeros(100 - hidden)]
    found = estimator.estimate(np.full(40, 9.0), U, rng())
    assert found == pytest.approx(hidden / 100)


def test_the_estimator_is_the_function():
    P, U = samples("density_ratio", 0.3, apart=2.0)
    function = estimate_prior_from_scores(P, U, rng=rng(), n_resamples=0)
    assert share("density_ratio", P, U) == function.prior_in_unlabeled


def bbe_twin(P, U, delta=0.1, gamma=0.01):
    """Best bin estimation, one cut at a time."""
    slack = np.sqrt(np.log(4 / delta) / (2 * len(U)))
    slack += np.sqrt(np.log(4 / delta) / (2 * len(P)))
    best = (np.inf, None)
    for cut in sorted(P, reverse=True):
        q_p, q_u = np.mean(cut <= P), np.mean(cut <= U)
        bound = q_u / q_p + (1 + gamma) * slack / q_p
        if bound < best[0]:
            best = bound, q_u / q_p
    return best[1]


@given(seed=st.integers(0, 1000))
def test_best_bin_against_its_twin(seed):
    P, U = samples("bbe", 0.3, n=25, m=60, apart=2.0, seed=seed)
    assert share("bbe", P, U) == pytest.approx(min(1.0, bbe_twin(P, U)))


def test_the_bounds_of_a_rare_class():
    """Uniform bounds look at all of P; exact ones look at the top as well."""
    P, U = samples("bbe", 0.004, n=200, m=20_000, apart=4.0)
    assert share("density_ratio", P, U) == pytest.approx(0.004, rel=0.3)
    assert share("bbe", P, U) >= share("density_ratio", P, U)


# --- elkan_noto ---------------------------------------------------------------------


def test_elkan_noto_on_two_values():
    """All positives score 1: c is the labelled share there, 40 of 100."""
    U = np.r_[np.ones(60), np.zeros(140)]
    assert share("elkan_noto", np.ones(40), U) == pytest.approx(60 / 200, abs=0.005)


def test_elkan_noto_sees_overlap_as_positive():
    """Where negatives reach among positives P(s=1|x) falls, and the share rises."""
    P, U = samples("elkan_noto", 0.3, apart=1.0)
    assert share("elkan_noto", P, U) > 0.4


# --- dedpul -------------------------------------------------------------------------


def test_dedpul_ends_where_the_densities_touch():
    """D(π) = ∫ max(π f_P - f_U, 0) by hand on the same grid."""
    from denspu.priors.dedpul import densities

    P, U = samples("dedpul", 0.4, apart=3.0)
    f_p, f_u = densities(P, U, 1.5)
    assert f_p.sum() == pytest.approx(1)
    assert f_u.sum() == pytest.approx(1)
    found = share("dedpul", P, U)
    for factor, small in ((1.0, True), (1.25, False)):  # there, and before it
        pi = factor * found
        noise = np.sqrt(1 / len(P) + 1 / (pi * len(U)))
        out = np.maximum(pi * f_p - f_u, 0).sum()
        assert bool(out < 0.3 * noise * pi) is small


def test_dedpul_blurs_p_and_u_alike():
    """With one width the mixture stays one: no bias when bells are far apart."""
    found = [
        share("dedpul", *samples("dedpul", 0.4, apart=9, seed=s)) for s in range(8)
    ]
    assert np.mean(found) == pytest.approx(0.4, abs=0.035)


# --- mixture ------------------------------------------------------------------------


def test_mixture_follows_its_function():
    from denspu.priors import mixture_share

    P, U = samples("mixture", 0.35, apart=3.0)
    exact = mixture_share(P, U, share("density_ratio", P, U))
    assert Mixture().estimate(P, U, rng()) == pytest.approx(exact, abs=0.005)


def test_mixture_takes_many_rows():
    P, U = samples("mixture", 0.35, n=5_000, m=40_000, apart=3.0)
    assert share("mixture", P, U) == pytest.approx(0.35, abs=0.01)


# --- tice ---------------------------------------------------------------------------


def test_tice_finds_the_pure_box():
    """Half the cube holds positives alone, a quarter of them labelled."""
    draw = rng(1)
    U, P = draw.random((4_000, 2)), draw.random((500, 2))
    P[:, 0] /= 2
    U[:1_500, 0] /= 2
    U[1_500:, 0] = 0.5 + U[1_500:, 0] / 2
    found = share("tice", P, U)  # c = 500 / 2000; the bound lies a little below
    assert 1_500 / 4_000 <= found < 1.25 * 1_500 / 4_000


def test_tice_splits_where_the_labelled_are():
    from denspu.priors.tice import best_split

    X = np.array([[0.1, 0.9], [0.2, 0.1], [0.8, 0.8], [0.9, 0.2]])
    labelled = np.array([False, False, True, True])
    low, high = np.zeros(2), np.ones(2)
    assert best_split(X, labelled, low, high, 1) == (0, 0.25)
    assert best_split(X[:, 1:], labelled, low[1:], high[1:], 3) is None


def test_tice_draws_rows_when_there_are_many():
    P, U = samples("tice", 0.4, n=300, m=900)
    few = TIcE(max_rows=400).estimate(P, U, rng())
    assert few == pytest.approx(0.4, abs=0.12)
    assert few != TIcE().estimate(P, U, rng())


# --- km2 ----------------------------------------------------------------------------


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12))
def test_the_nearest_point_of_the_simplex(values):
    from denspu.priors.km2 import on_simplex

    v = np.array(values)
    w = on_simplex(v)
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    # v - w is the same for all entries in use, and no larger for the others
    used = w > 0
    assert np.ptp((v - w)[used]) < 1e-9
    assert (v[~used] <= (v - w)[used].max() + 1e-9).all()


def test_the_nearest_distribution_satisfies_its_conditions():
    from denspu.priors.km2 import nearest_distribution

    draw = rng(2)
    A = draw.normal(size=(12, 12))
    K = A @ A.T
    target = draw.normal(size=12)
    start = np.full(12, 1 / 12)
    step = 1 / np.linalg.eigvalsh(K)[-1]
    w = start
    for _ in range(40):
        w = nearest_distribution(K, target, w, step)
    gradient = K @ (w - target)
    assert np.ptp(gradient[w > 1e-6]) < 1e-3
    assert gradient.min() > gradient[w > 1e-6].min() - 1e-3


def test_km2_never_builds_a_large_kernel(monkeypatch):
    from denspu.priors import km2

    sizes = []

    def watched(X, Y, metric):
        sizes.append(len(X))
        return original(X, Y, metric)

    original = km2.cdist
    monkeypatch.setattr(km2, "cdist", watched)
    P, U = samples("km2", 0.4, n=3_000, m=30_000)
    found = KM2(max_rows=50, n_draws=2).estimate(P, U, rng())
    assert sizes == [100, 100]
    assert found == pytest.approx(0.4, abs=0.15)


# --- pen_l1 -------------------------------------------------------------------------


def test_penalised_l1_against_its_formula():
    from denspu.priors.pen_l1 import GRID, penalised

    p, u, ridge = np.array([0.5, 0.2]), np.array([0.2, 0.3]), 0.1
    for theta, value in zip(GRID[::50], penalised(p, u, ridge)[::50], strict=True):
        beta = [theta * 0.5 - 0.2, theta * 0.2 - 0.3]
        alpha = [max(0, b) / ridge for b in beta]
        by_hand = sum(a * b for a, b in zip(alpha, beta, strict=True)) - theta + 1
        assert value == pytest.approx(by_hand)


def test_kernel_means_are_those_of_the_folds():
    from denspu.priors.pen_l1 import fold_means

    X, centers = rng(3).normal(size=(7, 2)), rng(4).normal(size=(3, 2))
    fold = np.array([0, 1, 0, 1, 0, 1, 0])
    found = fold_means(X, centers, 0.7, fold, 2)
    for k in range(2):
        for j, center in enumerate(centers):
            squared = ((X[fold == k] - center) ** 2).sum(axis=1)
            assert found[k, j] == pytest.approx(np.exp(-squared / (2 * 0.7**2)).mean())


@pytest.mark.parametrize(("n", "m"), [(1, 30), (30, 1), (1, 1)])
def test_a_single_row_cannot_be_held_out(n, m):
    P, U = samples("pen_l1", 0.5, n=n, m=m)
    with pytest.raises(
        InvalidInputError, match=r"needs at least 2 of each\. Give more"
    ):
        share("pen_l1", P, U)
    P, U = samples("pen_l1", 0.5, n=n + 1, m=m + 1)
    assert 0 <= share("pen_l1", P, U) <= 1


@pytest.mark.parametrize("key", [key for key in ENTRIES if key != "pen_l1"])
def test_the_others_answer_for_a_single_row(key):
    for n, m in ((1, 30), (30, 1)):
        assert 0 <= share(key, *samples(key, 0.5, n=n, m=m)) <= 1


def test_rows_in_blocks_give_the_same_means(monkeypatch):
    from denspu.priors import pen_l1

    P, U = samples("pen_l1", 0.4, n=60, m=90)
    whole = share("pen_l1", P, U)
    monkeypatch.setattr(pen_l1, "BLOCK", 7)
    assert share("pen_l1", P, U) == whole
