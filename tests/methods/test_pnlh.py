"""PNLH: the core of P, the first negatives, and who joins which side."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from denspu import make, make_pu
from denspu.exceptions import FewRowsWarning, InvalidParameterError
from denspu.methods.pnlh import core, features, lowest, strengths


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(200) % 2 == 0).astype(int)
    X = rng.normal(size=(200, 6)) + 1.5 * truth[:, None] * (np.arange(6) < 3)
    return make_pu(X, truth, n_labeled=0.3, random_state=10)


def fit(pu, known_negative=None, **settings):
    model = make("pnlh", encoder="identity", random_state=0, **settings)
    return model.fit(pu.X, pu.y, known_negative=known_negative)


def test_core_features_by_hand():
    """Row by row and column by column, as the paper counts words in documents."""
    Z = np.array([[9, 0, 0], [8, 0, 1], [0, 0, 1], [0, 0, 0], [1, 0, 9]], float)
    positive = np.array([True, True, False, False, False])
    has = features(Z, 0.5)
    wanted = np.zeros((5, 6), dtype=bool)
    for j in range(3):
        mean, spread = Z[:, j].mean(), Z[:, j].std()
        for i in range(5):
            wanted[i, j] = spread > 0 and (Z[i, j] - mean) / spread > 0.5
            wanted[i, j + 3] = spread > 0 and (mean - Z[i, j]) / spread > 0.5
    np.testing.assert_array_equal(has, wanted)
    in_p, in_u = wanted[:2].mean(axis=0), wanted[2:].mean(axis=0)
    strength = in_p / in_p.max() - in_u / in_u.max()  # the least of both is 0
    np.testing.assert_allclose(strengths(has, positive), strength)
    by_hand = [s > max(sum(strength) / 6, 0) for s in strength]
    assert core(strength).tolist() == by_hand
    assert by_hand[0]  # both positives are high in the first column
    assert not core(np.array([-0.5, -0.4])).any()  # nothing favours P


def test_first_negatives_have_nothing_of_the_core_or_the_least():
    typical = np.array([0.0, 0.0, 0.3, 0.0, 0.2, 0.1, 0.9, 0.4])
    free = np.arange(8) > 0
    assert np.flatnonzero(lowest(typical, free, 2)).tolist() == [1, 3]
    assert np.flatnonzero(lowest(typical, free, 3)).tolist() == [1, 3, 5]
    assert lowest(typical, free, 7).sum() == 3  # half of the free rows


def test_the_sides_are_those_of_an_independent_computation(pu):
    model = fit(pu, n_clusters=3)
    Z = pu.X - pu.X.mean(axis=0)
    strength = strengths(features(pu.X, 1.0), pu.y == 1)
    assert np.array_equal(model.core_, strength > max(strength.mean(), 0))
    typical = (features(pu.X, 1.0) * strength)[:, model.core_].sum(axis=1)
    U, n_positive = np.flatnonzero(pu.y == 0), int(pu.y.sum())
    none = U[typical[U] == 0]
    least = U[np.argsort(typical[U], kind="stable")[:n_positive]]
    first = np.union1d(none, least if len(none) < n_positive else none)
    assert np.array_equal(model.reliable_index_, first)
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    seed = model_seed("clusters")
    groups = KMeans(3, n_init=3, random_state=seed).fit(unit[first])
    away = [c / np.linalg.norm(c) for c in groups.cluster_centers_]
    c = unit[pu.y == 1].mean(axis=0)
    toward = c / np.linalg.norm(c)
    joined = {
        i
        for i in set(U) - set(first)
        if unit[i] @ toward > max(unit[i] @ other for other in away)
    }
    assert set(model.positive_index_) == joined
    assert set(model.negative_index_) == set(U) - joined


def model_seed(name):
    from denspu._random import Randomness

    return Randomness(0).seed(name)


def test_it_learns_and_known_negatives_stay(pu):
    hidden = pu.y == 0
    truth = pu.oracle.labels
    known = np.zeros(200, dtype=bool)
    known[np.flatnonzero(hidden & (truth == 0))[:5]] = True
    model = fit(pu, known)
    assert np.mean(model.predict(pu.X)[hidden] == truth[hidden]) > 0.8
    assert np.mean(truth[model.reliable_index_] == 0) > 0.8
    assert set(np.flatnonzero(known)) <= set(model.reliable_index_)


def test_copies_are_told_and_bad_settings_named(pu):
    X = np.repeat([[0.0, 1.0], [5.0, 4.0]], [20, 40], axis=0)
    with pytest.warns(FewRowsWarning, match="n_clusters=10 cannot be made"):
        make("pnlh", random_state=0).fit(X, np.arange(60) < 10)
    with pytest.raises(InvalidParameterError, match="'n_clusters' parameter of PNLH"):
        fit(pu, n_clusters=0)
