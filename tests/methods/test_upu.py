"""uPU: the risk, its closed form, and a stop where the risk says it is overfitted."""

from __future__ import annotations

import numpy as np
import pytest

from denspu import make_pu
from denspu.methods.upu import RIDGES, UPU, held_out_risks, least_risk, moments
from denspu.networks.backbones import KernelModel


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(200) % 2 == 0).astype(int)
    X = rng.normal(size=(200, 5)) + 1.2 * (2 * truth - 1)[:, None]
    return make_pu(X, truth, n_labeled=0.3, random_state=10)


WIDE = {"prior": 0.5, "network": "mlp", "random_state": 10, "device": "cpu"}


def fit(pu, **settings):
    usual = {"prior": 0.5, "network": "linear", "random_state": 10, "device": "cpu"}
    return UPU(**{**usual, **settings}).fit(pu.X, pu.y)


def test_training_ends_when_the_risk_is_negative(pu):
    """A wide network on few rows learns P by heart within the epochs allowed."""
    few = slice(0, 60)
    X, y = pu.X[few], pu.y[few]
    settings = {**WIDE, "lr": 1e-3}
    stopped = UPU(epochs=60, **settings).fit(X, y)
    risks = stopped.history_.column("loss")
    assert len(risks) < 60
    assert risks[-1] < 0 <= min(risks[:-1])
    assert "below 0" in stopped.history_.stopped
    assert stopped.epochs_ == {"upu": len(risks)}


# --- the closed form on Gaussian bumps -----------------------------------------------


@pytest.fixture(scope="module")
def rings():
    """Positives around the origin, negatives around them: no line parts them."""
    rng = np.random.default_rng(11)
    truth = (np.arange(400) % 2 == 0).astype(int)
    radius = np.where(truth == 1, 0.6, 2.0) + 0.2 * rng.normal(size=400)
    angle = rng.uniform(0, 2 * np.pi, 400)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return make_pu(X, truth, n_labeled=0.3, random_state=11)


def kernel(pu, **settings):
    usual = {"prior": 0.5, "random_state": 10, "device": "cpu"}
    return UPU(**{**usual, **settings}).fit(pu.X, pu.y)


def test_tables_take_the_kernel_and_it_bends(rings):
    hidden = rings.y == 0
    truth = rings.oracle.labels[hidden]
    model = kernel(rings)
    assert isinstance(model.module_, KernelModel)
    assert np.mean(model.predict(rings.X[hidden]) == truth) > 0.95
    assert model.epochs_ == {}
    line = kernel(rings, network="linear", epochs=60, lr=0.02)
    assert np.mean(line.predict(rings.X[hidden]) == truth) < 0.8


def test_the_weights_are_those_of_the_formula(rings):
    """Against NumPy on the basis written out, at the width and ridge chosen."""
    model = kernel(rings, n_centres=20)
    basis = model.module_.basis
    Z = model._as_vectors(rings.X).astype(np.float64)
    C = basis.centres.numpy().astype(np.float64)
    far = ((Z[:, None] - C[None]) ** 2).sum(-1)
    K = np.hstack([np.exp(-far / (2 * model.choice_.width**2)), np.ones((400, 1))])
    left = K.T @ K / 400 + model.choice_.ridge * np.eye(21)
    right = 2 * 0.5 * K[rings.y == 1].mean(axis=0) - K.mean(axis=0)
    wanted = K @ np.linalg.solve(left, right)
    np.testing.assert_allclose(model.decision_function(rings.X), wanted, atol=2e-3)


def test_the_held_out_risk_is_counted_on_rows_left_out():
    rng = np.random.default_rng(13)
    P, U = rng.normal(1, 1, (40, 3)), rng.normal(0, 1, (90, 3))
    out_p, out_u = np.arange(40) < 10, np.arange(90) < 30
    found = held_out_risks(P, U, out_p, out_u, 0.4)
    for ridge, risk in zip(RIDGES, found, strict=True):
        gram, of_pool = moments([U[30:]])
        w = least_risk(gram, P[10:].mean(axis=0), of_pool, 0.4, ridge)
        missed, called = np.mean(P[:10] @ w <= 0), np.mean(U[:30] @ w > 0)
        assert risk == pytest.approx(0.8 * missed + called - 0.4)


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_one_group_of_positives_leaves_nothing_to_hold_out(rings):
    groups = np.where(rings.y == 1, 0, np.arange(len(rings.y)))
    model = UPU(prior=0.5, random_state=10, device="cpu")
    model.fit(rings.X, rings.y, groups=groups)
    assert np.isnan(model.choice_.risk)
    assert np.isfinite(model.decision_function(rings.X)).all()


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_small_images_take_the_kernel_and_larger_ones_a_network():
    rng = np.random.default_rng(14)
    y = (np.arange(40) % 4 == 0).astype(int)
    settings = {"prior": 0.5, "random_state": 10, "device": "cpu", "epochs": 1}
    small = rng.integers(0, 255, (40, 8, 8), dtype=np.uint8)
    large = rng.integers(0, 255, (40, 17, 17), dtype=np.uint8)
    assert isinstance(UPU(**settings).fit(small, y).module_, KernelModel)
    assert not isinstance(UPU(**settings).fit(large, y).module_, KernelModel)
    asked = UPU(network="kernel", **settings).fit(large, y)
    assert isinstance(asked.module_, KernelModel)
    assert asked.predict(large).shape == (40,)
