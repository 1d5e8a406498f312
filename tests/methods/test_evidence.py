"""Who is held out, and what that does to the share of positives in U."""

from __future__ import annotations

import numpy as np
import pytest
from tests.small import small

from denspu import make
from denspu._validation import PUInput
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.methods._evidence import (
    Evidence,
    choose_held_out,
)


def data(n_positive=10, n=40, groups=None, known_negative=0):
    positive = np.arange(n) < n_positive
    return PUInput(
        X=np.zeros((n, 1)),
        kind="table",
        positive=positive,
        known_negative=np.arange(n) >= n - known_negative,
        groups=groups,
    )


def chosen(holdout, rows, seed=0):
    return choose_held_out(holdout, rows, np.random.default_rng(seed))


@pytest.mark.parametrize(("share", "count"), [(0.3, 3), (0.01, 1), (0.8, 8)])
def test_a_share_of_the_labelled_positives(share, count):
    held = chosen(share, data())
    assert held.sum() == count
    assert not held[10:].any()


def test_the_draw_is_random_and_repeats():
    draws = [chosen(0.3, data(), seed).tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_a_mask_is_taken_as_it_is():
    mask = np.isin(np.arange(40), [2, 5])
    assert np.array_equal(chosen(mask, data()), mask)
    assert np.array_equal(chosen(mask.tolist(), data()), mask)


def test_no_group_has_labelled_positives_on_both_sides():
    groups = np.arange(40) % 5
    for seed in range(20):
        held = chosen(0.3, data(groups=groups), seed)
        assert held.sum() in (2, 4)
        others = data().positive & ~held
        assert not set(groups[held]) & set(groups[others])
        assert not held[10:].any()  # unlabelled rows of these groups stay in U


def test_a_mask_takes_the_rest_of_the_group_along():
    groups = np.arange(40) % 5
    held = chosen(np.arange(40) == 1, data(groups=groups))
    assert np.flatnonzero(held).tolist() == [1, 6]


@pytest.mark.parametrize("bad", [0, 1.0, True, "some"])
def test_a_share_out_of_range(bad):
    with pytest.raises(InvalidParameterError, match=r"holdout=.*in \(0, 1\)"):
        chosen(bad, data())


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (np.arange(40) == 20, "holdout marks 1 unlabelled row"),
        (np.zeros(40, bool), "holdout marks no row"),
        (np.ones(3, bool), r"shape \(3,\).*shape \(40,\)"),
        ((np.arange(40) < 2).astype(int), "dtype int64"),
        (np.arange(40) < 9, "leaves 1 of 10 labelled positives"),
    ],
    ids=["unlabelled", "none", "short", "numbers", "one left"],
)
def test_masks_that_cannot_be_used(mask, words):
    with pytest.raises(InvalidInputError, match=words):
        chosen(mask, data())


def test_a_single_group_of_positives_cannot_be_divided():
    groups = (np.arange(40) >= 10).astype(int)
    with pytest.raises(InvalidInputError, match="of one group"):
        chosen(0.3, data(groups=groups))


def test_the_evidence_in_words():
    found = Evidence(np.zeros(20), np.zeros(3000), 100, prior_in_unlabeled=0.25)
    assert str(found) == (
        "20 of 100 labelled positives held out, 3,000 unlabelled rows; share of "
        "positives in them 0.25 (0 to 1, given)"
    )


# --- every positive judges once -------------------------------------------------------


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
@pytest.mark.parametrize("key", ["dens_pu", "elkan_noto"])
def test_in_folds_every_positive_judges_and_none_enters_u(key):
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(2, 1, (40, 3)), rng.normal(0, 1, (80, 3))]
    y = np.r_[np.ones(25), np.zeros(95)].astype(int)
    evidence = small(key, random_state=0).fit(X, y, holdout="folds").evidence_
    assert np.array_equal(evidence.held_out, np.flatnonzero(y))
    assert np.array_equal(evidence.unlabeled_index, np.flatnonzero(y == 0))
    assert evidence.n_labeled == len(evidence.positive) == 25
    assert evidence.positive_weight < 1


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_in_folds_a_positive_is_judged_by_a_model_without_it():
    """Features that mean nothing: learned by heart they would tell P from U."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 40)), (np.arange(120) < 30).astype(int)
    model = make("pu_bagging", random_state=0)
    evidence = model.fit(X, y, holdout="folds").evidence_
    below = evidence.positive[:, None] > evidence.unlabeled
    assert below.mean() < 0.7
    known = model.decision_function(X)
    assert (known[y == 1][:, None] > known[y == 0]).mean() > 0.9


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_in_folds_no_group_is_split():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(30, 8))
    groups = np.repeat(np.arange(30), 4)
    X = centres[groups] + 0.01 * rng.normal(size=(120, 8))
    y = (groups < 8).astype(int)
    model = make("elkan_noto", random_state=0)
    evidence = model.fit(X, y, groups=groups, holdout="folds").evidence_
    assert (evidence.positive[:, None] > evidence.unlabeled).mean() < 0.75


@pytest.mark.parametrize("value", ["fold", "all"])
def test_another_word_is_refused(value):
    X, y = np.zeros((4, 1)), [1, 1, 0, 0]
    with pytest.raises(InvalidParameterError, match='"folds"'):
        make("elkan_noto").fit(X, y, holdout=value)


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_one_group_of_positives_cannot_judge_in_folds():
    X, y = np.arange(12.0)[:, None], np.r_[1, 1, np.zeros(10)].astype(int)
    groups = np.r_[0, 0, np.arange(10)]
    with pytest.raises(InvalidInputError, match="two labelled positives"):
        make("rank_pruning").fit(X, y, groups=groups, holdout="folds")
