"""The refiner on embeddings: it learns, keeps what is known, and stays in its time."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, roc_auc_score

from denspu._machine import Deadline
from denspu.base import RefinerInput
from denspu.detectors import DensityRatio
from denspu.exceptions import FewRowsWarning, InvalidParameterError
from denspu.refinement import EmbeddingRefiner, committee
from denspu.refinement.margins import cut_at, log_odds_slope
from denspu.refinement.rows import Rows, parts, sure


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(committee, "TREES", 30)


class Task:
    """Embeddings, truth, and the boundary's scores as the walk would hand them on."""

    def __init__(self, X, truth, n_labeled, seed=0):
        rng = np.random.default_rng(seed)
        self.Z, self.truth = X, truth.astype(bool)
        labelled = rng.choice(np.flatnonzero(self.truth), n_labeled, replace=False)
        self.positive = np.zeros(len(X), dtype=bool)
        self.positive[labelled] = True
        detector = DensityRatio(around="positives", n_positives=5, device="cpu")
        detector.fit(X, self.positive.astype(int))
        self.scores = detector.score_samples(X)
        self.inside = detector.predict(X) == 1
        self.unlabeled = ~self.positive

    def start(self, **changes):
        start = RefinerInput(
            X=self.Z,
            Z=self.Z,
            positive=self.positive,
            known_negative=np.zeros(len(self.Z), dtype=bool),
            groups=None,
            scores=self.scores,
            labels=self.positive.astype(float),
            prior_in_unlabeled=float(self.truth[self.unlabeled].mean()),
            prior_interval=(0.0, 1.0),
            encoder=None,
            deadline=Deadline(None),
        )
        return replace(start, **changes)

    def f1(self, called):
        return f1_score(self.truth[self.unlabeled], called[self.unlabeled])


def gaussians(n=400, prior=0.4, n_labeled=40, seed=0, gap=3.0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) < round(prior * n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += np.where(truth, gap, 0)
    return Task(X, truth, n_labeled, seed)


def moons():
    X, truth = make_moons(400, noise=0.2, random_state=1)
    return Task(X, truth, 40, seed=1)


def quick(**options):
    return EmbeddingRefiner(**{"folds": 3, "n_bags": 4, "random_state": 0, **options})


@pytest.mark.parametrize(
    ("task", "least"), [(gaussians(gap=2.0), 0.7), (moons(), 0.85)]
)
def test_it_beats_its_start(task, least):
    refiner = quick(n_bags=10).refine(task.start())
    after = refiner.decision_function(task.Z) > 0
    assert task.f1(after) > max(least, task.f1(task.inside) + 0.01)
    assert task.f1(refiner.labels_ > 0.5) > least
    share = task.truth[task.unlabeled].mean()
    assert refiner.prior_.prior_in_unlabeled == pytest.approx(share, abs=0.12)


@pytest.mark.parametrize("prior", ["refit", "start"])
@pytest.mark.parametrize("share", [0.15, 0.5])
def test_a_known_share_stands(prior, share):
    """The scores speak for 0.33; the cut follows what is known, in every round."""
    task = gaussians(gap=2.0)
    start = task.start(prior_in_unlabeled=share, prior_known=True)
    refiner = quick(prior=prior).refine(start)
    found = refiner.prior_
    assert found.prior_in_unlabeled == found.low == found.high == share
    called = refiner.labels_[task.unlabeled] > 0.5
    assert called.mean() == pytest.approx(share, abs=1 / len(called))


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_known_share_is_that_of_all_of_u(share):
    """Also where a sample stands for U while the models are trained."""
    task = gaussians(n=2000, gap=1.5)
    start = task.start(prior_in_unlabeled=share, prior_known=True)
    refiner = quick(max_unlabeled=200).refine(start)
    called = refiner.labels_[task.unlabeled] > 0.5
    assert called.mean() == pytest.approx(share, abs=1 / len(called))
    rest = np.flatnonzero(task.unlabeled)[called]
    fresh = refiner.decision_function(task.Z[task.unlabeled]) > 0
    assert fresh.mean() == pytest.approx(share, abs=0.03)
    assert np.isin(np.flatnonzero(task.unlabeled)[fresh], rest).mean() > 0.9


def test_an_estimate_is_made_and_kept_apart_where_the_share_is_known():
    task = gaussians(gap=3.0)
    known = quick().refine(task.start(prior_in_unlabeled=0.15, prior_known=True))
    truth = task.truth[task.unlabeled].mean()
    assert known.estimated_.prior_in_unlabeled == pytest.approx(truth, abs=0.1)
    alone = quick().refine(task.start())
    assert alone.estimated_ == alone.prior_
    start = task.start(prior_in_unlabeled=0.15, prior_known=True)
    assert not hasattr(quick(prior="start").refine(start), "estimated_")


def test_labels_that_mean_nothing_teach_nothing():
    task = gaussians()
    rng = np.random.default_rng(0)
    shuffled = Task(task.Z, rng.permutation(task.truth), 40)
    refiner = quick().refine(shuffled.start())
    hidden = shuffled.truth[shuffled.unlabeled]
    assert 0.4 < roc_auc_score(hidden, refiner.labels_[shuffled.unlabeled]) < 0.6


def test_same_seed_same_answer():
    task = gaussians(n=150, n_labeled=20)
    first, again = quick().refine(task.start()), quick().refine(task.start())
    other = quick(random_state=1).refine(task.start())
    assert np.array_equal(first.labels_, again.labels_)
    assert np.array_equal(
        first.decision_function(task.Z), again.decision_function(task.Z)
    )
    assert not np.array_equal(first.labels_, other.labels_)


def test_a_row_is_judged_alike_alone_and_in_company():
    task = gaussians(n=150, n_labeled=20)
    refiner = quick().refine(task.start())
    together = refiner.decision_function(task.Z[:7])
    alone = [refiner.decision_function(row[None])[0] for row in task.Z[:7]]
    assert np.allclose(together, alone, rtol=1e-9, atol=1e-9)


def test_what_is_known_stays():
    task = gaussians()
    known = np.zeros(len(task.Z), dtype=bool)
    known[np.flatnonzero(task.truth & task.unlabeled)[:30]] = True  # a hard case
    refiner = quick().refine(task.start(known_negative=known))
    assert (refiner.labels_[known] == 0).all()
    assert (refiner.labels_[task.positive] == 1).all()
    free = task.unlabeled & ~known
    assert ((refiner.labels_[free] > 0) & (refiner.labels_[free] < 1)).all()
    assert refiner.prior_.n_unlabeled == free.sum()


def test_known_negatives_push_their_surroundings_down():
    task = gaussians()
    corner = task.truth & task.unlabeled & (task.Z[:, 1] > 0)
    known = corner & (np.cumsum(corner) % 2 == 0)
    plain = quick().refine(task.start()).labels_
    told = quick().refine(task.start(known_negative=known)).labels_
    rest = corner & ~known
    assert told[rest].mean() < plain[rest].mean() - 0.05


def rows_of(task, groups=None):
    return Rows(
        Z=task.Z,
        positive=task.positive,
        free=task.unlabeled,
        labels=task.positive,
        scores=None,
        groups=groups,
    )


def test_no_group_is_on_both_sides():
    task = gaussians(n=120, n_labeled=20)
    groups = np.random.default_rng(0).integers(12, size=120)
    use = np.arange(120) % 5 > 0
    found = list(parts(rows_of(task, groups), use, 4, 0))
    assert len(found) == 4
    for train, test in found:
        assert not set(groups[train]) & set(groups[test])
        assert use[train].all()
    judged = np.concatenate([test for _, test in found])
    assert sorted(judged) == list(range(120))


def test_copies_in_one_group_do_not_vouch_for_each_other():
    """Labels at random, each row four times: a split group would tell them apart."""
    rng = np.random.default_rng(0)
    Z = np.repeat(rng.normal(size=(80, 3)), 4, axis=0)
    groups = np.repeat(np.arange(80), 4)
    truth = np.repeat(rng.random(80) < 0.5, 4)
    task = Task(Z, truth, int(truth.sum()) // 2)
    task.positive = np.repeat(truth[::4] & (rng.random(80) < 0.6), 4)
    task.unlabeled = ~task.positive
    task.scores = np.zeros(len(Z))
    refiner = quick(rounds=0, n_bags=6)
    seen = []
    refiner._cut = lambda rows, margin, *_: seen.append(margin) or margin
    refiner._final_labels = lambda *_: np.zeros(len(Z))
    refiner.prior_ = quick().refine(gaussians(n=60, n_labeled=9).start()).prior_
    refiner.refine(task.start(groups=groups))
    assert roc_auc_score(task.positive, seen[0]) < 0.7
    refiner.refine(task.start())
    assert roc_auc_score(task.positive, seen[1]) > 0.9


@pytest.mark.parametrize(
    ("n", "prior", "n_labeled"),
    [(200, 0.3, 5), (60, 0.9, 45), (300, 0.02, 3), (200, 0.98, 60)],
)
def test_few_positives_few_unlabelled_and_lopsided_priors(n, prior, n_labeled):
    task = gaussians(n=n, prior=prior, n_labeled=n_labeled)
    refiner = quick().refine(task.start())
    decision = refiner.decision_function(task.Z)
    assert np.isfinite(decision).all()
    assert roc_auc_score(task.truth, decision) > 0.7


def test_two_positives_give_finite_answers():
    task = gaussians(n=80, n_labeled=2)
    assert np.isfinite(quick().refine(task.start()).decision_function(task.Z)).all()


def test_one_group_only_still_gives_an_answer():
    task = gaussians(n=100, n_labeled=20)
    start = task.start(groups=np.zeros(100, dtype=int))
    with pytest.warns(FewRowsWarning, match="hold any out"):
        refiner = quick().refine(start)
    assert roc_auc_score(task.truth, refiner.decision_function(task.Z)) > 0.8
    assert refiner.prior_.prior_in_unlabeled == start.prior_in_unlabeled
    assert "held_out_recall" not in refiner.facts()


def test_a_large_u_is_sampled_and_all_rows_get_a_label():
    task = gaussians(n=600, n_labeled=40)
    refiner = quick(max_unlabeled=150).refine(task.start())
    assert len(refiner.labels_) == 600
    assert task.f1(refiner.labels_ > 0.5) > 0.8
    assert refiner.prior_.n_unlabeled == 560


def test_the_deadline_is_kept():
    task = gaussians(n=400)
    began = time.perf_counter()
    refiner = quick(rounds=50, n_bags=500, tolerance=0).refine(
        task.start(deadline=Deadline(1.0))
    )
    assert time.perf_counter() - began < 4
    assert refiner.n_bags_ < 500
    spent = quick().refine(task.start(deadline=Deadline(0.0)))
    assert (spent.n_bags_, spent.changed_) == (1, [])


def test_rounds_end_when_labels_stand_still():
    task = gaussians(gap=8.0)
    refiner = quick(rounds=20).refine(task.start())
    assert len(refiner.changed_) < 20
    assert refiner.changed_[-1] < 0.005
    assert refiner.facts()["rounds"] == len(refiner.changed_)


def test_the_given_prior_sets_the_cut():
    task = gaussians()
    for given in (0.1, 0.6):
        refiner = quick(prior="start").refine(task.start(prior_in_unlabeled=given))
        called = refiner.labels_[task.unlabeled] > 0.5
        assert called.mean() == pytest.approx(given, abs=0.01)


def test_rows_near_the_cut_are_left_out_side_by_side():
    margin = np.array([-4.0, -3, -2, -1, 1, 2, 3, 4, 9])
    free = np.arange(9) < 8
    assert list(sure(margin, free, 0.25)) == [1, 1, 1, 0, 0, 1, 1, 1, 0]
    assert sure(margin, free, 0.0)[:8].all()


@pytest.mark.parametrize(("share", "inside"), [(0, 0), (0.2, 1), (0.6, 3), (1, 5)])
def test_the_cut_leaves_the_share_above_it(share, inside):
    scores = np.array([3.0, 1.0, 5.0, 2.0, 4.0])
    assert (scores > cut_at(scores, share)).sum() == inside


def test_the_slope_is_that_of_the_log_odds():
    rng = np.random.default_rng(0)
    margin = rng.normal(size=100_000) * 2
    positive = rng.random(100_000) < 1 / (1 + np.exp(-1.7 * margin))
    labelled = positive & (rng.random(100_000) < 0.3)
    slope = log_odds_slope(margin[labelled], margin[~labelled], 0.3)
    assert slope == pytest.approx(1.7, rel=0.1)


@pytest.mark.parametrize(
    "options",
    [
        {"rounds": -1},
        {"folds": 1},
        {"n_bags": 0},
        {"leave_out": 1.0},
        {"tolerance": 2},
        {"prior": 0.5},
        {"max_unlabeled": 1},
    ],
)
def test_odd_parameters_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        quick(**options).refine(gaussians(n=40, n_labeled=5).start())


def test_an_answer_before_refining_is_refused():
    with pytest.raises(NotFittedError, match="call refine"):
        EmbeddingRefiner().decision_function(np.zeros((2, 3)))
