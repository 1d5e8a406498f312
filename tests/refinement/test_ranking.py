"""The ranking for rare positives, on small problems with known answers."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score, roc_auc_score
from tests.refinement.starts import begin

from denspu._machine import Deadline
from denspu.detectors import DensityRatio
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.refinement import ranking
from denspu.refinement.ranking import RankingRefiner

FEATURES = 12


def rows(n_positive, n_negative, seed):
    """Positives lie in two corners and among negatives; nine features mean nothing."""
    rng = np.random.default_rng(seed)
    positive = rng.normal(size=(n_positive, FEATURES))
    side = np.where(np.arange(n_positive) % 2, 2.2, -2.2)
    positive[:, :3] = 0.7 * positive[:, :3] + side[:, None]
    negative = rng.normal(size=(n_negative, FEATURES))
    Z = np.concatenate([positive, negative]).astype(np.float32)
    Z[:, 3:] *= 2
    return Z, np.arange(len(Z)) < n_positive


def problem(n_labeled=60, n_hidden=60, n_negative=4_000, **changes):
    Z, truth = rows(n_labeled + n_hidden, n_negative, 0)
    positive = np.arange(len(Z)) < n_labeled
    share = n_hidden / (n_hidden + n_negative)
    return begin(Z, positive, **{"share": share, **changes}), truth


def small(**changes):
    settings = {"n_trees": 10, "max_iter": 30, "n_jobs": 1, "random_state": 0}
    return RankingRefiner(**{**settings, **changes})


def screening(**changes):
    """Return a refiner for which 4,000 rows are too many to look at closely."""
    return small(**{"screen_rows": 800, "max_hard": 800, **changes})


@pytest.fixture(scope="module")
def test_rows():
    return rows(100, 8_000, 99)


@pytest.fixture(scope="module")
def fitted():
    start, _ = problem()
    return screening().refine(start), start


def test_it_ranks_better_than_chance_the_boundary_and_the_screen(fitted, test_rows):
    model, start = fitted
    Z, truth = test_rows
    boundary = DensityRatio(around="positives", random_state=0)
    boundary.fit(start.Z, start.positive.astype(int))
    close = {name: model.checks_[name] for name in ("boosting", "forest", "both")}
    assert model.learner_ == max(close, key=close.get)
    screen = screening(rounds=1).refine(start)
    assert screen.learner_ == "screen"
    ours = average_precision_score(truth, model.decision_function(Z))
    assert ours > 20 * truth.mean()
    assert ours > average_precision_score(truth, boundary.score_samples(Z)) + 0.05
    assert ours > average_precision_score(truth, screen.decision_function(Z))


def test_no_row_is_scored_by_a_model_that_saw_it(test_rows):
    """Random labels cannot be told apart, unless a row vouches for itself."""
    Z = np.random.default_rng(0).normal(size=(800, FEATURES))
    model = small().refine(begin(Z, np.arange(800) < 130))
    assert max(model.checks_.values()) < 0.3, "AP of chance is 1 in 6"
    Z, truth = test_rows
    assert abs(roc_auc_score(truth, model.decision_function(Z)) - 0.5) < 0.25


@pytest.mark.parametrize("prior", ["refit", "start"])
def test_the_share_called_positive_follows_the_prior(fitted, test_rows, prior):
    start, Z = fitted[1], test_rows[0]
    true = start.prior_in_unlabeled
    model = screening(prior=prior).refine(start)
    called = model.labels_[start.unlabeled] > 0.5
    for share in (called, model.decision_function(Z) > 0):
        assert true / 3 < share.mean() < true * 3
    assert model.n_called_ == round(model.prior_in_unlabeled_ * len(called))
    if prior == "start":
        more = screening(prior="start").refine(replace(start, prior_in_unlabeled=0.05))
        moved = more.decision_function(Z) - model.decision_function(Z)
        assert moved.min() > 0
        np.testing.assert_allclose(moved, moved[0])


def test_a_known_prior_is_not_read_off_the_ranking(fitted):
    start = fitted[1]
    model = screening().refine(
        replace(start, prior_in_unlabeled=0.05, prior_known=True)
    )
    assert fitted[0].prior_ is not None
    assert model.prior_ is None
    assert model.n_called_ == pytest.approx(0.05 * start.unlabeled.sum(), abs=5)
    held = np.zeros(len(start.Z), dtype=bool)
    held[np.flatnonzero(start.free)[:30]] = True
    share = (12 + 30) / start.free.sum()
    known = replace(start, prior_in_unlabeled=share, prior_known=True, held_out=held)
    model = screening().refine(known)
    assert (model.labels_[start.free & ~held] > 0.5).sum() == 12


def test_seeds_threads_and_batches(fitted, test_rows, monkeypatch):
    model, start = fitted
    Z = test_rows[0][:300]
    answers = model.decision_function(Z)
    parts = [model.decision_function(Z[i : i + 7]) for i in range(0, 300, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), answers)
    monkeypatch.setattr(ranking, "BLOCK", 64)
    again = screening(n_jobs=2).refine(start)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.decision_function(Z), answers)
    other = screening(random_state=1).refine(start)
    assert (other.decision_function(Z) != answers).any()


def test_rows_that_fail_the_screen_stay_below(fitted, test_rows):
    model, Z = fitted[0], test_rows[0]
    screened = sum(m.decision_function(Z) for m in model.screen_) / len(model.screen_)
    failed = screened < model.screen_cut_
    answers = model.decision_function(Z)
    assert failed.mean() > 0.5
    assert (answers[failed] < 0).all()
    assert (np.diff(answers[failed][np.argsort(screened[failed])]) >= 0).all()


@pytest.mark.parametrize("learner", ["forest", "both"])
def test_a_named_learner_is_used(learner):
    start, truth = problem(n_negative=800)
    model = small(learner=learner).refine(start)
    assert model.learner_ == learner
    both = {"boosting", "forest"}
    assert set(model.close_) == (both if learner == "both" else {learner})
    assert roc_auc_score(truth, model.decision_function(start.Z)) > 0.9


def test_groups_reach_the_folds():
    start, _ = problem(n_negative=480)
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
    known = np.arange(len(start.Z)) >= len(start.Z) - 300
    told = small(rounds=1, screen_rows=50).refine(replace(start, known_negative=known))
    untold = small(rounds=1, screen_rows=50).refine(start)
    gap = untold.decision_function(odd).mean() - told.decision_function(odd).mean()
    assert gap > 1
    assert (told.labels_[known] == 0).all()
    assert (told.labels_[start.positive] == 1).all()


@pytest.mark.parametrize("n_labeled", [1, 2])
def test_very_few_positives_and_a_tiny_prior(n_labeled):
    start, _ = problem(n_labeled=n_labeled, n_negative=1_500, share=1e-4)
    model = screening().refine(start)
    assert model.n_folds_ == min(3, n_labeled)
    assert np.isfinite(model.labels_).all()
    assert model.prior_in_unlabeled_ == 1e-4
    assert model.n_called_ >= 1
    assert np.ptp(model.labels_[start.unlabeled]) > 0


def test_room_grows_with_the_prior():
    start, _ = problem(n_hidden=300, n_negative=1_500)
    assert len(small(max_hard=100).refine(start).hard_) >= 750


def test_short_time_stops_after_the_screen_or_spares_the_forest():
    start, _ = problem(deadline=Deadline(0.0))
    began = time.perf_counter()
    model = screening(n_trees=3_000).refine(start)
    assert time.perf_counter() - began < 5
    assert model.learner_ == "screen"
    assert np.isfinite(model.decision_function(start.Z[:5])).all()
    start, _ = problem(n_negative=800, deadline=Deadline(0.0))
    assert list(small().refine(start).close_) == ["boosting"]


def test_refusals(fitted):
    start, _ = problem(n_negative=100)
    with pytest.raises(InvalidParameterError, match=r"'learner'.*'n_jobs'"):
        RankingRefiner(learner="forrest", n_jobs=0).refine(start)
    for given, missing in ((False, "labelled positive"), (True, "unlabelled row")):
        one_class = replace(start, positive=np.full_like(start.positive, given))
        with pytest.raises(InvalidInputError, match=missing):
            small().refine(one_class)
    with pytest.raises(NotFittedError, match="refine"):
        RankingRefiner().decision_function(np.zeros((1, 2)))
    with pytest.raises(InvalidInputError, match="features"):
        fitted[0].decision_function(np.zeros((3, FEATURES + 1)))
