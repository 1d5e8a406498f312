"""PU bagging: out-of-bag scores, bag sizes, the cut."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.svm import SVC

from denspu._random import Randomness
from denspu.methods import pu_bagging
from denspu.methods.pu_bagging import PUBagging, seen


@pytest.fixture
def data(make_blobs):
    return make_blobs(seed=10, n_labeled=40, n_hidden=60, n_negative=100, far=2.5)


def test_the_cut_follows_the_prior(data):
    X, y = data.X, data.y
    for prior, inside in ((0.5, 0.375), (0.3, 0.125)):
        model = PUBagging(n_bags=5, prior=prior, random_state=10).fit(X, y)
        assert model.prior_in_unlabeled_ == pytest.approx(inside)
        assert np.mean(model.oob_scores_ > model.cut_) == pytest.approx(
            inside, abs=0.01
        )


def test_scores_out_of_bag_come_from_bags_without_the_row(data):
    model = PUBagging(n_bags=6, prior=0.5, random_state=10).fit(data.X, data.y)
    free = np.flatnonzero(data.y == 0)
    Z = model.scale_(model.encoder_.transform(data.X[free]))
    rng = Randomness(10).numpy("bags")
    every, outside = [], []
    for fitted in model.estimators_:
        every.append(fitted.decision_function(Z))
        outside.append(~np.isin(free, rng.choice(free, 40, replace=True)))
    count = np.sum(outside, axis=0)
    by_others = np.sum(np.where(outside, every, 0), axis=0) / np.maximum(count, 1)
    assert (count < 6).any()
    np.testing.assert_allclose(model.oob_scores_[count > 0], by_others[count > 0])


@pytest.mark.parametrize(("size", "rows"), [("positives", 40), (25, 25), (0.5, 80)])
def test_bag_sizes(data, size, rows):
    sizes = []

    class Watched(SVC):
        def fit(self, X, y, sample_weight=None):
            sizes.append((int(y.sum()), int((y == 0).sum())))
            return super().fit(X, y, sample_weight)

    PUBagging(n_bags=2, bag_size=size, prior=0.5, estimator=Watched()).fit(
        data.X, data.y
    )
    assert sizes == [(40, rows)] * 2


def test_a_group_in_the_bag_counts_as_seen():
    groups = np.array([0, 0, 1, 1, 2])
    rows, drawn = np.arange(5), np.array([1])
    assert seen(rows, drawn, None).tolist() == [False, True, False, False, False]
    assert seen(rows, drawn, groups).tolist() == [True, True, False, False, False]


def test_large_bags_are_judged_by_trees(data, monkeypatch):
    model = PUBagging(n_bags=5, prior=0.5, random_state=10)
    assert isinstance(model.fit(data.X, data.y).estimators_[0], SVC)
    monkeypatch.setattr(pu_bagging, "KERNEL_CELLS", 10)
    assert isinstance(model.fit(data.X, data.y).estimators_[0], ExtraTreesClassifier)
    hidden = data.y == 0
    assert np.mean(model.predict(data.X[hidden]) == data.truth[hidden]) > 0.85
