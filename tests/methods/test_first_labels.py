"""First labels from the boundary's scores, and warnings where they say little."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from denspu._validation import PUInput
from denspu.base import RARE
from denspu.exceptions import (
    DegenerateFitWarning,
    FewRowsWarning,
    PriorDisagreementWarning,
    RoughPriorWarning,
)
from denspu.methods._boundary import (
    FirstLabels,
    first_labels,
    warn_if_contradicted,
    warn_if_extreme,
    warn_if_few,
    warn_if_rough,
)
from denspu.priors import PriorEstimate
from denspu.refinement.posterior import posterior

N_POSITIVE, N_UNLABELED = 200, 1000


def rng():
    return np.random.default_rng(0)


def rows(n=N_POSITIVE, m=N_UNLABELED, known=()):
    """Return the input of a fit with P and U in random order."""
    positive = rng().permutation(np.arange(n + m) < n)
    negative = np.zeros(n + m, dtype=bool)
    negative[np.flatnonzero(~positive)[list(known)]] = True
    return PUInput(np.zeros((n + m, 1)), "table", positive, negative, None)


def scores(share=0.3, gap=4.0):
    """Return scores of P and of U; the first rows of U are positive."""
    truth = np.arange(N_UNLABELED) < share * N_UNLABELED
    return rng().normal(gap, 1, N_POSITIVE), rng().normal(gap * truth, 1), truth


def estimate(share, low=0.0, high=0.99):
    return PriorEstimate(share, low, high, 0.9, 0.0, N_POSITIVE, N_UNLABELED)


def told(call, *args):
    """Return the warnings of a call: category and words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args)
    return [(w.category, str(w.message)) for w in caught]


def test_labels_follow_the_posterior_in_the_order_of_the_rows():
    positive, unlabeled, truth = scores()
    data = rows()
    found = first_labels(positive, unlabeled, data, rng())
    expected = posterior(positive, unlabeled, rng=rng())
    assert (found.labels[data.positive] == 1).all()
    assert np.array_equal(found.labels[data.unlabeled], expected.unlabeled)
    assert np.array_equal(found.scores[data.positive], positive)
    assert np.array_equal(found.scores[data.unlabeled], unlabeled)
    assert found.prior == expected.prior
    assert np.mean((found.labels[data.unlabeled] > 0.5) == truth) > 0.95


def test_known_negatives_are_0_and_do_not_count():
    positive, unlabeled, truth = scores()
    data = rows(known=range(100))
    found = first_labels(positive, unlabeled, data, rng())
    inside = found.labels[data.unlabeled]
    assert (inside[:100] == 0).all()
    assert (inside[100:300] > 0.5).mean() > 0.9
    share = truth[100:].mean()
    assert found.prior.prior_in_unlabeled == pytest.approx(share, abs=0.05)
    known = first_labels(positive, unlabeled, data, rng(), known=0.4)
    assert known.labels[data.unlabeled][100:].mean() == pytest.approx(0.4)
    assert known.prior.prior_in_unlabeled == 0.4
    assert known.facts()["estimated"] == found.prior.prior_in_unlabeled
    assert "estimated" not in found.facts()


@pytest.mark.parametrize(
    ("share", "path"), [(RARE - 1e-6, "ranking"), (RARE, "labels")]
)
def test_rare(share, path):
    first = FirstLabels(np.zeros(1), np.zeros(1), estimate(share))
    assert first.facts()["path"] == path


@pytest.mark.parametrize(
    ("known", "found", "interval", "words"),
    [
        (0.4, 0.05, (0.02, 0.09), "too large"),
        (0.2, 0.3, (0.25, 0.35), "too small"),
        (0.4, 0.0, (0.0, 0.0), "hardly any"),  # held-out positives use it up
        (0.4, 0.05, (0.02, 0.41), None),  # inside
        (0.3, 0.37, (0.33, 0.41), None),  # near
    ],
)
def test_a_share_that_p_and_u_speak_against_is_told(known, found, interval, words):
    said = told(warn_if_contradicted, known, found, interval)
    if words is None:
        assert not said
        return
    [(category, text)] = said
    assert category is PriorDisagreementWarning
    assert words in text
    assert f"{known:.1%} of the unlabelled" in text


@pytest.mark.parametrize(
    ("prior", "word"),
    [
        (estimate(0.0004), "almost none"),
        (estimate(0.98), "almost all"),
        (estimate(0.9, 0.8, 1.0), "almost all"),
        (estimate(0.9, 0.85, 0.95), None),
        (estimate(0.0005), None),
    ],
)
def test_an_extreme_share_warns(prior, word):
    said = told(warn_if_extreme, prior)
    assert [category for category, _ in said] == [DegenerateFitWarning] * bool(word)
    assert all(f"{word} of the unlabelled for positive" in text for _, text in said)


@pytest.mark.parametrize(
    ("share", "low", "high", "rough"),
    [
        (0.3, 0.1, 0.65, True),
        (0.6, 0.2, 0.75, True),
        (0.3, 0.1, 0.55, False),
        (RARE / 2, 0.0, 0.6, False),  # there the ranking counts
    ],
)
def test_a_wide_interval_is_told_with_its_ends(share, low, high, rough):
    said = told(warn_if_rough, estimate(share, low, high))
    assert [category for category, _ in said] == [RoughPriorWarning] * rough
    assert all(f"perhaps {low:.3f} or {high:.3f}" in text for _, text in said)


@pytest.mark.parametrize(
    ("n", "m", "known", "words"),
    [
        (9, 9, False, "Only 9 labelled positives"),
        (9, 90, True, "how many are is what you gave"),
        (200, 30, False, "There are 30 unlabelled rows and 200 labelled"),
        (10, 10, False, None),
    ],
)
def test_few_rows_are_told(n, m, known, words):
    said = told(warn_if_few, rows(n, m), known)
    assert [category for category, _ in said] == [FewRowsWarning] * bool(words)
    assert all(words in text for _, text in said)
