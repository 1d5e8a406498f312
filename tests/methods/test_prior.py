"""How methods come by a class prior: what is asked, and what is made of it."""

from __future__ import annotations

import numpy as np
import pytest

from denspu import make
from denspu._random import Randomness
from denspu._validation import PUInput
from denspu.exceptions import InvalidParameterError
from denspu.methods import _evidence
from denspu.methods._evidence import (
    doubtful_share,
    resolve_prior,
)


def data(n=200, n_positive=20, groups=None):
    rng = np.random.default_rng(0)
    positive = np.arange(n) < n_positive
    X = rng.normal(size=(n, 3)) + 3 * (np.arange(n) < 2 * n_positive)[:, None]
    return PUInput(X, "table", positive, np.zeros(n, dtype=bool), groups)


@pytest.mark.parametrize("scenario", ["one-sample", "two-sample"])
def test_what_the_estimate_is_asked(monkeypatch, scenario):
    asked = {}

    def note(X, y, **settings):
        asked.update(settings, n_labelled=int(y.sum()))
        return type("Report", (), {"prior": 0.3, "prior_in_unlabeled": 0.2})

    monkeypatch.setattr(_evidence, "estimate_prior", note)
    groups = np.arange(200) // 2
    found = resolve_prior("estimate", data(groups=groups), scenario, Randomness(0))
    assert found == (0.3, 0.2)
    assert asked["scenario"] == scenario
    assert asked["groups"] is groups
    assert asked["n_labelled"] == 20
    assert asked["encoder"] == "auto"
    Z = np.zeros((200, 2))
    resolve_prior("estimate", data(), scenario, Randomness(0), rows=Z)
    assert asked["encoder"] == "identity"


def test_a_given_prior_is_the_overall_one():
    assert resolve_prior(0.3, data(), "two-sample", Randomness(0)) == (0.3, 0.3)
    overall, inside = resolve_prior(0.3, data(), "one-sample", Randomness(0))
    assert overall == 0.3
    assert inside == pytest.approx((0.3 * 200 - 20) / 180)


def test_a_prior_below_the_labelled_share_is_refused():
    with pytest.raises(InvalidParameterError, match="carry a label already"):
        resolve_prior(0.1, data(), "one-sample", Randomness(0))


def test_a_prior_that_a_method_does_not_go_by_is_not_refused():
    given = data()
    y = given.positive.astype(int)
    make("elkan_noto", prior=0.05, random_state=0).fit(given.X, y)
    with pytest.raises(InvalidParameterError, match="carry a label already"):
        make("kldce", prior=0.05).fit(given.X, y)


def test_what_cannot_be_estimated_asks_for_a_number():
    groups = np.where(np.arange(200) < 20, 0, np.arange(200))
    with pytest.raises(InvalidParameterError, match="Pass the share"):
        resolve_prior("estimate", data(groups=groups), "one-sample", Randomness(0))


def test_a_look_is_taken_only_where_many_are_called():
    seen = []

    def embed(X):
        seen.append(len(X))
        return X

    assert doubtful_share(0.9, data(), embed) is None
    assert not seen
    few = data(n=800, n_positive=20)
    found = doubtful_share(0.5, few, embed)
    assert seen == [800]
    assert 0 < found < 0.05
