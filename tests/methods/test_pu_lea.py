"""PU-LEA: who leaves U, and when the rounds end."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from denspu import make, make_pu
from denspu.exceptions import InvalidParameterError


class Nearer(ClassifierMixin, BaseEstimator):
    """Above 0 where the mean of the positives is nearer than that of the others."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.means_ = [X[y == k].mean(axis=0) for k in (0, 1)]
        return self

    def decision_function(self, X):
        far, near = (np.linalg.norm(X - mean, axis=1) for mean in self.means_)
        return far - near


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(300) % 3 == 0).astype(int)
    X = rng.normal(size=(300, 4)) + 2.0 * truth[:, None]
    return make_pu(X, truth, n_labeled=0.4, random_state=10)


def fit(pu, known=None, **settings):
    model = make(
        "pu_lea", encoder="identity", estimator=Nearer(), random_state=0, **settings
    )
    return model.fit(pu.X, pu.y, known_negative=known)


def by_hand(X, y, modified, known=()):
    """Return the negatives that are left, and how many left each round."""
    Z = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean())
    U, left = [i for i in range(len(y)) if not y[i]], []
    while True:
        mine, theirs = Z[y == 1].mean(axis=0), Z[U].mean(axis=0)
        out = [
            i
            for i in U
            if i not in known
            and np.linalg.norm(Z[i] - mine) < np.linalg.norm(Z[i] - theirs)
        ]
        if not out or len(U) - len(out) <= y.sum():
            return U, left
        if modified and left and len(out) > left[-1]:
            return U, left
        left.append(len(out))
        U = [i for i in U if i not in out]


@pytest.mark.parametrize("variant", ["modified", "original"])
@pytest.mark.parametrize("with_known", [False, True])
def test_the_rounds_are_those_of_an_independent_computation(pu, variant, with_known):
    known = np.zeros(300, dtype=bool)
    if with_known:
        known[np.flatnonzero(pu.y == 0)[:20]] = True
    model = fit(pu, known, variant=variant)
    wanted, left = by_hand(
        pu.X, pu.y, variant == "modified", set(np.flatnonzero(known))
    )
    assert model.left_ == left
    assert model.negative_index_.tolist() == wanted
    assert left


def in_turn(counts, n=40):
    """Return a classifier that calls so many rows of U positive, round by round."""
    turn = iter(counts)

    class Scripted(Nearer):
        def fit(self, X, y):
            self.count_ = next(turn, 0)
            return super().fit(X, y)

        def decision_function(self, X):
            return np.where(np.arange(len(X)) < self.count_, 1.0, -1.0)

    return Scripted()


@pytest.mark.parametrize(
    ("variant", "counts", "left"),
    [
        ("modified", [9, 5, 6, 1], [9, 5]),  # more would leave than before
        ("original", [9, 5, 6, 1], [9, 5, 6, 1]),
        ("original", [15, 16, 1], [15]),  # as few as in P would be left
        ("modified", [0, 5], []),
    ],
)
@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_when_the_rounds_end(variant, counts, left):
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = (np.arange(50) < 10).astype(int)
    model = make(
        "pu_lea", estimator=in_turn(counts), encoder="identity", variant=variant
    )
    assert model.fit(X, y).left_ == left
    assert len(model.negative_index_) == 40 - sum(left)


def test_it_learns_with_its_defaults(pu):
    hidden = pu.y == 0
    model = make("pu_lea", random_state=0).fit(pu.X, pu.y)
    truth = pu.oracle.labels[hidden]
    assert np.mean(model.predict(pu.X)[hidden] == truth) > 0.85
    short = fit(pu, max_rounds=1)
    assert len(short.left_) == 1
    with pytest.raises(InvalidParameterError, match="'variant' parameter of PULEA"):
        make("pu_lea", variant="new").fit(pu.X, pu.y)
