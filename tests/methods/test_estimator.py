"""The house of methods around a classifier: rows, seeds, weights, hold-outs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from denspu import make
from denspu.exceptions import InvalidParameterError
from denspu.methods import _classical
from denspu.methods._classical import (
    RowScale,
    cross_calibrated,
    default_estimator,
    learn_calibration,
    margins,
    weight_argument,
)
from denspu.methods.rank_pruning import noise_rate
from denspu.methods.spy import mark_positives


def test_scale_divides_by_one_number():
    Z = np.array([[0.0, 10.0], [2.0, 10.0], [4.0, 13.0]])
    scaled = RowScale.of(Z)(Z)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    assert np.isclose(scaled.var(axis=0).mean(), 1)
    assert scaled[:, 0].std() > scaled[:, 1].std()
    assert np.isfinite(RowScale.of(np.ones((3, 2)))(np.ones((3, 2)))).all()


def test_auto_is_a_kernel_machine_or_trees():
    assert isinstance(default_estimator(10_000, True), SVC)
    assert default_estimator(10_000, False).class_weight is None
    assert not isinstance(default_estimator(10_001, True), SVC)


def test_margins_are_log_odds_of_class_one():
    model = RandomForestClassifier(5, random_state=0)
    X = np.arange(8.0)[:, None]
    model.fit(X, np.arange(8) > 3)
    expected = np.clip(model.predict_proba(X)[:, 1], 1e-6, 1 - 1e-6)
    np.testing.assert_allclose(margins(model, X), logit(expected))
    linear = LogisticRegression().fit(X, np.arange(8) > 3)
    np.testing.assert_allclose(expit(margins(linear, X)), linear.predict_proba(X)[:, 1])


def test_a_pipeline_gives_the_same_answer_twice(blobs):
    pipe = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    first, second = (
        make("elkan_noto", estimator=pipe, random_state=10)
        .fit(blobs.X, blobs.y)
        .decision_function(blobs.X)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_weights_reach_the_last_step_or_are_refused():
    weight = np.ones(3)
    pipe = make_pipeline(StandardScaler(), make_pipeline(LogisticRegression()))
    name = "pipeline__logisticregression__sample_weight"
    assert list(weight_argument(pipe, weight)) == [name]
    with pytest.raises(
        InvalidParameterError, match="KNeighborsClassifier cannot weigh"
    ):
        weight_argument(KNeighborsClassifier(), weight)


def test_hold_out_takes_a_share_and_whole_groups():
    positive = np.arange(100) < 40
    rng = np.random.default_rng(0)
    assert mark_positives(positive, None, 0.15, rng).sum() == 6
    groups = np.arange(100) // 4
    held = mark_positives(positive, groups, 0.15, rng)
    assert 6 <= held.sum() <= 8
    assert not (held & ~positive).any()
    assert not set(groups[held]) & set(groups[positive & ~held])
    alone = mark_positives(positive, np.zeros(100, dtype=int), 0.15, rng)
    assert 1 <= alone.sum() < 40
    two = mark_positives(np.arange(4) < 2, None, 0.9, rng)
    assert two.sum() == 1


def test_calibration_finds_known_probabilities():
    rng = np.random.default_rng(10)
    scores = rng.normal(size=4000)
    labelled = rng.random(4000) < expit(2 * scores - 1)
    for kind in ("isotonic", "sigmoid"):
        found = learn_calibration(kind, scores, labelled)(scores)
        assert np.abs(found - expit(2 * scores - 1)).mean() < 0.03
    assert learn_calibration(None, scores, labelled)(np.zeros(1)) == 0.5


def test_cross_calibration_leaves_the_own_fold_out():
    """Scores without meaning: in-sample steps follow the labels, others do not."""
    rng = np.random.default_rng(10)
    scores, labelled = rng.normal(size=400), rng.random(400) < 0.5
    fold = np.arange(400) % 5
    own = learn_calibration("isotonic", scores, labelled)(scores)
    others = cross_calibrated("isotonic", scores, labelled, fold)

    def gap(g):
        return g[labelled].mean() - g[~labelled].mean()

    assert gap(own) > 0
    assert gap(others) < gap(own)


@pytest.mark.parametrize("key", ["elkan_noto", "rank_pruning"])
def test_no_classifier_judges_a_group_it_has_seen(key):
    """Rows of a group share their first column; half of them carry a label."""
    seen = []

    class Acquainted(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            self.known_ = set(X[:, 0])
            return super().fit(X, y, sample_weight)

        def decision_function(self, X):
            seen.append(len(self.known_ & set(X[:, 0])))
            return super().decision_function(X)

    rng = np.random.default_rng(10)
    groups = np.repeat(np.arange(30), 4)
    X = np.column_stack([groups % 7 + groups / 100, rng.normal(size=120)])
    y = (np.arange(120) % 4 < 2) & (groups < 20)
    model = make(
        key, estimator=Acquainted(), encoder="identity", folds=4, random_state=10
    )
    model.fit(X, y.astype(int), groups=groups)
    assert seen[:4] == [0, 0, 0, 0]
    seen.clear()
    model.fit(X, y.astype(int))
    assert min(seen[:4]) > 10


@pytest.mark.parametrize("key", ["elkan_noto", "rank_pruning"])
def test_methods_calibrate_on_other_folds(key, monkeypatch):
    """Scores without meaning, so that in-sample steps would follow the labels."""

    class Given(LogisticRegression):
        def decision_function(self, X):
            return X[:, 0]

    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(90, 2)), (np.arange(90) < 30).astype(int)
    fold = rng.permutation(90) % 3
    monkeypatch.setattr(_classical.EstimatorTask, "folds", lambda *_: fold)
    model = make(
        key,
        estimator=Given(),
        encoder="identity",
        calibration="isotonic",
        random_state=10,
    ).fit(X, y)
    labelled, g = y == 1, np.empty(90)
    for k in range(3):
        own = fold == k
        steps = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        g[own] = steps.fit(X[~own, 0], y[~own]).predict(X[own, 0])
    inside = learn_calibration("isotonic", X[:, 0], labelled)(X[:, 0])
    found, by_hand, in_sample = (
        (model.label_frequency_, g[labelled].mean(), inside[labelled].mean())
        if key == "elkan_noto"
        else (
            model.noise_rate_,
            noise_rate(g, labelled, ~labelled, fold),
            noise_rate(inside, labelled, ~labelled, fold),
        )
    )
    assert found == pytest.approx(by_hand)
    assert abs(by_hand - in_sample) > 0.01


def test_a_network_sees_the_images(tiny_images, monkeypatch):
    X, y = tiny_images
    shapes = []

    class Bright(LogisticRegression):
        inputs = ("image",)

        def fit(self, X, y, sample_weight=None):
            shapes.append(X.shape[1:])
            return super().fit(X.reshape(len(X), -1), y, sample_weight)

        def decision_function(self, X):
            return super().decision_function(X.reshape(len(X), -1))

    model = make("spy", estimator=Bright(), random_state=10)
    monkeypatch.setattr(_classical.EmbeddingPU, "_fit", None)  # no encoder is needed
    scores = model.fit(X, y).decision_function(X)
    assert set(shapes) == {(8, 8, 3)}
    assert scores[:12].mean() > scores[12:].mean()
