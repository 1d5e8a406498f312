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
from denspu.methods import _labelling
from denspu.methods._labelling import (
    FirstLabels,
    first_labels,
    warn_if_contradicted,
    warn_if_extreme,
    warn_if_few,
    warn_if_rough,
)
from denspu.methods.dens_pu import DensPU
from denspu.priors import PriorEstimate
from denspu.refinement.posterior import posterior

N_POSITIVE, N_UNLABELED = 200, 1000


def rng():
    return np.random.default_rng(0)


def scores(share=0.3, gap=4.0):
    """Return scores of P and of U; the first rows of U are positive."""
    truth = np.arange(N_UNLABELED) < share * N_UNLABELED
    return rng().normal(gap, 1, N_POSITIVE), rng().normal(gap * truth, 1), truth


def rows(known=(), seed=0):
    """Return the input of a fit with P and U in random order."""
    positive = np.arange(N_POSITIVE + N_UNLABELED) < N_POSITIVE
    positive = np.random.default_rng(seed).permutation(positive)
    known_negative = np.zeros(len(positive), dtype=bool)
    known_negative[np.flatnonzero(~positive)[list(known)]] = True
    return PUInput(
        np.zeros((len(positive), 1)), "table", positive, known_negative, None
    )


def labels(share=0.3, known=()):
    positive, unlabeled, truth = scores(share)
    data = rows(known)
    return first_labels(positive, unlabeled, data, rng()), data, truth


def estimate(share):
    return PriorEstimate(share, 0.0, 0.99, 0.9, 0.0, N_POSITIVE, N_UNLABELED)


def first(share):
    return FirstLabels(np.zeros(1), np.zeros(1), estimate(share))


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
    """A third of the positives in U are called negative by someone who knows."""
    found, data, truth = labels(known=range(100))
    inside = found.labels[data.unlabeled]
    assert (inside[:100] == 0).all()
    assert (inside[100:300] > 0.5).mean() > 0.9
    assert found.prior.n_unlabeled == N_UNLABELED - 100
    share = truth[100:].mean()
    assert found.prior.prior_in_unlabeled == pytest.approx(share, abs=0.05)


def test_facts():
    found = labels()[0]
    assert found.facts() == {
        "prior_in_unlabeled": found.prior.prior_in_unlabeled,
        "low": found.prior.low,
        "high": found.prior.high,
        "path": "labels",
    }


def test_a_share_that_is_known_is_that_of_the_rows_whose_label_is_open():
    positive, unlabeled, _ = scores()
    data = rows(known=range(100))
    found = first_labels(positive, unlabeled, data, rng(), known=0.4)
    inside = found.labels[data.unlabeled]
    assert (inside[:100] == 0).all()
    assert inside[100:].mean() == pytest.approx(0.4)
    assert found.prior_known
    assert found.prior.prior_in_unlabeled == 0.4
    alone = first_labels(positive, unlabeled, data, rng())
    assert not alone.prior_known
    facts = found.facts()
    assert facts["prior_known"] is True
    assert facts["estimated"] == alone.prior.prior_in_unlabeled
    assert facts["estimated_interval"] == [alone.prior.low, alone.prior.high]


@pytest.mark.parametrize(
    ("known", "found", "interval", "words"),
    [
        (0.4, 0.05, (0.02, 0.09), "given at random .* too large"),
        (0.8, 0.47, (0.42, 0.53), "given at random .* too large"),
        (0.2, 0.3, (0.25, 0.35), "overlap .* too small"),
        (0.01, 0.03, (0.02, 0.04), "overlap .* too small"),
        (0.9, 0.99, (0.97, 1.0), "overlap .* too small"),
    ],
)
def test_a_share_that_p_and_u_speak_against_is_told(known, found, interval, words):
    low, high = interval
    said = rf"{known:.1%} of U .* speak for {found:.1%} \({low:.1%} to {high:.1%}\)"
    with pytest.warns(PriorDisagreementWarning, match=f"{said}. .*{words}"):
        warn_if_contradicted(known, found, interval)


@pytest.mark.parametrize(
    ("known", "found", "interval"),
    [
        (0.4, 0.05, (0.02, 0.41)),
        (0.4, 0.9, (0.39, 1.0)),
        (0.4, 0.3, (0.25, 0.35)),
        (0.3, 0.37, (0.33, 0.41)),
    ],
    ids=["inside, below", "inside, above", "near, below", "near, above"],
)
def test_a_share_that_may_be_right_is_not(known, found, interval):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_contradicted(known, found, interval)


@pytest.mark.parametrize(
    ("share", "rare"), [(0.0, True), (RARE - 1e-6, True), (RARE, False), (1.0, False)]
)
def test_rare(share, rare):
    assert first(share).rare is rare
    assert first(share).facts()["path"] == ("ranking" if rare else "labels")


@pytest.mark.parametrize("share", [0.0, 0.0004, 0.98, 1.0])
def test_an_extreme_share_warns(share):
    word = "none" if share < 0.5 else "all"
    with pytest.warns(DegenerateFitWarning, match=f"almost {word} of U for positive"):
        warn_if_extreme(estimate(share))


@pytest.mark.parametrize("share", [0.0005, 0.3, 0.97])
def test_an_ordinary_share_does_not(share):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_extreme(estimate(share))


@pytest.mark.parametrize(
    ("n", "m", "words"),
    [
        (5, 100, "Only 5 labelled positives"),
        (9, 9, "Only 9 labelled positives"),
        (200, 30, "U has 30 rows and P 200"),
    ],
)
def test_few_rows_are_told(n, m, words):
    positive = np.arange(n + m) < n
    data = PUInput(np.zeros((n + m, 1)), "table", positive, ~positive & False, None)
    with pytest.warns(FewRowsWarning, match=words):
        warn_if_few(data)


def test_few_rows_and_a_known_share_leave_who_is_called_open():
    data = PUInput(
        np.zeros((105, 1)), "table", np.arange(105) < 5, np.zeros(105, bool), None
    )
    with pytest.warns(FewRowsWarning, match="how many are is what you gave") as said:
        warn_if_few(data, True)
    assert "prior_interval_" not in str(said[0].message)


def test_an_interval_that_held_out_positives_use_up_is_not_shown():
    with pytest.warns(PriorDisagreementWarning, match="speak for hardly any"):
        warn_if_contradicted(0.4, 0.0, (0.0, 0.0))


def test_enough_rows_are_not_worth_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_few(rows())


def test_an_interval_that_reaches_one_is_told():
    sure = PriorEstimate(0.9, 0.85, 0.95, 0.9, 0.0, 100, 100)
    unsure = PriorEstimate(0.9, 0.8, 1.0, 0.9, 0.0, 100, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_extreme(sure)
    with pytest.warns(DegenerateFitWarning, match="almost all"):
        warn_if_extreme(unsure)


@pytest.mark.parametrize("ends", [(0.19, 0.45), (0.12, 0.38), (0.0, 0.9)])
def test_a_wide_interval_is_told_with_its_ends(ends):
    low, high = ends
    words = f"known only roughly: 0.300, perhaps {low:.3f} or {high:.3f}"
    with pytest.warns(RoughPriorWarning, match=words):
        warn_if_rough(PriorEstimate(0.3, low, high, 0.9, 0.0, 100, 100))


@pytest.mark.parametrize(
    ("share", "low", "high"), [(0.3, 0.19, 0.41), (0.8, 0.5, 1.0), (RARE / 2, 0.0, 0.1)]
)
def test_a_narrow_interval_or_a_rare_class_is_not(share, low, high):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_rough(PriorEstimate(share, low, high, 0.9, 0.0, 100, 100))


def test_a_fit_looks_at_its_interval(monkeypatch, blobs):
    monkeypatch.setattr(_labelling, "ROUGH", -1)
    with pytest.warns(RoughPriorWarning):
        DensPU(random_state=0, device="cpu").fit(blobs.X, blobs.y)
