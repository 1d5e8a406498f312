"""Elkan-Noto: the constant c, both forms, both scenarios."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from denspu.exceptions import UnusedInputWarning
from denspu.methods.elkan_noto import (
    ElkanNoto,
    hidden_weight,
    twice,
)


@pytest.fixture
def easy(make_blobs):
    return make_blobs(seed=10, n_labeled=60, n_hidden=140, n_negative=200, far=4.0)


def test_weight_of_a_row_of_u_by_bayes():
    """P(y=1 | x, s=0) from p(y=1|x) and c, the long way."""
    c = 0.3
    p = np.linspace(0.0, 0.99, 12)
    g = c * p
    long_way = p * (1 - c) / (1 - c * p)
    np.testing.assert_allclose(hidden_weight(g, (1 - c) / c), long_way, atol=1e-12)
    assert hidden_weight(np.array([0.9]), 7.0) == 1.0


def test_each_row_of_u_enters_twice():
    positive = np.array([True, False, False, False])
    index, target, weight = twice(np.array([0.0, 0.25, 0.0, 1.0]), positive)
    assert index.tolist() == [0, 1, 3, 1, 2]
    assert target.tolist() == [True, True, True, False, False]
    np.testing.assert_allclose(weight, [1, 0.25, 1, 0.75, 1])


def test_c_is_found_where_classes_lie_apart(easy):
    model = ElkanNoto(random_state=10).fit(easy.X, easy.y)
    assert model.label_frequency_ == pytest.approx(0.3, abs=0.05)
    assert model.ratio_ == pytest.approx((1 - 0.3) / 0.3, rel=0.25)


def test_the_adjusted_form_says_that_known_negatives_are_not_used(easy):
    known = np.zeros(len(easy.y), dtype=bool)
    known[-3:] = True
    with pytest.warns(UnusedInputWarning, match="the 3 rows of known_negative"):
        ElkanNoto(variant="adjusted").fit(easy.X, easy.y, known_negative=known)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnusedInputWarning)
        ElkanNoto().fit(easy.X, easy.y, known_negative=known)


def test_the_cut_of_the_adjusted_form_is_half_of_c(easy):
    model = ElkanNoto(variant="adjusted", random_state=10).fit(easy.X, easy.y)
    g = model.calibration_(model.estimator_.decision_function(model.scale_(
        model.encoder_.transform(easy.X))))  # fmt: skip
    clear = np.abs(g / model.label_frequency_ - 0.5) > 0.01
    called = model.decision_function(easy.X) > 0
    np.testing.assert_array_equal(
        called[clear], (g > model.label_frequency_ / 2)[clear]
    )


@pytest.mark.parametrize("variant", ["adjusted", "weighted"])
@pytest.mark.parametrize("scenario", ["one-sample", "two-sample"])
def test_both_forms_in_both_scenarios(variant, scenario, make_blobs):
    data = make_blobs(seed=10, n_labeled=60, n_hidden=140, n_negative=200, far=3.0)
    model = ElkanNoto(
        variant=variant, scenario=scenario, prior=140 / 340, random_state=10
    ).fit(data.X, data.y)
    hidden = data.y == 0
    called = model.predict(data.X[hidden])
    assert np.mean(called == data.truth[hidden]) > 0.93
    assert hasattr(model, "prior_") == (scenario == "two-sample")


class Heart(LogisticRegression):
    """Remembers its rows, and counts those it is asked about again."""

    seen: ClassVar[list[int]] = []

    def fit(self, X, y, sample_weight=None):
        self.rows_ = {row.tobytes() for row in X}
        return super().fit(X, y, sample_weight)

    def decision_function(self, X):
        self.seen.append(sum(row.tobytes() in self.rows_ for row in X))
        return super().decision_function(X)


def scores_seen(X, y, scenario, groups=None):
    """Return how many rows of each fold were judged by a model that knew them."""
    Heart.seen.clear()
    model = ElkanNoto(estimator=Heart(), scenario=scenario, prior=0.5, random_state=10)
    model.fit(X, y, groups=groups)
    return Heart.seen[:5]


def test_copies_of_p_inside_u_are_out_of_sample_too(make_blobs):
    data = make_blobs(seed=10)
    X = np.concatenate([data.X, data.X[data.y == 1]])  # U holds P again
    y = np.concatenate([data.y, np.zeros(data.y.sum(), dtype=int)])
    assert scores_seen(X, y, "two-sample") == [0] * 5
    assert sum(scores_seen(X, y, "one-sample")) > 10
    groups = np.arange(len(y))  # who gives groups has said what belongs together
    assert sum(scores_seen(X, y, "two-sample", groups)) > 10


def test_the_two_sample_prior_moves_the_cut(make_blobs):
    data = make_blobs(seed=10, n_labeled=60, n_hidden=140, n_negative=200, far=2.0)
    share = [
        ElkanNoto(scenario="two-sample", prior=prior, random_state=10)
        .fit(data.X, data.y)
        .predict(data.X)
        .mean()
        for prior in (0.25, 0.4, 0.8)
    ]
    assert share[0] < share[1] < share[2]
