"""The prior from two lists of scores: closed forms, noise, coverage, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.priors import estimate_prior_from_scores, mixture_share


def estimate(positive, unlabeled, seed=0, **options):
    rng = np.random.default_rng(seed)
    return estimate_prior_from_scores(positive, unlabeled, rng=rng, **options)


def bells(rng, prior, n_positive=100, n_unlabeled=1000, apart=4.0):
    hidden = rng.random(n_unlabeled) < prior
    unlabeled = rng.normal(size=n_unlabeled) + apart * hidden
    return rng.normal(apart, 1, n_positive), unlabeled


@pytest.mark.parametrize("hidden", [0, 1, 30, 99, 100])
def test_scores_that_separate_give_the_exact_share(hidden):
    unlabeled = np.r_[np.full(hidden, 9.0), np.zeros(100 - hidden)]
    found = estimate(np.full(40, 9.0), unlabeled)
    assert found.prior_in_unlabeled == pytest.approx(hidden / 100)
    assert found.low <= hidden / 100 <= found.high


def test_the_overall_prior_counts_the_labelled_rows():
    found = estimate(np.full(40, 9.0), np.r_[np.full(30, 9.0), np.zeros(70)])
    assert found.prior == pytest.approx((40 + 30) / 140)
    assert found.label_frequency == pytest.approx(40 / 70)


def test_scores_alike_mean_that_all_of_u_is_positive():
    rng = np.random.default_rng(0)
    found = estimate(rng.normal(size=500), rng.normal(size=2000))
    assert found.prior_in_unlabeled > 0.9


@pytest.mark.parametrize("prior", [0.001, 0.01, 0.1, 0.5, 0.95])
def test_mean_error_is_small_at_any_prior(prior):
    rng = np.random.default_rng(1)
    errors = [
        estimate(*bells(rng, prior), n_resamples=0).prior_in_unlabeled - prior
        for _ in range(20)
    ]
    assert abs(np.mean(errors)) < min(0.03, 0.005 + 0.1 * prior)


def test_five_positives_are_enough_for_an_answer():
    found = estimate(*bells(np.random.default_rng(2), 0.3, n_positive=5))
    assert 0 <= found.low < found.prior_in_unlabeled < found.high <= 1
    assert found.n_positive == 5


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(3)
    held = []
    for _ in range(60):
        found = estimate(*bells(rng, 0.3), level=0.8, n_resamples=25)
        held.append(found.low <= 0.3 <= found.high)
    assert 0.68 <= np.mean(held) <= 0.97


def test_a_higher_level_gives_a_wider_interval():
    lists = bells(np.random.default_rng(4), 0.4)
    narrow, wide = estimate(*lists, level=0.5), estimate(*lists, level=0.95)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_only_the_order_of_scores_matters():
    positive, unlabeled = bells(np.random.default_rng(5), 0.4)
    plain, bent = estimate(positive, unlabeled), estimate(positive**3, unlabeled**3)
    assert bent.prior_in_unlabeled == plain.prior_in_unlabeled


def test_same_generator_state_same_interval():
    lists = bells(np.random.default_rng(6), 0.4, apart=2.0)
    assert estimate(*lists, seed=1) == estimate(*lists, seed=1)
    assert estimate(*lists, seed=1).high != estimate(*lists, seed=2).high


@pytest.mark.parametrize("bad", [[], [np.nan, 1.0], [[1.0, 2.0]]])
def test_odd_scores_are_refused(bad):
    with pytest.raises(InvalidInputError, match="scores_positive"):
        estimate(np.array(bad), np.ones(3))
    with pytest.raises(InvalidInputError, match="scores_unlabeled"):
        estimate(np.ones(3), np.array(bad))


@pytest.mark.parametrize(
    "options", [{"level": 1.0}, {"level": "0.9"}, {"n_resamples": -1}]
)
def test_odd_options_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        estimate(np.ones(3), np.ones(3), **options)


@pytest.mark.parametrize("prior", [0.1, 0.5, 0.8])
def test_the_mixture_finds_the_share_of_two_bells(prior):
    positive, unlabeled = bells(np.random.default_rng(7), prior, 200, 4000)
    assert mixture_share(positive, unlabeled, 0.4) == pytest.approx(prior, abs=0.03)


def test_the_mixture_keeps_the_guess_where_scores_say_nothing():
    assert mixture_share(np.ones(5), np.arange(9.0), 0.2) == 0.2
    assert mixture_share(np.arange(5.0), np.ones(9), 0.2) == 0.2
