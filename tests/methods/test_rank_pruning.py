"""Rank Pruning: the rates from perfect probabilities, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from denspu.methods.rank_pruning import RankPruning, hidden_share, noise_rate, prune

ORACLE = [
    # positives in P, in U, negatives; ρ₁, p(y = 1), π₀, weight of a positive
    pytest.param(1000, 20_000, 30_000, 0.9524, 0.4118, 0.4, 21, id="copies-in-u"),
    pytest.param(1000, 19_000, 30_000, 0.95, 0.40, 0.3878, 20, id="one-sample"),
]


@pytest.mark.parametrize(("n_p", "hidden", "n_n", "rho", "p_y", "pi", "weight"), ORACLE)
def test_rates_from_perfect_probabilities(n_p, hidden, n_n, rho, p_y, pi, weight):
    truth = np.arange(n_p + hidden + n_n) < n_p + hidden
    labelled = np.arange(len(truth)) < n_p
    q = np.where(truth, n_p / (n_p + hidden), 0.0)
    fold = np.zeros(len(q), dtype=int)
    found = noise_rate(q, labelled, ~labelled, fold)
    assert found == pytest.approx(rho, abs=5e-5)
    assert n_p / len(q) / (1 - found) == pytest.approx(p_y, abs=5e-5)
    share = hidden_share(found, n_p, hidden + n_n)
    assert share == pytest.approx(pi, abs=5e-5)
    assert 1 / (1 - found) == pytest.approx(weight)
    U = np.flatnonzero(~labelled)
    pruned = prune(U[np.argsort(q[U], kind="stable")], share)
    assert len(pruned) == hidden
    assert truth[pruned].all()


def test_rates_are_averaged_over_folds():
    q = np.array([0.8, 0.8, 0.1, 0.6, 0.7, 0.7, 0.1, 0.1])
    labelled = np.array([1, 0, 0, 1, 0, 0, 0, 0], dtype=bool)
    fold = np.array([0, 0, 0, 1, 1, 1, 1, 2])  # the third holds no positive
    assert noise_rate(q, labelled, ~labelled, fold) == pytest.approx(
        (1 / 2 + 2 / 3) / 2
    )


def test_pruning_takes_the_highest_and_leaves_a_few():
    rows = np.arange(100, 140)
    assert prune(rows, 0.25).tolist() == list(range(130, 140))
    assert len(prune(rows, 0.0)) == 0
    assert len(prune(rows, 0.9999)) == 30
    assert len(prune(rows[:5], 0.9)) == 0


def test_the_rate_is_found_and_hidden_positives_are_left_out(make_blobs):
    data = make_blobs(seed=10, n_labeled=60, n_hidden=140, n_negative=200, far=4.0)
    model = RankPruning(random_state=10).fit(data.X, data.y)
    assert model.noise_rate_ == pytest.approx(0.7, abs=0.06)
    assert not data.y[model.pruned_].any()
    assert data.truth[model.pruned_].mean() > 0.95
    hidden = data.y == 0
    assert np.mean(model.predict(data.X[hidden]) == data.truth[hidden]) > 0.95


def test_positives_weigh_more_the_fewer_carry_a_label(make_blobs):
    seen = []

    from sklearn.linear_model import LogisticRegression

    class Watched(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append((y, sample_weight))
            return super().fit(X, y, sample_weight)

    data = make_blobs(seed=10)
    RankPruning(noise_rate=0.5, estimator=Watched(), random_state=10).fit(
        data.X, data.y
    )
    y, weight = seen[-1]
    assert set(weight[y == 1]) == {2.0}
    assert set(weight[y == 0]) == {1.0}
    assert all(w is None for _, w in seen[:-1])


def test_known_negatives_are_never_left_out(make_blobs):
    data = make_blobs(seed=10, far=2.0)
    known = (data.y == 0) & (data.truth == 1) & (data.X[:, 0] > 0)
    model = RankPruning(noise_rate=0.5, random_state=10)
    free = model.fit(data.X, data.y).pruned_
    told = model.fit(data.X, data.y, known_negative=known).pruned_
    assert known[free].any()
    assert not known[told].any()
