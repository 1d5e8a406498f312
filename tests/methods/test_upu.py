"""uPU: the risk, its closed form, and a stop where the risk says it is overfitted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from denspu import make_pu
from denspu.exceptions import InvalidParameterError
from denspu.methods.upu import UPU


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(200) % 2 == 0).astype(int)
    X = rng.normal(size=(200, 5)) + 1.2 * (2 * truth - 1)[:, None]
    return make_pu(X, truth, n_labeled=0.3, random_state=10)


def fit(pu, **settings):
    usual = {"prior": 0.5, "network": "linear", "random_state": 10, "device": "cpu"}
    return UPU(**{**usual, **settings}).fit(pu.X, pu.y)


def test_it_learns(pu):
    hidden = pu.y == 0
    untrained = fit(pu, epochs=1, lr=1e-12)
    model = fit(pu, epochs=60, lr=0.02)
    truth = pu.oracle.labels[hidden]
    before, after = (
        roc_auc_score(truth, m.decision_function(pu.X[hidden]))
        for m in (untrained, model)
    )
    assert after > 0.97 > before
    assert np.mean(model.predict(pu.X[hidden]) == truth) > 0.9


def test_training_ends_when_the_risk_is_negative(pu):
    """A wide network on few rows learns P by heart within the epochs allowed."""
    few = slice(0, 60)
    X, y = pu.X[few], pu.y[few]
    settings = {"prior": 0.5, "random_state": 10, "device": "cpu", "lr": 1e-3}
    stopped = UPU(epochs=60, **settings).fit(X, y)
    risks = stopped.history_.column("loss")
    assert len(risks) < 60
    assert risks[-1] < 0 <= min(risks[:-1])
    assert "below 0" in stopped.history_.stopped
    assert stopped.epochs_ == {"upu": len(risks)}


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_the_stop_can_be_moved_and_switched_off(pu):
    early = fit(pu, epochs=20, lr=0.02, stop_below=0.49)
    late = fit(pu, epochs=20, lr=0.02, stop_below=None)
    assert len(early.history_) < len(late.history_) == 20
    settings = {"prior": 0.5, "random_state": 10, "device": "cpu", "lr": 1e-3}
    model = UPU(epochs=40, stop_below=None, **settings).fit(pu.X[:60], pu.y[:60])
    assert len(model.history_) == 40
    assert model.history_.last["loss"] < 0


def test_squared_loss_closed_form():
    """With l(z) = (z - 1)²/4 the risk is quadratic: descent finds the formula.

    A check of the risk itself, apart from networks: w = (KᵀK/n + λI)⁻¹ (2π k_P - k_U).
    """
    rng = np.random.default_rng(10)
    P, U = rng.normal(1, 1, (30, 3)), rng.normal(0, 1, (80, 3))
    prior, ridge = 0.4, 0.1
    gram = U.T @ U / len(U) + ridge * np.eye(3)
    wanted = np.linalg.solve(gram, 2 * prior * P.mean(0) - U.mean(0))
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    p, u = torch.tensor(P), torch.tensor(U)

    def squared(z):
        return (z - 1).square() / 4

    for _ in range(400):
        risk = prior * squared(p @ w).mean() + squared(-(u @ w)).mean()
        risk = risk - prior * squared(-(p @ w)).mean() + ridge / 4 * w.square().sum()
        (slope,) = torch.autograd.grad(risk, w)
        w = (w - 0.5 * slope).detach().requires_grad_()
    np.testing.assert_allclose(w.detach().numpy(), wanted, atol=1e-8)


def test_the_prior_reaches_the_training(pu):
    low, high = (
        np.mean(fit(pu, epochs=40, lr=0.02, prior=p).predict(pu.X)) for p in (0.3, 0.8)
    )
    assert low < high


def test_same_seed_same_answers(pu):
    one, two = (fit(pu, epochs=3).decision_function(pu.X) for _ in range(2))
    assert np.array_equal(one, two)
    other = fit(pu, epochs=3, random_state=11).decision_function(pu.X)
    assert not np.array_equal(one, other)


def test_a_bad_limit_is_named(pu):
    with pytest.raises(InvalidParameterError, match="'stop_below' parameter of UPU"):
        fit(pu, stop_below="never")
