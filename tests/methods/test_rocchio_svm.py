"""Roc-SVM: prototypes, clusters, rounds and the rule that keeps the first."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from denspu.exceptions import FewRowsWarning
from denspu.methods.rocchio_svm import (
    RocchioSVM,
    nearness,
    on_unit_sphere,
)


class Wedge:
    """Positives along one axis, negatives along two others and beside the positives."""

    def __init__(self, seed=15):
        rng = np.random.default_rng(seed)
        centres = ([3, 0, 0, 0], [0, 2, 0, 0], [0, 0, 3, 0], [2, 1.5, 1, 0])
        sizes = (120, 50, 50, 40)
        self.X = np.concatenate(
            [
                rng.normal(loc=centre, size=(size, 4))
                for centre, size in zip(centres, sizes, strict=True)
            ]
        )
        self.truth = (np.arange(260) < 120).astype(int)
        self.y = (np.arange(260) < 60).astype(int)


@pytest.fixture
def data():
    return Wedge()


def build(**parameters):
    return RocchioSVM(encoder="identity", random_state=10, **parameters)


def test_the_score_is_a_difference_of_cosines():
    rng = np.random.default_rng(0)
    unit = on_unit_sphere(rng.normal(size=(30, 4)))
    P, U = unit[:10], unit[10:]
    toward, away = 16 * P.mean(0) - 4 * U.mean(0), 16 * U.mean(0) - 4 * P.mean(0)
    expected = [
        x @ toward / np.linalg.norm(toward) - x @ away / np.linalg.norm(away)
        for x in unit
    ]
    np.testing.assert_allclose(nearness(unit, P, [U], 16, 4), expected, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1)
    assert np.isfinite(on_unit_sphere(np.zeros((2, 3)))).all()


def test_rounds_add_negatives(data):
    model = build().fit(data.X, data.y)
    assert np.mean(data.truth[model.negative_index_] == 0) > 0.8
    assert not data.y[model.negative_index_].any()
    assert model.n_rounds_ >= 2
    once = build(max_rounds=1).fit(data.X, data.y)
    assert once.n_rounds_ == 1


class Creeping(LogisticRegression):
    """Lets the next ``step`` free rows join in every round, whatever it has learned."""

    step = 1

    def fit(self, X, y, sample_weight=None):
        self.n_negative_ = int((np.asarray(y) == 0).sum())
        return super().fit(X, y, sample_weight)

    def decision_function(self, X):
        return np.where(np.arange(len(X)) < self.step, -1.0, 1.0)


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
@pytest.mark.parametrize(("step", "n", "rounds"), [(1, 1_900, 1), (2, 1_900, 9)])
def test_rounds_end_when_few_join(step, n, rounds, monkeypatch):
    """One row of 1,840 is fewer than 0.1 %; two are not."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(n, 4)) + 2 * (np.arange(n) < 960)[:, None]
    y = (np.arange(n) < 60).astype(int)
    monkeypatch.setattr(Creeping, "step", step)
    model = build(estimator=Creeping(), max_rounds=9).fit(X, y)
    assert model.n_rounds_ == rounds


def test_the_first_is_kept_where_the_last_rejects_too_much(data):
    kept = {
        share: build(max_rejected=share).fit(data.X, data.y) for share in (0.0, 1.0)
    }
    assert kept[0.0].rejected_ == kept[1.0].rejected_ > 0
    assert (kept[0.0].kept_, kept[1.0].kept_) == ("first", "last")
    assert kept[1.0].n_rounds_ > 1
    X = data.X
    assert kept[0.0].decision_function(X).mean() > kept[1.0].decision_function(X).mean()


def test_clusters_reach_the_fit(data):
    plain = build().fit(data.X, data.y)
    parted = build(n_clusters=5).fit(data.X, data.y)
    assert set(parted.negative_index_) < set(plain.negative_index_)
    hidden = data.y == 0
    assert np.mean(parted.predict(data.X[hidden]) == data.truth[hidden]) > 0.75


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DegenerateFitWarning")
def test_copies_of_few_rows_are_told_in_our_words():
    """Any warning of scikit-learn would be an error here."""
    X = np.repeat([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]], 20, axis=0)
    y = (np.arange(60) < 10).astype(int)
    words = r"40 first negatives are copies of 1 row\(s\); n_clusters=5 cannot be made"
    with pytest.warns(FewRowsWarning, match=words):
        build(n_clusters=5).fit(X, y)
    X[20:, 0] = np.arange(40) / 1000  # enough rows of their own: nothing to tell
    build(n_clusters=5).fit(X, y)


def test_alpha_and_beta_reach_the_fit(data):
    plain = build().fit(data.X, data.y)
    other = build(alpha=1.0, beta=0.0).fit(data.X, data.y)
    assert list(plain.negative_index_) != list(other.negative_index_)
