"""Where scores are cut, and maps from scores to probabilities that never fall."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from denspu._share import HiddenPositive, Isotonic, otsu_cut, prior_cut

SCORES = st.lists(st.integers(-20, 20), min_size=2, max_size=25).map(
    lambda values: np.array(values, dtype=float)
)


@given(scores=SCORES, prior=st.floats(0, 1))
def test_prior_cut_is_reached_by_that_share(scores, prior):
    cut = prior_cut(scores, prior)
    count = max(1, round(prior * len(scores)))
    assert np.sum(scores >= cut) >= count
    assert np.sum(scores > cut) < count


@given(scores=SCORES)
def test_otsu_cut_is_the_best_of_all_cuts(scores):
    """Otsu's criterion: the least sum of squares within the two groups."""

    def within(cut):
        low, high = scores[scores < cut], scores[scores >= cut]
        return sum(np.sum((g - g.mean()) ** 2) for g in (low, high) if len(g))

    values = np.unique(scores)
    cuts = (values[1:] + values[:-1]) / 2
    best = min((within(cut) for cut in cuts), default=0.0)
    assert within(otsu_cut(scores)) == pytest.approx(best, abs=1e-9)


def mixture(share, n_positive=300, n_unlabeled=5000, gap=2.0, seed=0):
    """Return scores of P and U, and P(y = 1) of each row of U."""
    rng = np.random.default_rng(seed)
    hidden = np.arange(n_unlabeled) < share * n_unlabeled
    U = rng.normal(gap * hidden, 1)
    inside = share * norm.pdf(U, gap, 1)
    exact = inside / (inside + (1 - share) * norm.pdf(U, 0, 1))
    return rng.normal(gap, 1, n_positive), U, exact


@pytest.mark.parametrize("share", [0.05, 0.7])
def test_follows_bayes(share):
    P, U, exact = mixture(share)
    found = HiddenPositive(P, U, share)(U)
    assert np.mean(np.abs(found - exact)) < 0.05
    assert found.mean() == pytest.approx(share, abs=1e-9)


def test_never_falls_and_stays_inside():
    P, U, _ = mixture(0.5)
    line = np.linspace(-30, 30, 2001)
    found = HiddenPositive(P, U, 0.5)(line)
    assert (np.diff(found) >= 0).all()
    assert 0 < found.min() < 0.1
    assert 0.9 < found.max() <= 1


@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_the_ends(prior):
    P, U, _ = mixture(0.5)
    assert np.allclose(HiddenPositive(P, U, prior)(U), prior)


def test_the_mean_holds_where_probabilities_are_cut_off():
    """All positives in the upper half, but the prior says more than that half."""
    U = np.r_[np.zeros(50), np.ones(50)]
    found = HiddenPositive(np.ones(20), U, 0.7)
    assert found(U).mean() == pytest.approx(0.7, abs=1e-9)
    assert found(np.ones(1))[0] > 0.95
    assert found(np.zeros(1))[0] == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("gap", [1.0, 2.0])
def test_few_positives_give_a_smooth_answer(gap):
    """Ten of them: rising steps alone are off by 0.20 (root of the mean square)."""
    wrong = []
    for seed in range(10):
        P, U, exact = mixture(0.3, n_positive=10, n_unlabeled=1000, gap=gap, seed=seed)
        wrong.append(np.mean((HiddenPositive(P, U, 0.3)(U) - exact) ** 2))
    assert np.sqrt(np.mean(wrong)) < 0.11


def test_positives_that_score_like_negatives_keep_their_share():
    """Three in ten do. No curve that falls to 0 may win where positives are few."""
    rng = np.random.default_rng(0)
    hidden = np.arange(3000) < 600

    def drawn(n):
        return np.where(rng.random(n) < 0.3, rng.normal(0, 1, n), rng.normal(6, 1, n))

    U = np.where(hidden, drawn(3000), rng.normal(0, 1, 3000))
    found = HiddenPositive(drawn(20), U, 0.2)(np.array([0.0]))[0]
    assert 0.02 < found < 0.15  # exact: 0.07


def test_one_wild_score_does_not_spoil_the_map():
    P, U, exact = mixture(0.3, n_positive=20)
    U[0] = 1e9
    found = HiddenPositive(P, U, 0.3)(U)
    assert np.mean(np.abs(found - exact)[1:]) < 0.1
    assert np.isfinite(found).all()


def test_many_scores_are_kept_at_few_knots():
    P, U, _ = mixture(0.3, n_unlabeled=20_000)
    found = HiddenPositive(P, U, 0.3)
    assert len(found.share.steps.X_thresholds_) <= 1200
    assert found(U).mean() == pytest.approx(0.3, abs=1e-9)


def test_few_positives_make_no_row_surely_negative():
    found = HiddenPositive(np.array([3.0, 4.0]), np.arange(10.0), 0.2)
    assert found(np.array([-5.0]))[0] > 0


def test_equal_scores_say_the_prior():
    assert HiddenPositive(np.zeros(5), np.zeros(50), 0.3)(np.zeros(1)) == [
        pytest.approx(0.3)
    ]


def test_isotonic_counts_weights():
    steps = Isotonic(np.zeros(2), [1.0, 0.0], np.array([3.0, 1.0]))
    assert steps(np.zeros(1))[0] == 0.75
