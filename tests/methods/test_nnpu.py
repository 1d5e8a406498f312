"""nnPU: the step back, and what its two settings do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu import make_pu
from denspu.methods.nnpu import NNPU
from denspu.methods.upu import UPU


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(200) % 2 == 0).astype(int)
    X = rng.normal(size=(200, 5)) + 1.2 * (2 * truth - 1)[:, None]
    return make_pu(X, truth, n_labeled=0.3, random_state=10)


USUAL = {
    "prior": 0.5,
    "network": "linear",
    "epochs": 20,
    "lr": 0.02,
    "random_state": 10,
    "device": "cpu",
}


def fit(pu, **settings):
    return NNPU(**{**USUAL, **settings}).fit(pu.X, pu.y)


def test_it_is_upu_until_a_step_back_is_needed(pu):
    """A limit that B never reaches: the same steps as uPU's.

    Small samples are one batch, and its order makes the last digits.
    """
    free = fit(pu, beta=10.0)
    unbiased = UPU(**USUAL, stop_below=None).fit(pu.X, pu.y)
    start = free.module_.state_dict()
    for name, weight in unbiased.module_.state_dict().items():
        assert torch.allclose(weight, start[name], atol=1e-5)
    losses = [m.history_.column("loss") for m in (free, unbiased)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_the_risk_of_a_flexible_network_does_not_run_away(pu):
    X, y = pu.X[:60], pu.y[:60]
    settings = {**USUAL, "network": "mlp", "epochs": 40, "lr": 1e-3}
    kept = NNPU(**settings).fit(X, y)
    free = UPU(**settings, stop_below=None).fit(X, y)
    assert free.history_.last["loss"] < -0.2
    assert min(kept.history_.column("loss")) >= 0
    called = [np.mean(m.predict(X[y == 0])) for m in (kept, free)]
    assert called[0] > called[1]


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
@pytest.mark.parametrize("setting", [{"gamma": 0.1}, {"beta": 0.3}])
def test_settings_reach_the_training(pu, setting):
    X, y = pu.X[:60], pu.y[:60]
    settings = {**USUAL, "network": "mlp", "epochs": 25, "lr": 1e-3}
    plain = NNPU(**settings).fit(X, y)
    other = NNPU(**settings, **setting).fit(X, y)
    assert plain.history_.column("loss")[0] == other.history_.column("loss")[0]
    assert plain.history_.column("loss") != other.history_.column("loss")
