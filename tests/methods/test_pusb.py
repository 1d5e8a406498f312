"""PUSB: as many rows of U are called positive as there should be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denspu import make_pu
from denspu.methods.pusb import PUSB, share_cut


def data(mechanism="scar", scenario="one-sample"):
    rng = np.random.default_rng(10)
    truth = (np.arange(240) % 2 == 0).astype(int)
    X = rng.normal(size=(240, 4)) + 1.2 * (2 * truth - 1)[:, None]
    propensity = None if mechanism == "scar" else np.exp(X[:, 0])
    return make_pu(
        X,
        truth,
        n_labeled=0.3,
        mechanism=mechanism,
        propensity=propensity,
        scenario=scenario,
        random_state=10,
    )


@pytest.fixture(scope="module")
def pu():
    return data()


def fit(pu, **settings):
    usual = {"prior": 0.5, "network": "linear", "epochs": 60, "lr": 0.02}
    usual |= {"random_state": 10, "device": "cpu"}
    return PUSB(**{**usual, **settings}).fit(pu.X, pu.y)


@given(n=st.integers(1, 60), share=st.floats(0.01, 0.99), seed=st.integers(0, 20))
def test_the_papers_count_lies_strictly_above_the_cut(n, share, seed):
    scores = np.random.default_rng(seed).permutation(n).astype(float)
    above = int((scores > share_cut(scores, share)).sum())
    assert above == max(0, n - 1 - math.floor(n * (1 - share)))


@pytest.mark.parametrize("scenario", ["one-sample", "two-sample"])
@pytest.mark.parametrize("prior", [0.3, 0.5])
def test_the_share_called_positive_is_that_inside_u(scenario, prior):
    """One sample: P has left, so U holds a smaller share than the population."""
    pu = data(scenario=scenario)
    model = fit(pu, prior=prior, scenario=scenario)
    n = int((pu.y == 0).sum())
    inside = prior
    if scenario == "one-sample":
        inside = (prior * len(pu.y) - pu.y.sum()) / n
    called = int(model.predict(pu.X[pu.y == 0]).sum())
    assert called == n - 1 - math.floor(n * (1 - inside))


def test_the_cut_is_the_models_and_not_the_batchs(pu):
    """Only positives handed in: they are not cut in half."""
    model = fit(pu)
    sure = pu.X[pu.oracle.labels == 1]
    assert model.predict(sure).mean() > 0.85
    alone = [model.decision_function(row[None])[0] for row in sure[:3]]
    assert alone == pytest.approx(model.decision_function(sure)[:3], abs=1e-9)
    assert model.cut_ != 0


def test_the_risk_is_logistic(pu):
    """An untrained answer of 0 everywhere costs log 2, not 1/2."""
    import torch

    class Nothing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return self.weight * x[:, 0]

    model = PUSB(prior=0.5, network=Nothing(), epochs=1, device="cpu")
    model.fit(pu.X, pu.y)
    assert model.history_.last["loss"] == pytest.approx(math.log(2), abs=1e-5)
