"""ImbPU: nnPU at the class prior itself, bolder for positives above it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import recall_score, roc_auc_score

from denspu import make_pu
from denspu.methods.imb_pu import ImbPU
from denspu.methods.nnpu import NNPU


@pytest.fixture(scope="module")
def pu():
    """Return overlapping classes with one positive in five."""
    rng = np.random.default_rng(10)
    truth = (np.arange(300) % 5 == 0).astype(int)
    X = rng.normal(size=(300, 4)) + 0.8 * truth[:, None]
    return make_pu(X, truth, n_labeled=0.5, random_state=10)


USUAL = {
    "prior": 0.2,
    "network": "linear",
    "epochs": 60,
    "lr": 0.02,
    "random_state": 10,
    "device": "cpu",
}


def fit(pu, **settings):
    return ImbPU(**{**USUAL, **settings}).fit(pu.X, pu.y)


def test_at_the_class_prior_it_is_nnpu(pu):
    same = fit(pu, balanced_prior=0.2)
    usual = NNPU(**USUAL).fit(pu.X, pu.y)
    np.testing.assert_allclose(
        same.decision_function(pu.X), usual.decision_function(pu.X), atol=1e-3
    )


def test_it_learns_and_finds_more_of_the_rare_class(pu):
    hidden = pu.y == 0
    truth = pu.oracle.labels[hidden]
    longer = {**USUAL, "epochs": 200}
    model, usual = (cls(**longer).fit(pu.X, pu.y) for cls in (ImbPU, NNPU))
    assert roc_auc_score(truth, model.decision_function(pu.X[hidden])) > 0.8
    found, before = (
        recall_score(truth, m.predict(pu.X[hidden])) for m in (model, usual)
    )
    assert found > before


def test_the_target_reaches_the_training(pu):
    called = [fit(pu, balanced_prior=t).predict(pu.X).mean() for t in (0.2, 0.5, 0.8)]
    assert called[0] < called[1] < called[2]
