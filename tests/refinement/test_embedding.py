"""The refiner on embeddings: it learns, keeps what is known, and stays in its time."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, roc_auc_score
from tests.refinement.starts import begin

from denspu._machine import Deadline
from denspu.detectors import DensityRatio
from denspu.exceptions import FewRowsWarning, InvalidParameterError
from denspu.refinement import EmbeddingRefiner
from denspu.refinement.embedding import (
    Rows,
    leading_axes,
    log_odds_slope,
    parts,
    sure,
)


class Task:
    """Embeddings, truth, and the boundary's scores as the walk would hand them on."""

    def __init__(self, X, truth, n_labeled, seed=0):
        rng = np.random.default_rng(seed)
        self.Z, self.truth = X, truth.astype(bool)
        self.positive = np.zeros(len(X), dtype=bool)
        drawn = rng.choice(np.flatnonzero(self.truth), n_labeled, replace=False)
        self.positive[drawn] = True
        self.unlabeled = ~self.positive

    def start(self, **changes):
        detector = DensityRatio(around="positives", n_positives=5, device="cpu")
        detector.fit(self.Z, self.positive.astype(int))
        self.inside = detector.predict(self.Z) == 1
        share = self.truth[self.unlabeled].mean()
        changes = {"scores": detector.score_samples(self.Z), "share": share, **changes}
        return begin(self.Z, self.positive, **changes)

    def f1(self, called):
        return f1_score(self.truth[self.unlabeled], called[self.unlabeled])


def gaussians(n=200, prior=0.4, n_labeled=30, gap=3.0):
    rng = np.random.default_rng(0)
    truth = np.arange(n) < round(prior * n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += np.where(truth, gap, 0)
    return Task(X, truth, n_labeled)


def quick(**options):
    return EmbeddingRefiner(**{"folds": 3, "n_bags": 3, "random_state": 0, **options})


@cache
def refined():
    """Return one refiner, what it started from, and its task."""
    task = gaussians()
    start = task.start()
    return quick().refine(start), start, task


@pytest.mark.parametrize("name", ["gaussians", "moons"])
def test_it_beats_its_start(name):
    task, least = gaussians(n=300, gap=2.0, n_labeled=40), 0.65
    if name == "moons":
        task, least = Task(*make_moons(400, noise=0.2, random_state=1), 40, 1), 0.85
    refiner = quick(n_bags=6).refine(task.start())
    after = refiner.decision_function(task.Z) > 0
    assert task.f1(after) > max(least, task.f1(task.inside) + 0.01)
    assert task.f1(refiner.labels_ > 0.5) > least
    share = task.truth[task.unlabeled].mean()
    assert refiner.prior_.prior_in_unlabeled == pytest.approx(share, abs=0.12)


@pytest.mark.parametrize(("prior", "share"), [("refit", 0.15), ("start", 0.5)])
def test_a_known_share_stands_and_an_estimate_is_kept_apart(prior, share):
    """The scores speak for 0.3; the cut follows what is known, in every round."""
    task = gaussians()
    refiner = quick(prior=prior).refine(task.start(share=share, prior_known=True))
    found = refiner.prior_
    assert found.prior_in_unlabeled == found.low == found.high == share
    called = refiner.labels_[task.unlabeled] > 0.5
    assert called.mean() == pytest.approx(share, abs=1 / len(called))
    assert hasattr(refiner, "estimated_") == (prior == "refit")
    if prior == "refit":
        truth = task.truth[task.unlabeled].mean()
        assert refiner.estimated_.prior_in_unlabeled == pytest.approx(truth, abs=0.1)
        assert refined()[0].estimated_ == refined()[0].prior_


def test_a_known_share_is_that_of_all_of_u():
    """Also where a sample stands for U while the models are trained."""
    task = gaussians(n=1000, gap=1.5)
    start = task.start(share=0.3, prior_known=True)
    refiner = quick(max_unlabeled=150).refine(start)
    assert len(refiner.labels_) == 1000
    assert refiner.prior_.n_unlabeled == 970
    called = refiner.labels_[task.unlabeled] > 0.5
    assert called.mean() == pytest.approx(0.3, abs=1 / len(called))
    fresh = refiner.decision_function(task.Z[task.unlabeled]) > 0
    assert fresh.mean() == pytest.approx(0.3, abs=0.04)
    assert called[fresh].mean() > 0.9


def test_an_estimated_share_of_the_boundary_sets_the_cut():
    task = gaussians()
    refiner = quick(prior="start", draws="start").refine(task.start(share=0.6))
    called = refiner.labels_[task.unlabeled] > 0.5
    assert called.mean() == pytest.approx(0.6, abs=0.01)


def test_labels_that_mean_nothing_teach_nothing():
    task = gaussians()
    rng = np.random.default_rng(0)
    shuffled = Task(task.Z, rng.permutation(task.truth), 30)
    refiner = quick(rounds=1).refine(shuffled.start())
    hidden = shuffled.truth[shuffled.unlabeled]
    assert 0.35 < roc_auc_score(hidden, refiner.labels_[shuffled.unlabeled]) < 0.65


def test_same_seed_same_answer_alone_and_in_company():
    first, start, task = refined()
    again, other = quick().refine(start), quick(random_state=1).refine(start)
    assert np.array_equal(first.labels_, again.labels_)
    assert not np.array_equal(first.labels_, other.labels_)
    together = first.decision_function(task.Z[:7])
    assert np.array_equal(together, again.decision_function(task.Z[:7]))
    alone = [first.decision_function(row[None])[0] for row in task.Z[:7]]
    assert np.allclose(together, alone, rtol=1e-9, atol=1e-9)


def test_known_negatives_stay_and_push_their_surroundings_down():
    plain, _, task = refined()
    corner = task.truth & task.unlabeled & (task.Z[:, 1] > 0)
    known = corner & (np.cumsum(corner) % 2 == 0)  # a hard case
    told = quick().refine(task.start(known_negative=known))
    assert (told.labels_[known] == 0).all()
    assert (told.labels_[task.positive] == 1).all()
    free = task.unlabeled & ~known
    assert ((told.labels_[free] > 0) & (told.labels_[free] < 1)).all()
    assert told.prior_.n_unlabeled == free.sum()
    rest = corner & ~known
    assert told.labels_[rest].mean() < plain.labels_[rest].mean() - 0.05


# --- held out -------------------------------------------------------------------------


def test_no_group_is_on_both_sides():
    task = gaussians(n=120, n_labeled=20)
    groups = np.random.default_rng(0).integers(12, size=120)
    rows = Rows(task.Z, task.positive, task.unlabeled, task.positive, None, groups)
    use = np.arange(120) % 5 > 0
    found = list(parts(rows, use, 4, 0))
    assert len(found) == 4
    for train, test in found:
        assert not set(groups[train]) & set(groups[test])
        assert use[train].all()
    assert sorted(np.concatenate([test for _, test in found])) == list(range(120))


def test_no_row_and_no_copy_of_it_in_its_group_vouches_for_it():
    """Labels at random, each row four times: a split group would tell them apart."""
    rng = np.random.default_rng(0)
    Z = np.repeat(rng.normal(size=(60, 3)), 4, axis=0)
    positive = np.repeat(rng.random(60) < 0.3, 4)
    start = begin(Z, positive)
    grouped = begin(Z, positive, groups=np.repeat(np.arange(60), 4))
    auc = [
        roc_auc_score(positive, quick(rounds=0).refine(one).unseen_scores_)
        for one in (grouped, start)
    ]
    assert auc[0] < 0.75 < 0.9 < auc[1]


def test_one_group_only_still_gives_an_answer():
    task = gaussians(n=100, n_labeled=20)
    start = task.start(groups=np.zeros(100, dtype=int))
    with pytest.warns(FewRowsWarning, match="hold any out"):
        refiner = quick().refine(start)
    assert roc_auc_score(task.truth, refiner.decision_function(task.Z)) > 0.8
    assert refiner.prior_.prior_in_unlabeled == start.prior_in_unlabeled
    assert "held_out_recall" not in refiner.facts()
    assert not hasattr(refiner, "unseen_scores_")


@pytest.mark.parametrize(
    ("n", "prior", "n_labeled"), [(80, 0.3, 2), (60, 0.9, 45), (300, 0.02, 3)]
)
def test_few_positives_few_unlabelled_and_lopsided_priors(n, prior, n_labeled):
    task = gaussians(n=n, prior=prior, n_labeled=n_labeled)
    decision = quick().refine(task.start()).decision_function(task.Z)
    assert np.isfinite(decision).all()
    assert roc_auc_score(task.truth, decision) > 0.7


# --- time and small things ------------------------------------------------------------


def test_the_deadline_is_kept():
    task = gaussians()
    began = time.perf_counter()
    start = task.start(deadline=Deadline(0.5))
    refiner = quick(rounds=50, n_bags=500, tolerance=0).refine(start)
    assert time.perf_counter() - began < 4
    assert refiner.n_bags_ < 500
    spent = quick().refine(task.start(deadline=Deadline(0.0)))
    assert (spent.n_bags_, spent.changed_) == (1, [])


def test_rounds_end_when_labels_stand_still():
    refiner = quick(rounds=20).refine(gaussians(gap=8.0).start())
    assert len(refiner.changed_) < 20
    assert refiner.changed_[-1] < 0.005
    assert refiner.facts()["rounds"] == len(refiner.changed_)


def test_rows_near_the_cut_are_left_out_side_by_side():
    margin = np.array([-4.0, -3, -2, -1, 1, 2, 3, 4, 9])
    free = np.arange(9) < 8
    assert list(sure(margin, free, 0.25)) == [1, 1, 1, 0, 0, 1, 1, 1, 0]
    assert sure(margin, free, 0.0)[:8].all()


def test_wide_embeddings_keep_the_axes_that_spread_most():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(500, 200)) * np.r_[np.full(10, 9.0), np.ones(190)]
    axes = leading_axes(Z, 0)
    assert axes(Z).shape == (500, 64)
    assert np.var(axes(Z), axis=0)[:10].sum() > 0.9 * np.var(Z[:, :10], axis=0).sum()
    assert np.array_equal(axes(Z[3:4]), axes(Z)[3:4])
    narrow = Z[:, :100]
    assert np.array_equal(leading_axes(narrow, 0)(narrow), narrow)


def test_the_slope_is_that_of_the_log_odds():
    rng = np.random.default_rng(0)
    margin = rng.normal(size=50_000) * 2
    positive = rng.random(50_000) < 1 / (1 + np.exp(-1.7 * margin))
    labelled = positive & (rng.random(50_000) < 0.3)
    slope = log_odds_slope(margin[labelled], margin[~labelled], 0.3)
    assert slope == pytest.approx(1.7, rel=0.1)


def test_refusals():
    with pytest.raises(InvalidParameterError, match=r"'leave_out'.*'prior'"):
        quick(leave_out=1.0, prior=0.5).refine(refined()[1])
    with pytest.raises(NotFittedError, match="call refine"):
        EmbeddingRefiner().decision_function(np.zeros((2, 3)))
