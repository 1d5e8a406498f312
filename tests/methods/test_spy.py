"""Spies: the threshold, the reliable negatives, naive Bayes with EM."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.naive_bayes import GaussianNB

from denspu.exceptions import SelectionWarning
from denspu.methods.spy import GaussianBayes, Spy, best_by_recall


@pytest.fixture
def data(make_blobs):
    return make_blobs(seed=10, n_labeled=60, n_hidden=60, n_negative=120, far=3.0)


@pytest.mark.parametrize("variant", ["classifier", "em"])
def test_reliable_negatives_are_pure(data, variant):
    model = Spy(variant=variant, random_state=10).fit(data.X, data.y)
    assert not data.y[model.negative_index_].any()
    assert np.mean(data.truth[model.negative_index_] == 0) > 0.8  # of U it is 0.67
    assert len(model.negative_index_) > 60
    hidden = data.y == 0
    assert np.mean(model.predict(data.X[hidden]) == data.truth[hidden]) > 0.9


def test_spies_stand_on_the_side_of_u_in_the_first_step(data):
    targets = []

    class Watched(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            targets.append(int(y.sum()))
            return super().fit(X, y, sample_weight)

    Spy(estimator=Watched(), random_state=10).fit(data.X, data.y)
    assert targets == [60 - 9, 60]
    targets.clear()
    Spy(estimator=Watched(), spy_share=0.5, random_state=10).fit(data.X, data.y)
    assert targets == [30, 60]


def test_naive_bayes_agrees_with_scikit_learn(data):
    hard = (data.truth == 1).astype(float)
    reference = GaussianNB(var_smoothing=1e-12).fit(data.X, data.truth)
    ours = GaussianBayes(data.X, hard)
    log_odds = np.diff(reference.predict_log_proba(data.X), axis=1)[:, 0]
    found = ours.decision_function(data.X)
    assert np.corrcoef(found, log_odds)[0, 1] > 0.999
    np.testing.assert_allclose(expit(found), expit(log_odds), atol=0.05)


def test_soft_labels_weigh_rows():
    Z = np.array([[0.0], [1.0], [10.0], [12.0]])
    model = GaussianBayes(Z, np.array([1.0, 0.5, 0.0, np.nan]))
    assert model.mean[1][0] == pytest.approx((0 + 0.5) / 1.5)
    assert model.mean[0][0] == pytest.approx((0.5 + 10) / 1.5)
    assert model.offset == pytest.approx(0)


def test_the_iterate_is_chosen_by_recall_squared_over_what_is_called():
    Z, positive = np.arange(10.0)[:, None], np.arange(10) < 4

    class Below:
        def __init__(self, cut):
            self.cut = cut

        def decision_function(self, Z):
            return self.cut - Z[:, 0]

    models = [Below(1.5), Below(4.5), Below(99.0)]
    assert best_by_recall(models, Z, positive) is models[1]


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DegenerateFitWarning")
def test_no_reliable_negative_is_told(data):
    known_low = Spy(noise_level=0.0, random_state=10)
    y = data.y
    X = np.zeros_like(data.X)  # all rows alike: none lies below the spies
    with pytest.warns(SelectionWarning, match="No unlabelled row looks reliably"):
        known_low.fit(X, y)
    assert len(known_low.negative_index_) > 0
