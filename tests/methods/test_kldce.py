"""LDCE and KLDCE: the split of the loss, the centroid, the convex solve."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad

from denspu.methods.kldce import (
    KLDCE,
    SMOOTH,
    Risk,
    best_centroid,
    hinge,
    median_of_means,
)


@pytest.fixture
def data(make_blobs):
    return make_blobs(seed=10, n_labeled=60, n_hidden=60, n_negative=120, far=2.5)


@pytest.fixture
def risk():
    rng = np.random.default_rng(10)
    rows = np.column_stack([rng.normal(size=(30, 3)), np.ones(30)])
    return Risk(rows[:8], rows[8:26], rows[26:], weight_decay=0.01)


def test_the_hinge_is_rounded_only_at_its_corner():
    z = np.array([-3.0, 0.5, 0.95, 1.0, 2.0])
    value, slope = hinge(z)
    parabola = 0.05**2 / (2 * SMOOTH)
    np.testing.assert_allclose(
        value, [4 - SMOOTH / 2, 0.5 - SMOOTH / 2, parabola, 0, 0], atol=1e-12
    )
    np.testing.assert_allclose(slope, [-1, -1, -0.5, 0, 0], atol=1e-12)


def test_the_gradient_is_that_of_the_risk(risk):
    rng = np.random.default_rng(0)
    m = rng.normal(size=4)
    for _ in range(5):
        w = rng.normal(size=4)
        error = check_grad(lambda v: risk(v, m)[0], lambda v: risk(v, m)[1], w)
        assert error < 1e-5


def test_the_risk_by_a_loop(risk):
    """Each row as the formula has it, the labels of U in the centroid alone."""
    rng = np.random.default_rng(1)
    w, m = rng.normal(size=4), rng.normal(size=4)

    def loss(z):
        return float(hinge(np.array([z]))[0][0])

    n, positive, negative = 30, risk.rows[:8], risk.rows[8:12]
    expected = sum(loss(x @ w) for x in positive) / n
    expected += sum(loss(-x @ w) for x in negative) / n
    expected += sum(loss(x @ w) + loss(-x @ w) for x in risk.free) / (2 * n)
    expected -= 18 / (2 * n) * (w @ m)
    expected += 0.01 * (w[:3] @ w[:3])
    assert risk(w, m)[0] == pytest.approx(expected)


def test_the_centroid_moves_to_the_rim_of_its_ellipsoid():
    rng = np.random.default_rng(4)
    spread = rng.normal(size=(50, 3)) * [1.0, 2.0, 3.0]
    spread -= spread.mean(axis=0)
    w, centre, b = np.array([1.0, -1.0, 0.5]), rng.normal(size=3), 0.4
    m = best_centroid(w, centre, spread, b)
    V = spread.T @ spread / 50**2
    assert (m - centre) @ np.linalg.solve(V, m - centre) == pytest.approx(b)
    for _ in range(200):  # no other point of the rim lies farther along w
        u = rng.normal(size=3)
        other = centre + u * np.sqrt(b / (u @ np.linalg.solve(V, u)))
        assert w @ other <= w @ m + 1e-9
    np.testing.assert_array_equal(best_centroid(np.zeros(3), centre, spread, b), centre)
    np.testing.assert_allclose(best_centroid(w, centre, spread, 0.0), centre)


def test_the_median_of_means_forgets_an_outlier():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(200, 2))
    rows[0] = 1e4
    assert np.abs(median_of_means(rows, 10, rng)).max() < 0.5
    assert np.abs(rows.mean(axis=0)).max() > 10
    np.testing.assert_allclose(median_of_means(rows, 1, rng), rows.mean(axis=0))
    few = rows[1:4]
    np.testing.assert_allclose(median_of_means(few, 10, rng), few.mean(axis=0))


@pytest.mark.parametrize("variant", ["linear", "rbf"])
def test_both_forms_learn(data, variant):
    model = KLDCE(variant=variant, prior=0.5, n_components=60, random_state=10)
    hidden = data.y == 0
    called = model.fit(data.X, data.y).predict(data.X[hidden])
    assert np.mean(called == data.truth[hidden]) > 0.85
    assert hasattr(model, "kernel_") == (variant == "rbf")


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DegenerateFitWarning")
def test_settings_reach_the_fit(data):
    plain = KLDCE(variant="linear", prior=0.5, random_state=10).fit(data.X, data.y)
    for other in (
        {"radius": 0.9},
        {"weight_decay": 0.1},
        {"prior": 0.6},
    ):
        settings = {"variant": "linear", "prior": 0.5, **other}
        changed = KLDCE(**settings, random_state=10).fit(data.X, data.y)
        assert not np.allclose(plain.weights_, changed.weights_)
    assert 1 <= plain.n_rounds_ <= 10
    assert KLDCE(max_rounds=1, prior=0.5).fit(data.X, data.y).n_rounds_ == 1


def test_the_centroid_is_that_of_labels_given_at_random(data):
    """With no room to move: -mean(U) + 2 · 1/3 · mean(P)."""
    settings = {"variant": "linear", "prior": 0.5, "radius": 0.0, "n_groups": 1}
    model = KLDCE(**settings).fit(data.X, data.y)
    Z = model.scale_(model.encoder_.transform(data.X))
    Z = np.column_stack([Z, np.ones(len(Z))])
    expected = 2 / 3 * Z[data.y == 1].mean(axis=0) - Z[data.y == 0].mean(axis=0)
    np.testing.assert_allclose(model.centroid_, expected, atol=1e-9)
