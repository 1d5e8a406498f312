"""The boundary: its contamination, its folds, its held-out figures."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.ensemble

from denspu._random import Randomness
from denspu.density import Midpoint, NoDensity
from denspu.detectors import IsolationForest, KNNDistance, LocalOutlierFactor
from denspu.exceptions import WeakBoundaryWarning
from denspu.methods import _boundary
from denspu.methods._boundary import (
    BoundaryParts,
    HeldOutScores,
    held_out_scores,
    held_out_threshold,
    judge,
    positive_folds,
    scores_of_positives,
)

Z = np.random.default_rng(0).normal(size=(30, 3))
FAR = np.random.default_rng(1).normal(loc=5, size=(40, 3))
FEW = Midpoint(n_pairs=20, s=5)


def forest(**settings):
    return IsolationForest(n_estimators=10, **settings)


def parts(densifier=FEW, detector=None, contamination="ratio"):
    detector = forest() if detector is None else detector
    return BoundaryParts(densifier, detector, contamination, Randomness(0))


def fitted(found, Z=Z):
    dense = found.densified(Z, "boundary/densify")
    detector, share = found.fitted(Z, dense, "boundary", FAR)
    return detector, share, np.concatenate([dense, Z])


@pytest.mark.parametrize(
    ("densifier", "asked", "share"),
    [
        (FEW, "ratio", 30 / 100),
        (Midpoint(n_pairs=1, s=1), "ratio", 0.5),  # never more than half
        (NoDensity(), "ratio", 0.005),  # the paper's, rounded
        (FEW, 0.2, 0.2),
    ],
)
def test_the_share_left_outside(densifier, asked, share):
    detector, found, rows = fitted(parts(densifier, contamination=asked))
    assert found == detector.contamination == share
    assert np.mean(detector.predict(rows) == -1) == pytest.approx(
        share, abs=1 / len(rows)
    )


def test_heldout_leaves_the_detectors_own_threshold():
    detector, *_ = fitted(parts(contamination="heldout"))
    assert (detector.contamination, detector.threshold_) == ("auto", -0.5)
    own, share, _ = fitted(parts(detector=forest(contamination=0.1)))
    assert share == own.contamination == 0.1


def test_scikit_learns_detector_gets_a_threshold_and_is_not_fitted_itself():
    theirs = sklearn.ensemble.IsolationForest(n_estimators=10, random_state=0)
    detector, _, rows = fitted(parts(detector=theirs, contamination=0.2))
    below = detector.score_samples(rows) < detector.threshold_
    assert below.mean() == pytest.approx(0.2, abs=0.01)
    assert "estimators_" not in vars(theirs)


@pytest.mark.parametrize(("n", "folds"), [(1, 0), (2, 2), (4, 4), (23, 5)])
def test_every_row_is_held_out_once_and_no_group_is_split(n, folds):
    found = list(positive_folds(n, None, Randomness(0)))
    assert len(found) == folds
    if folds:
        assert sorted(np.concatenate([held for _, held in found])) == list(range(n))
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(n), 3))
    found = list(positive_folds(3 * n, groups, Randomness(0)))
    assert len(found) == folds
    for keep, held in found:
        assert not set(groups[keep]) & set(groups[held])


def test_each_check_holds_a_fifth_out(monkeypatch):
    found = held_out_scores(Z, FAR, parts(contamination=0.2), None, 5)
    assert [len(check.positive) for check in found] == [6] * 5
    assert [len(check.dense) for check in found] == [15 * 5] * 5
    assert sorted(np.concatenate([c.held for c in found])) == list(range(30))
    assert len(held_out_scores(Z, FAR, parts(), None, 2)) == 2
    assert held_out_scores(Z[:2], FAR, parts(), None, 5) == []
    few = held_out_scores(Z[:4], FAR, parts(), None, 5)
    assert [len(check.dense) for check in few] == [0] * 4
    monkeypatch.setattr(_boundary, "CHECK_SAMPLE", 10)
    [sampled] = held_out_scores(Z, FAR, parts(), None, 1)
    assert (len(sampled.unlabeled), len(sampled.dense)) == (10, 10)


def test_held_out_rows_are_not_seen_in_training():
    seen = []

    class Spy(LocalOutlierFactor):
        def _fit(self, rows, randomness):
            seen.append(rows)
            super()._fit(rows, randomness)

        def _score(self, rows):
            seen.append(rows)
            return super()._score(rows)

    held_out_scores(Z, FAR, parts(NoDensity(), Spy(), 0.2), None, 1)
    trained, _, held = ({tuple(row) for row in rows} for rows in seen[:3])
    assert (len(trained), len(held)) == (24, 6)
    assert trained | held == {tuple(row) for row in Z}


def check(positive, dense=(), unlabeled=(0.0,), threshold=0.0, held=None):
    return HeldOutScores(
        held=np.arange(len(positive)) if held is None else np.array(held),
        positive=np.array(positive, float),
        dense=np.array(dense, float),
        unlabeled=np.array(unlabeled, float),
        threshold=threshold,
    )


def test_held_out_threshold_leaves_a_tenth_outside():
    positive = np.random.default_rng(0).normal(size=200)
    cut = held_out_threshold([check(positive[:120]), check(positive[120:])])
    assert cut == np.quantile(positive, 0.1)


def test_no_positive_vouches_for_itself():
    checks = [check([5.0, 6.0], held=[2, 0]), check([7.0], held=[1])]
    assert scores_of_positives(Z[:3], None, checks).tolist() == [6.0, 7.0, 5.0]
    detector = KNNDistance(n_neighbors=3).fit(Z)  # it leaves a row out by itself
    found = scores_of_positives(Z, detector, [check([1.0], held=[0])])
    assert np.array_equal(found, detector._scores_by_others(Z))
    assert (found < detector.score_samples(Z)).all()
    theirs = sklearn.ensemble.IsolationForest(n_estimators=10, random_state=0).fit(Z)
    assert np.array_equal(scores_of_positives(Z, theirs, []), theirs.score_samples(Z))


def test_judge_by_hand():
    checks = [
        check([1, 3], dense=[2, 0, 5, 5], unlabeled=[0, 2], threshold=1.0),
        check([4, 5], dense=[9], unlabeled=[0, 2], threshold=4.5),
    ]
    assert judge(checks, 0.25) == {
        "held_out_positives": 4,
        "held_out_inlier_share": 3 / 4,  # 1 and 3 over 1.0, 5 over 4.5
        "auc_held_out_vs_unlabeled": pytest.approx((3 / 4 + 1) / 2),
        "expected_loss": pytest.approx(0.25 * 3 / 4 + 0.75 * 1 / 5),
    }
    moved = judge(checks[:1], 0.25, threshold=2.0)
    assert moved["held_out_inlier_share"] == 1 / 2
    assert moved["expected_loss"] == pytest.approx(0.25 / 2 + 0.75 / 4)
    assert "expected_loss" not in judge([check([1, 2])], 0.25)


@pytest.mark.parametrize(
    ("n", "wins", "warns"), [(3000, 54, True), (3000, 56, False), (20, 60, True)]
)
def test_a_boundary_at_chance_warns_and_few_positives_prove_less(n, wins, warns):
    """Positives above ``wins`` of 100 unlabelled rows have AUC wins/100."""
    unlabeled = np.tile(np.r_[np.zeros(wins), np.full(100 - wins, 2.0)], 30)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        judge([check(np.ones(n), unlabeled=unlabeled)], 0.25)
    assert [w.category for w in caught] == [WeakBoundaryWarning] * warns
