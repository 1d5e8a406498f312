"""From scores to probabilities, on mixtures whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from denspu.priors import PriorEstimate
from denspu.refinement.posterior import adding_up, cut_between, joined, posterior


def mixture(share=0.3, n_positive=800, n_unlabeled=4000, gap=3.0, seed=0):
    """Return scores of P and U: positives around ``gap``, negatives around 0."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_unlabeled) < share * n_unlabeled
    return (
        rng.normal(gap, 1, n_positive),
        rng.normal(gap * truth, 1),
        truth,
    )


def found(positive, unlabeled):
    return posterior(positive, unlabeled, rng=np.random.default_rng(0))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_follows_bayes(share):
    """Against the true posterior of two Gaussians."""
    positive, unlabeled, _ = mixture(share)
    inside = share * norm.pdf(unlabeled, 3, 1)
    exact = inside / (inside + (1 - share) * norm.pdf(unlabeled, 0, 1))
    result = found(positive, unlabeled)
    assert np.mean(np.abs(result.unlabeled - exact)) < 0.04
    assert result.prior.prior_in_unlabeled == pytest.approx(share, abs=0.05)
    assert result.n_positive == pytest.approx(share * len(unlabeled), rel=0.2)


def test_the_number_of_positives_is_about_the_sum_of_the_probabilities():
    positive, unlabeled, _ = mixture()
    result = found(positive, unlabeled)
    assert result.unlabeled.sum() == pytest.approx(result.n_positive, rel=0.1)
    assert result.n_positive == (
        result.prior.prior_in_unlabeled * result.prior.n_unlabeled
    )


def test_a_higher_score_is_never_less_positive():
    positive, unlabeled, _ = mixture(gap=1.0)
    result = found(positive, unlabeled)
    assert (np.diff(result.unlabeled[np.argsort(unlabeled)]) >= 0).all()
    assert result.unlabeled.min() >= 0
    assert result.unlabeled.max() <= 1


def test_only_the_order_of_scores_matters():
    positive, unlabeled, _ = mixture()
    plain = found(positive, unlabeled)
    bent = found(np.exp(positive), np.exp(unlabeled))
    assert np.allclose(bent.unlabeled, plain.unlabeled)


def test_more_labelled_rows_do_not_make_more_positives():
    """The ratio is divided by how many were labelled."""
    positive, unlabeled, _ = mixture()
    few, many = found(positive[:200], unlabeled), found(positive, unlabeled)
    assert few.unlabeled.mean() == pytest.approx(many.unlabeled.mean(), abs=0.05)


def test_the_cut_is_where_the_probability_is_one_half():
    positive, unlabeled, truth = mixture()
    result = found(positive, unlabeled)
    assert np.array_equal(unlabeled > result.cut, result.unlabeled > 0.5)
    best = 1.5 + np.log(0.7 / 0.3) / 3
    assert result.cut == pytest.approx(best, abs=0.25)
    assert np.mean((unlabeled > result.cut) == truth) > 0.92


def test_separated_scores_are_certain():
    positive, unlabeled = np.full(50, 5.0), np.r_[np.full(30, 5.0), np.zeros(70)]
    result = found(positive, unlabeled)
    assert np.allclose(result.unlabeled, np.r_[np.ones(30), np.zeros(70)])
    assert result.cut == 2.5


@pytest.mark.parametrize(
    ("probability", "cut"),
    [
        ([0.1, 0.4, 0.9], 2.5),
        ([0.1, 0.4, 0.5], 3.0),  # nobody exceeds one half: nobody lies above
        ([0.6, 0.8, 0.9], np.nextafter(1.0, -np.inf)),  # everybody does
    ],
)
def test_cut_by_hand(probability, cut):
    scores = np.array([1.0, 2.0, 3.0])
    assert cut_between(scores, np.array(probability)) == cut
    assert np.array_equal(scores > cut, np.array(probability) > 0.5)


@pytest.mark.parametrize("share", [0.15, 0.3, 0.5])
def test_a_known_share_stands_and_the_probabilities_add_up_to_it(share):
    """The scores say 0.3: they do not overrule what is known, and keep their order."""
    positive, unlabeled, _ = mixture()
    told = posterior(positive, unlabeled, rng=np.random.default_rng(0), known=share)
    alone = found(positive, unlabeled)
    assert told.unlabeled.mean() == pytest.approx(share)
    assert told.n_positive == share * len(unlabeled)
    prior = told.prior
    assert prior.prior_in_unlabeled == prior.low == prior.high == share
    assert told.estimated == alone.prior
    assert alone.estimated is None
    assert (np.diff(told.unlabeled[np.argsort(unlabeled)]) >= 0).all()
    assert np.array_equal(unlabeled > told.cut, told.unlabeled > 0.5)


def test_a_known_share_wins_over_an_earlier_one():
    positive, unlabeled, _ = mixture()
    told = posterior(
        positive,
        unlabeled,
        rng=np.random.default_rng(0),
        earlier=(0.9, (0.89, 0.91)),
        known=0.2,
    )
    assert told.prior.prior_in_unlabeled == 0.2


def by_halving(odds, total):
    """Look for the factor that makes the probabilities add up, one step at a time."""
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        if np.minimum(middle * odds, 1).sum() < total:
            low = middle
        else:
            high = middle
    return np.minimum(high * odds, 1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("total", [0.0, 0.5, 7.3, 30.0, 39.9])
def test_probabilities_that_add_up_against_a_twin(seed, total):
    rng = np.random.default_rng(seed)
    odds = rng.lognormal(0, 2, 50) * (np.arange(50) < 40)
    odds = rng.permutation(np.round(odds, 1) + 0.1 * (odds > 0))  # some are equal
    found = adding_up(odds, total)
    assert found.sum() == pytest.approx(total)
    np.testing.assert_allclose(found, by_halving(odds, total), atol=1e-9)


def test_what_rows_of_some_odds_cannot_hold_goes_to_the_others_alike():
    odds = np.array([0.0, 3.0, 0.0, 0.5, 0.0, 0.0])
    assert adding_up(odds, 3.0).tolist() == [0.25, 1, 0.25, 1, 0.25, 0.25]
    assert adding_up(odds, 2.0).tolist() == [0, 1, 0, 1, 0, 0]
    assert adding_up(np.ones(3), 3.0).tolist() == [1, 1, 1]


def estimate(share, low, high):
    return PriorEstimate(share, low, high, 0.9, 0.0, 100, 1000)


@pytest.mark.parametrize(
    ("found", "earlier", "share"),
    [
        (estimate(0.30, 0.2, 0.4), (0.34, (0.25, 0.45)), 0.32),
        # one interval holds the other share: no contradiction
        (estimate(0.34, 0.25, 0.45), (0.40, (0.36, 0.44)), 0.37),
        (estimate(0.26, 0.19, 0.34), (0.38, (0.29, 0.47)), 0.38),
        (estimate(0.38, 0.29, 0.47), (0.26, (0.19, 0.34)), 0.38),
    ],
    ids=["agree", "one doubts", "found too small", "earlier too small"],
)
def test_shares_that_contradict_each_other_are_not_averaged(found, earlier, share):
    assert joined(found, earlier) == pytest.approx(share)


def test_a_larger_share_that_contradicts_the_scores_is_taken():
    """A third of the held-out positives crowd the top, as if an encoder knew them."""
    rng = np.random.default_rng(0)
    positive = np.r_[rng.normal(9, 0.5, 100), rng.normal(3, 1, 200)]
    unlabeled = np.r_[rng.normal(9, 0.5, 60), rng.normal(3, 1, 1140), np.zeros(1800)]
    alone = posterior(positive, unlabeled, rng=np.random.default_rng(0))
    assert alone.prior.high < 0.38
    helped = posterior(
        positive,
        unlabeled,
        rng=np.random.default_rng(0),
        earlier=(0.4, (0.36, 0.44)),
    )
    assert helped.prior.prior_in_unlabeled == 0.4
    assert (helped.prior.low, helped.prior.high) == (0.36, 0.44)
    assert helped.unlabeled.mean() > alone.unlabeled.mean()
    lower = posterior(
        positive, unlabeled, rng=np.random.default_rng(0), earlier=(0.0, (0.0, 0.001))
    )
    assert lower.prior == alone.prior
