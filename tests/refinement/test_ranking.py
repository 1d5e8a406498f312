"""The ranking for rare positives, on small problems with known answers."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score, roc_auc_score

from denspu._machine import Deadline
from denspu.base import RefinerInput
from denspu.detectors import DensityRatio
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.refinement.ranking import RankingRefiner

FEATURES = 12


def rows(n_positive, n_negative, rng):
    """Positives lie in two corners and among negatives; nine features mean nothing."""
    positive = rng.normal(size=(n_positive, FEATURES))
    side = np.where(np.arange(n_positive) % 2, 2.2, -2.2)
    positive[:, :3] = 0.7 * positive[:, :3] + side[:, None]
    negative = rng.normal(size=(n_negative, FEATURES))
    Z = np.concatenate([positive, negative]).astype(np.float32)
    Z[:, 3:] *= 2
    return Z, np.arange(len(Z)) < n_positive


def problem(seed=0, n_labeled=60, n_hidden=60, n_negative=4_000, **changes):
    rng = np.random.default_rng(seed)
    Z, truth = rows(n_labeled + n_hidden, n_negative, rng)
    positive = np.arange(len(Z)) < n_labeled
    n_unlabeled = n_hidden + n_negative
    start = RefinerInput(
        X=Z,
        Z=Z,
        positive=positive,
        known_negative=np.zeros(len(Z), dtype=bool),
        groups=None,
        scores=np.zeros(len(Z)),
        labels=positive.astype(float),
        prior_in_unlabeled=n_hidden / n_unlabeled,
        prior_interval=(0.0, 1.0),
        encoder=None,
        deadline=Deadline(None),
    )
    return replace(start, **changes), truth


def small(**changes):
    settings = {"n_trees": 10, "max_iter": 30, "n_jobs": 1, "random_state": 0}
    return RankingRefiner(**{**settings, **changes})


def screening(**changes):
    """Return a refiner for which 4,000 rows are too many to look at closely."""
    return small(**{"screen_rows": 800, "max_hard": 800, **changes})


@pytest.fixture(scope="module")
def test_rows():
    return rows(100, 8_000, np.random.default_rng(99))


@pytest.fixture(scope="module")
def fitted():
    start, truth = problem()
    return screening().refine(start), start, truth


def test_it_ranks_far_better_than_chance_and_than_the_boundary(fitted, test_rows):
    Z, truth = test_rows
    start = fitted[1]
    boundary = DensityRatio(around="positives", random_state=0)
    boundary.fit(start.Z, start.positive.astype(int))
    ours = average_precision_score(truth, fitted[0].decision_function(Z))
    theirs = average_precision_score(truth, boundary.score_samples(Z))
    assert ours > 20 * truth.mean()
    assert ours > theirs + 0.05


def test_the_closer_look_beats_the_screen(fitted, test_rows):
    Z, truth = test_rows
    screen = screening(rounds=1).refine(fitted[1])
    assert screen.learner_ == "screen"
    assert average_precision_score(
        truth, fitted[0].decision_function(Z)
    ) > average_precision_score(truth, screen.decision_function(Z))


def test_shuffled_labels_do_not_rank(test_rows):
    Z, truth = test_rows
    start, _ = problem()
    shuffled = np.random.default_rng(1).permutation(start.positive)
    model = screening().refine(replace(start, positive=shuffled))
    assert abs(roc_auc_score(truth, model.decision_function(Z)) - 0.5) < 0.25
    assert max(model.checks_.values()) < 5 * shuffled.mean()


@pytest.mark.parametrize("prior", ["refit", "start"])
def test_the_share_called_positive_follows_the_prior(fitted, test_rows, prior):
    start, Z = fitted[1], test_rows[0]
    true = start.prior_in_unlabeled
    model = screening(prior=prior).refine(start)
    for share in (
        model.labels_[start.unlabeled] > 0.5,
        model.decision_function(Z) > 0,
    ):
        assert true / 3 < share.mean() < true * 3
    count = round(model.prior_in_unlabeled_ * start.unlabeled.sum())
    assert model.n_called_ == count


def test_the_given_prior_moves_the_cut_and_nothing_else(fitted, test_rows):
    start, Z = fitted[1], test_rows[0][:500]
    few = screening(prior="start").refine(start)
    more = screening(prior="start").refine(replace(start, prior_in_unlabeled=0.02))
    moved = more.decision_function(Z) - few.decision_function(Z)
    assert moved.min() > 0
    np.testing.assert_allclose(moved, moved[0])


def test_a_known_prior_is_not_read_off_the_ranking(fitted):
    start = replace(fitted[1], prior_in_unlabeled=0.05, prior_known=True)
    model = screening().refine(start)
    assert fitted[0].prior_ is not None
    assert model.prior_ is None
    assert model.prior_in_unlabeled_ == 0.05
    assert model.n_called_ == pytest.approx(0.05 * start.unlabeled.sum(), abs=5)


def test_held_out_positives_are_not_among_the_known(fitted):
    start = fitted[1]
    held = np.zeros(len(start.Z), dtype=bool)
    held[np.flatnonzero(start.free)[:30]] = True
    share = (12 + 30) / start.free.sum()
    known = replace(start, prior_in_unlabeled=share, prior_known=True, held_out=held)
    model = screening().refine(known)
    assert (model.labels_[start.free & ~held] > 0.5).sum() == 12


def test_labels_keep_what_is_known():
    start, _ = problem(n_negative=1_000)
    known = np.zeros(len(start.Z), dtype=bool)
    known[[-1, 70]] = True
    model = small().refine(replace(start, known_negative=known))
    assert (model.labels_[start.positive] == 1).all()
    assert (model.labels_[known] == 0).all()


def test_same_seed_same_result(fitted, test_rows):
    Z = test_rows[0][:500]
    again = screening().refine(fitted[1])
    other = screening(random_state=1).refine(fitted[1])
    np.testing.assert_array_equal(again.labels_, fitted[0].labels_)
    np.testing.assert_array_equal(
        again.decision_function(Z), fitted[0].decision_function(Z)
    )
    assert (other.decision_function(Z) != fitted[0].decision_function(Z)).any()


def test_threads_change_nothing(fitted, test_rows, monkeypatch):
    monkeypatch.setattr("denspu.refinement.ranking.BLOCK", 64)
    Z = test_rows[0][:500]
    threads = screening(n_jobs=2).refine(fitted[1])
    np.testing.assert_array_equal(
        threads.decision_function(Z), fitted[0].decision_function(Z)
    )


def test_an_answer_does_not_depend_on_the_batch(fitted, test_rows):
    Z = test_rows[0][:300]
    together = fitted[0].decision_function(Z)
    alone = np.concatenate([fitted[0].decision_function(Z[i : i + 7])
                            for i in range(0, 300, 7)])  # fmt: skip
    np.testing.assert_array_equal(together, alone)


def test_no_row_is_scored_by_a_model_that_saw_it():
    """Random labels cannot be told apart, unless a row vouches for itself."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(1_200, FEATURES))
    start, _ = problem(n_labeled=200, n_hidden=0, n_negative=1_000, Z=Z)
    model = small().refine(start)
    hidden = model.checks_["forest"]
    assert hidden < 0.3, "AP of chance is 1 in 6"


def test_rows_that_fail_the_screen_stay_below(fitted, test_rows):
    model, Z = fitted[0], test_rows[0]
    screened = sum(m.decision_function(Z) for m in model.screen_) / len(model.screen_)
    failed = screened < model.screen_cut_
    answers = model.decision_function(Z)
    assert failed.mean() > 0.5
    assert (answers[failed] < 0).all()
    order = np.argsort(screened[failed])
    assert (np.diff(answers[failed][order]) >= 0).all()


def test_the_learner_is_the_one_that_ranks_held_out_positives_best(fitted):
    model = fitted[0]
    close = {name: model.checks_[name] for name in ("boosting", "forest", "both")}
    assert model.learner_ == max(close, key=close.get)
    assert model.facts()["average_precision_held_out_vs_unlabeled"] == model.checks_


@pytest.mark.parametrize("learner", ["boosting", "forest", "both"])
def test_a_named_learner_is_used(learner):
    start, truth = problem(n_negative=1_000)
    model = small(learner=learner).refine(start)
    assert model.learner_ == learner
    assert set(model.close_) == (
        {"boosting", "forest"} if learner == "both" else {learner}
    )
    assert roc_auc_score(truth, model.decision_function(start.Z)) > 0.9


def test_groups_reach_the_folds():
    start, _ = problem(n_negative=600)
    groups = np.arange(len(start.Z)) // 10
    model = small(max_iter=3, n_trees=2).refine(replace(start, groups=groups))
    assert (model.fold_.reshape(-1, 10) == model.fold_[::10, None]).all()
    assert model.n_folds_ == 3


def test_known_negatives_are_always_taught():
    """A few rows of U that a sample would miss keep their surroundings down."""
    start, _ = problem()
    odd = np.zeros((300, FEATURES), dtype=np.float32)
    odd[:, :3], odd[:, 3] = 2.2, 9.0
    odd += np.random.default_rng(3).normal(scale=0.3, size=odd.shape)
    start.Z[-300:] = odd
    known = np.zeros(len(start.Z), dtype=bool)
    known[-300:] = True
    told = small(rounds=1, screen_rows=50).refine(replace(start, known_negative=known))
    untold = small(rounds=1, screen_rows=50).refine(start)
    gap = untold.decision_function(odd).mean() - told.decision_function(odd).mean()
    assert gap > 1


@pytest.mark.parametrize("n_labeled", [1, 2, 5])
def test_very_few_positives_and_a_tiny_prior(n_labeled):
    start, _ = problem(n_labeled=n_labeled, prior_in_unlabeled=1e-4)
    model = screening().refine(start)
    assert model.n_folds_ == min(3, n_labeled)
    assert np.isfinite(model.labels_).all()
    assert model.prior_in_unlabeled_ == 1e-4
    assert model.n_called_ >= 1
    assert np.ptp(model.labels_[start.unlabeled]) > 0


def test_room_grows_with_the_prior():
    start, _ = problem(n_hidden=500, n_negative=3_000)
    model = small(max_hard=100).refine(start)
    assert len(model.hard_) >= 1_000


def test_no_time_left_stops_after_the_screen():
    start, _ = problem(deadline=Deadline(0.0))
    began = time.perf_counter()
    model = screening(n_trees=3_000).refine(start)
    assert time.perf_counter() - began < 5
    assert model.learner_ == "screen"
    assert np.isfinite(model.decision_function(start.Z[:5])).all()


def test_little_time_spares_the_forest():
    start, _ = problem(n_negative=1_000, deadline=Deadline(0.0))
    model = small().refine(start)
    assert model.learner_ == "boosting"
    assert list(model.close_) == ["boosting"]


@pytest.mark.parametrize(
    "bad",
    [
        {"rounds": 3},
        {"learner": "forrest"},
        {"folds": 1},
        {"screen_rows": 0},
        {"max_hard": 0.5},
        {"n_trees": 0},
        {"max_iter": 0},
        {"prior": 0.1},
        {"n_jobs": 0},
    ],
)
def test_bad_parameters_are_named(bad):
    start, _ = problem(n_negative=100)
    with pytest.raises(InvalidParameterError, match=next(iter(bad))):
        RankingRefiner(**bad).refine(start)


def test_one_class_is_refused():
    start, _ = problem(n_negative=100)
    with pytest.raises(InvalidInputError, match="labelled positive"):
        small().refine(replace(start, positive=np.zeros_like(start.positive)))
    with pytest.raises(InvalidInputError, match="unlabelled row"):
        small().refine(replace(start, positive=np.ones_like(start.positive)))


def test_an_answer_before_learning_is_refused():
    with pytest.raises(NotFittedError, match="refine"):
        RankingRefiner().decision_function(np.zeros((1, 2)))


def test_other_features_are_refused(fitted):
    with pytest.raises(InvalidInputError, match="features"):
        fitted[0].decision_function(np.zeros((3, FEATURES + 1)))
