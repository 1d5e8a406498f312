"""From scores to probabilities and cuts, on mixtures whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from tests.refinement.starts import begin

from denspu._share import cut_at, known_cut
from denspu.priors import PriorEstimate
from denspu.refinement.posterior import (
    adding_up,
    cut_between,
    joined,
    posterior,
)


def mixture(share=0.3, n_positive=800, n_unlabeled=4000, gap=3.0):
    """Return scores of P and U: positives around ``gap``, negatives around 0."""
    rng = np.random.default_rng(0)
    truth = np.arange(n_unlabeled) < share * n_unlabeled
    return rng.normal(gap, 1, n_positive), rng.normal(gap * truth, 1), truth


def found(positive, unlabeled, **options):
    return posterior(positive, unlabeled, rng=np.random.default_rng(0), **options)


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_follows_bayes(share):
    """Against the true posterior of two Gaussians."""
    positive, unlabeled, truth = mixture(share)
    inside = share * norm.pdf(unlabeled, 3, 1)
    exact = inside / (inside + (1 - share) * norm.pdf(unlabeled, 0, 1))
    result = found(positive, unlabeled)
    assert np.mean(np.abs(result.unlabeled - exact)) < 0.04
    assert result.prior.prior_in_unlabeled == pytest.approx(share, abs=0.05)
    assert result.n_positive == pytest.approx(result.unlabeled.sum(), rel=0.1)
    assert (np.diff(result.unlabeled[np.argsort(unlabeled)]) >= 0).all()
    assert np.array_equal(unlabeled > result.cut, result.unlabeled > 0.5)
    assert result.cut == pytest.approx(1.5 + np.log(1 / share - 1) / 3, abs=0.3)
    assert np.mean((unlabeled > result.cut) == truth) > 0.92


def test_neither_scale_nor_number_of_labels_matters():
    positive, unlabeled, _ = mixture()
    plain = found(positive, unlabeled)
    bent = found(np.exp(positive), np.exp(unlabeled))
    assert np.allclose(bent.unlabeled, plain.unlabeled)
    few = found(positive[:200], unlabeled)
    assert few.unlabeled.mean() == pytest.approx(plain.unlabeled.mean(), abs=0.05)


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_a_known_share_stands_and_the_probabilities_add_up_to_it(share):
    """The scores say 0.3: they do not overrule what is known, and keep their order."""
    positive, unlabeled, _ = mixture()
    told = found(positive, unlabeled, known=share, earlier=(0.9, (0.89, 0.91)))
    assert told.unlabeled.mean() == pytest.approx(share)
    prior = told.prior
    assert prior.prior_in_unlabeled == prior.low == prior.high == share
    assert told.estimated == found(positive, unlabeled).prior
    assert (np.diff(told.unlabeled[np.argsort(unlabeled)]) >= 0).all()
    assert np.array_equal(unlabeled > told.cut, told.unlabeled > 0.5)


def test_a_larger_share_that_contradicts_the_scores_is_taken():
    """A third of the held-out positives crowd the top, as if an encoder knew them."""
    rng = np.random.default_rng(0)
    positive = np.r_[rng.normal(9, 0.5, 100), rng.normal(3, 1, 200)]
    unlabeled = np.r_[rng.normal(9, 0.5, 60), rng.normal(3, 1, 1140), np.zeros(1800)]
    alone = found(positive, unlabeled)
    assert alone.prior.high < 0.38
    helped = found(positive, unlabeled, earlier=(0.4, (0.36, 0.44)))
    assert helped.prior.prior_in_unlabeled == 0.4
    assert (helped.prior.low, helped.prior.high) == (0.36, 0.44)
    assert helped.unlabeled.mean() > alone.unlabeled.mean()
    assert found(positive, unlabeled, earlier=(0.0, (0.0, 0.001))).prior == alone.prior


@pytest.mark.parametrize(
    ("interval", "earlier", "share"),
    [
        ((0.30, 0.2, 0.4), (0.34, (0.25, 0.45)), 0.32),
        # one interval holds the other share: no contradiction
        ((0.34, 0.25, 0.45), (0.40, (0.36, 0.44)), 0.37),
        ((0.26, 0.19, 0.34), (0.38, (0.29, 0.47)), 0.38),
        ((0.38, 0.29, 0.47), (0.26, (0.19, 0.34)), 0.38),
    ],
)
def test_shares_that_contradict_each_other_are_not_averaged(interval, earlier, share):
    estimate = PriorEstimate(*interval, 0.9, 0.0, 100, 1000)
    assert joined(estimate, earlier) == pytest.approx(share)


# --- probabilities with a given sum ---------------------------------------------------


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


@pytest.mark.parametrize("total", [0.0, 7.3, 39.9])
def test_probabilities_that_add_up_against_a_twin(total):
    rng = np.random.default_rng(0)
    odds = rng.lognormal(0, 2, 50) * (np.arange(50) < 40)
    odds = rng.permutation(np.round(odds, 1) + 0.1 * (odds > 0))  # some are equal
    assert adding_up(odds, total).sum() == pytest.approx(total)
    np.testing.assert_allclose(
        adding_up(odds, total), by_halving(odds, total), atol=1e-9
    )


def test_what_rows_of_some_odds_cannot_hold_goes_to_the_others_alike():
    odds = np.array([0.0, 3.0, 0.0, 0.5, 0.0, 0.0])
    assert adding_up(odds, 3.0).tolist() == [0.25, 1, 0.25, 1, 0.25, 0.25]
    assert adding_up(odds, 2.0).tolist() == [0, 1, 0, 1, 0, 0]
    assert adding_up(np.ones(3), 3.0).tolist() == [1, 1, 1]


# --- cuts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probability", "cut"),
    [
        ([0.1, 0.4, 0.9], 2.5),
        ([0.1, 0.4, 0.5], 3.0),  # nobody exceeds one half: nobody lies above
        ([0.6, 0.8, 0.9], np.nextafter(1.0, -np.inf)),  # everybody does
    ],
)
def test_cut_between_by_hand(probability, cut):
    scores = np.array([1.0, 2.0, 3.0])
    assert cut_between(scores, np.array(probability)) == cut


@pytest.mark.parametrize(("share", "inside"), [(0, 0), (0.2, 1), (0.6, 3), (1, 5)])
def test_the_cut_leaves_the_share_above_it(share, inside):
    scores = np.array([3.0, 1.0, 5.0, 2.0, 4.0])
    assert (scores > cut_at(scores, share)).sum() == inside


def test_neighbours_in_single_precision_are_told_apart():
    low = np.float32(0.1)
    scores = np.array([low, np.nextafter(low, np.float32(1))])
    assert (scores.astype(np.float64) > cut_at(scores, 0.5)).tolist() == [False, True]
    largest = np.finfo(np.float32).max
    assert np.isfinite(cut_at(np.array([largest / 2, largest], np.float32), 0.5))


def called(scores, share, held=0):
    """Count those of the user's ten rows, after two of P, above the known cut."""
    rows = np.arange(12)
    out = (rows >= 2) & (rows < 2 + held)
    start = begin(np.zeros((12, 1)), rows < 2, share=share)
    start = begin(start.Z, start.positive, share=share, held_out=out if held else None)
    return int((scores[(rows >= 2) & ~out] > known_cut(scores, start)).sum())


def test_a_known_share_of_rows_lies_above_the_cut():
    scores = np.arange(12.0)
    assert [called(scores, share) for share in (0.1, 0.3, 1.0)] == [1, 3, 10]
    assert called(scores, 0.05) == 1  # less than a row is one row
    assert called(np.ones(12), 0.1) == 10  # all are alike


@pytest.mark.parametrize(("known", "expected"), [(1, 4), (4, 4), (6, 4), (8, 10)])
def test_equal_rows_lie_on_the_side_that_is_nearer(known, expected):
    """Four of ten rows tie at the top, six below: never is nobody called."""
    scores = np.r_[9.0, 9.0, np.repeat([2.0, 1.0], [4, 6])]
    assert called(scores, known / 10) == expected


@pytest.mark.parametrize("where", [100, -100])
def test_held_out_positives_are_not_counted(where):
    scores = np.arange(12.0)
    scores[2:5] += where
    assert called(scores, (2 + 3) / 10, held=3) == 2  # two of the seven others
