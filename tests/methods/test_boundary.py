"""The boundary: its contamination, its folds, its held-out figures."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.ensemble
from hypothesis import given
from hypothesis import strategies as st

from denspu._random import Randomness
from denspu.density import Midpoint, NoDensity
from denspu.detectors import IsolationForest, KNNDistance, LocalOutlierFactor
from denspu.exceptions import WeakBoundaryWarning
from denspu.methods import _boundary
from denspu.methods._boundary import (
    Boundary,
    HeldOutScores,
    draw_boundary,
    expected_loss,
    held_out_scores,
    held_out_threshold,
    judge,
    positive_folds,
    scores_of_positives,
)

Z = np.random.default_rng(0).normal(size=(30, 3))
FAR = np.random.default_rng(1).normal(loc=5, size=(40, 3))
FEW = Midpoint(n_pairs=20, s=5)


def seeded():
    return Randomness(0)


def forest(**settings):
    return IsolationForest(n_estimators=10, **settings)


# --- drawing it -----------------------------------------------------------------------


def test_ratio_is_encodings_over_embeddings():
    boundary = draw_boundary(Z, FEW, forest(), "ratio", seeded())
    assert boundary.n_dense == 100
    assert boundary.contamination == 30 / 100
    assert boundary.detector.contamination == 0.3


def test_ratio_never_exceeds_half():
    boundary = draw_boundary(Z, Midpoint(n_pairs=1, s=1), forest(), "ratio", seeded())
    assert boundary.contamination == 0.5


def test_without_density_the_papers_rounded_c():
    boundary = draw_boundary(Z, NoDensity(), forest(), "ratio", seeded())
    assert (boundary.n_dense, boundary.contamination) == (0, 0.005)


def test_a_number_is_taken_as_it_is():
    boundary = draw_boundary(Z, FEW, forest(), 0.2, seeded())
    assert boundary.contamination == boundary.detector.contamination == 0.2
    rows = np.concatenate([FEW.densify(Z, seeded().numpy("boundary/densify")), Z])
    assert np.mean(boundary.detector.predict(rows) == -1) == pytest.approx(
        0.2, abs=0.01
    )


def test_heldout_leaves_the_detectors_own_threshold():
    boundary = draw_boundary(Z, FEW, forest(), "heldout", seeded())
    assert boundary.detector.contamination == "auto"
    assert boundary.detector.threshold_ == -0.5


def test_a_detector_with_its_own_contamination_keeps_it():
    boundary = draw_boundary(Z, FEW, forest(contamination=0.1), "ratio", seeded())
    assert boundary.detector.contamination == 0.1


def test_the_detector_sees_embeddings_and_encodings():
    seen = []

    class Spy(IsolationForest):
        def _fit(self, rows, randomness):
            seen.append(rows)
            super()._fit(rows, randomness)

    given = Spy(n_estimators=2)
    boundary = draw_boundary(Z, FEW, given, "ratio", seeded())
    assert seen[0].shape == (130, 3)
    assert np.array_equal(seen[0][100:], Z)
    assert boundary.detector is not given
    assert not hasattr(given, "forest_")


def test_scikit_learns_detector_gets_a_threshold():
    """It has no ``threshold_``; the share asked for decides."""
    theirs = sklearn.ensemble.IsolationForest(n_estimators=10, random_state=0)
    boundary = draw_boundary(Z, FEW, theirs, 0.2, seeded())
    rows = np.concatenate([FEW.densify(Z, seeded().numpy("boundary/densify")), Z])
    below = boundary.detector.score_samples(rows) < boundary.detector.threshold_
    assert below.mean() == pytest.approx(0.2, abs=0.01)


# --- folds ----------------------------------------------------------------------------


@given(
    sizes=st.lists(st.integers(1, 6), min_size=2, max_size=12),
    seed=st.integers(0, 99),
)
def test_no_group_crosses_a_hold_out(sizes, seed):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    groups = np.random.default_rng(seed).permutation(groups)
    held_once = np.zeros(len(groups), int)
    folds = list(positive_folds(len(groups), groups, Randomness(seed)))
    assert len(folds) == min(5, len(sizes))
    for keep, held in folds:
        assert not set(groups[keep]) & set(groups[held])
        assert sorted([*keep, *held]) == list(range(len(groups)))
        held_once[held] += 1
    assert (held_once == 1).all()


@pytest.mark.parametrize(("n", "folds"), [(1, 0), (2, 2), (4, 4), (5, 5), (23, 5)])
def test_every_row_is_held_out_once(n, folds):
    found = list(positive_folds(n, None, seeded()))
    assert len(found) == folds
    if folds:
        assert sorted(np.concatenate([held for _, held in found])) == list(range(n))


def test_one_group_cannot_be_held_out():
    assert list(positive_folds(10, np.zeros(10), seeded())) == []


def test_folds_are_shuffled_by_the_seed():
    def first(seed):
        return next(positive_folds(30, None, Randomness(seed)))[1].tolist()

    assert first(0) == first(0)
    assert first(0) != first(1)


# --- held-out scores ------------------------------------------------------------------


def scores(checks=5, detector=None, densifier=FEW, groups=None, contamination=0.2):
    return held_out_scores(
        Z, FAR, densifier, detector or forest(), contamination, groups, checks, seeded()
    )


def test_each_check_holds_a_fifth_out():
    found = scores()
    assert [len(check.positive) for check in found] == [6] * 5
    assert all(len(check.unlabeled) == 40 for check in found)
    assert [len(check.dense) for check in found] == [15 * 5] * 5
    assert len(scores(checks=2)) == 2
    assert scores(checks=0) == []


def test_held_out_rows_are_not_seen_in_training():
    seen = []

    class Spy(LocalOutlierFactor):
        def _fit(self, rows, randomness):
            seen.append(rows)
            super()._fit(rows, randomness)

        def _score(self, rows):
            seen.append(rows)
            return super()._score(rows)

    held_out_scores(Z, FAR, NoDensity(), Spy(), 0.2, None, 1, seeded())
    trained, _, held = seen[:3]
    assert len(trained) == 24
    assert len(held) == 6
    assert not {tuple(row) for row in trained} & {tuple(row) for row in held}
    assert {tuple(row) for row in trained} | {tuple(row) for row in held} == {
        tuple(row) for row in Z
    }


def test_two_positives_are_too_few_to_hold_one_out():
    assert held_out_scores(Z[:2], FAR, FEW, forest(), 0.2, None, 5, seeded()) == []


def test_a_single_held_out_row_has_no_segment():
    found = held_out_scores(Z[:4], FAR, FEW, forest(), 0.2, None, 5, seeded())
    assert [len(check.dense) for check in found] == [0] * 4


def test_many_unlabelled_rows_are_sampled(monkeypatch):
    monkeypatch.setattr(_boundary, "CHECK_SAMPLE", 10)
    found = scores(checks=1)[0]
    assert (len(found.unlabeled), len(found.dense)) == (10, 10)


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
    assert np.mean(positive < cut) == pytest.approx(0.1)


def test_positives_are_scored_by_the_folds_that_held_them_out():
    checks = [check([5.0, 6.0], held=[2, 0]), check([7.0], held=[1])]
    assert scores_of_positives(Z[:3], None, checks).tolist() == [6.0, 7.0, 5.0]


def test_held_positions_are_those_of_the_scores():
    found = scores()
    assert sorted(np.concatenate([c.held for c in found])) == list(range(30))
    again = draw_boundary(
        np.delete(Z, found[0].held, axis=0), FEW, forest(), 0.2, seeded(), "check/0"
    )
    assert np.array_equal(
        found[0].positive, again.detector.score_samples(Z[found[0].held])
    )


def test_with_too_few_folds_no_positive_vouches_for_itself():
    """One fold of five: the detector's own leave-one-out scores stand in."""
    detector = KNNDistance(n_neighbors=3).fit(Z)
    found = scores_of_positives(Z, detector, [check([1.0], held=[0])])
    assert np.array_equal(found, detector._scores_by_others(Z))
    assert (found < detector.score_samples(Z)).all()


def test_a_detector_of_others_scores_as_it_can():
    theirs = sklearn.ensemble.IsolationForest(n_estimators=10, random_state=0).fit(Z)
    assert np.array_equal(scores_of_positives(Z, theirs, []), theirs.score_samples(Z))


# --- judging it -----------------------------------------------------------------------

BOUNDARY = Boundary(None, 0.25, 10)


def test_expected_loss_is_eq_4():
    assert expected_loss(0.1, fn=0.5, fp=0.2) == pytest.approx(0.1 * 0.5 + 0.9 * 0.2)
    assert expected_loss(0.3, fn=1.0, fp=0.0) == pytest.approx(0.3)
    assert expected_loss(0.3, fn=0.0, fp=1.0) == pytest.approx(0.7)


def test_judge_by_hand():
    checks = [
        check([1, 3], dense=[2, 0, 5, 5], unlabeled=[0, 2], threshold=1.0),
        check([4, 5], dense=[9], unlabeled=[0, 2], threshold=4.5),
    ]
    facts = judge(checks, BOUNDARY)
    assert facts == {
        "held_out_positives": 4,
        "held_out_inlier_share": 3 / 4,  # 1 and 3 over 1.0, 5 over 4.5
        "auc_held_out_vs_unlabeled": pytest.approx((3 / 4 + 1) / 2),
        "expected_loss": pytest.approx(0.25 * 3 / 4 + 0.75 * 1 / 5),
    }


def test_judge_with_another_threshold():
    checks = [check([1, 3, 4], dense=[2, 0], unlabeled=[0, 0], threshold=9.0)]
    facts = judge(checks, BOUNDARY, threshold=2.0)
    assert facts["held_out_inlier_share"] == pytest.approx(2 / 3)
    assert facts["expected_loss"] == pytest.approx(0.25 * 2 / 3 + 0.75 * 1 / 2)


def test_no_embeddings_no_expected_loss():
    assert "expected_loss" not in judge([check([1, 2])], BOUNDARY)


def test_a_boundary_at_chance_warns():
    rng = np.random.default_rng(0)
    same = check(rng.normal(size=50), unlabeled=rng.normal(size=50))
    with pytest.warns(WeakBoundaryWarning, match=r"AUC 0\.\d\d, chance is 0.5"):
        judge([same], BOUNDARY)


@pytest.mark.parametrize(("wins", "warns"), [(54, True), (56, False)])
def test_where_chance_ends(wins, warns):
    """Positives above ``wins`` of 100 unlabelled rows have AUC wins/100."""
    unlabeled = np.r_[np.zeros(wins), np.full(100 - wins, 2.0)]
    assert count_warnings(np.ones(3_000), np.tile(unlabeled, 30)) == warns


@pytest.mark.parametrize(("n", "warns"), [(20, True), (500, False)])
def test_few_positives_prove_less(n, warns):
    unlabeled = np.r_[np.zeros(600), np.full(400, 2.0)]  # AUC 0.6
    assert count_warnings(np.ones(n), unlabeled) == warns


def count_warnings(positive, unlabeled):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        judge([check(positive, unlabeled=unlabeled)], BOUNDARY)
    return len(caught)
