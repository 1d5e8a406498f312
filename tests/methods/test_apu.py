"""aPU: two halves of U, three variants."""

from __future__ import annotations

import numpy as np
import pytest

from denspu import make_pu
from denspu.methods import apu
from denspu.methods.apu import APU

VARIANTS = ("purr", "wuu", "apnu")


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(300) % 2 == 0).astype(int)
    X = rng.normal(size=(300, 4)) + 1.2 * (2 * truth - 1)[:, None]
    return make_pu(X, truth, n_labeled=0.4, random_state=10)


def fit(pu, **settings):
    usual = {"prior": 0.5, "network": "linear", "epochs": 80, "lr": 0.02}
    usual |= {"random_state": 10, "device": "cpu"}
    return APU(**{**usual, **settings}).fit(pu.X, pu.y)


@pytest.mark.parametrize("scenario", ["one-sample", "two-sample"])
def test_the_halves_are_apart_and_make_up_the_pool(pu, monkeypatch, scenario):
    found = {}
    real = apu.halved

    def noted(task, sets):
        if sets:
            found["pool"], found["halves"] = task.pool, real(task, sets)
        return real(task, sets)

    monkeypatch.setattr(apu, "halved", noted)
    fit(pu, epochs=1, scenario=scenario)
    first, second = (set(half.tolist()) for half in found["halves"][1:])
    assert not first & second
    assert first | second == set(found["pool"].tolist())
    assert abs(len(first) - len(second)) <= 1
    assert first != set(found["pool"][: len(first)].tolist())


def test_the_sets_stand_in_their_places(pu, monkeypatch):
    """P, then the half that finds negatives, then the half that stands for use."""
    seen = []
    real = apu.recursive_risk

    def watched(p, first, second, prior, later):
        seen.append((len(p), len(first), len(second), prior, later))
        return real(p, first, second, prior, later)

    monkeypatch.setattr(apu, "recursive_risk", watched)
    fit(pu, epochs=1, batch_size=40, prior=0.6)
    assert set(seen) == {(8, 20, 20, 0.6, 0.6)}
    assert len(seen) == 7  # one pass over both halves


def test_weights_come_from_the_first_network(pu, monkeypatch):
    seen = []
    real = apu.reweighted_risk

    def watched(*args):
        seen.append(args)
        return real(*args)

    monkeypatch.setattr(apu, "reweighted_risk", watched)
    model = fit(pu, variant="apnu", rho=0.3, epochs=30)
    assert model.epochs_ == {"first": 30, "apu": 30}
    assert len(model.first_history_) == 30
    _, first, second, weight, prior, later, rho = seen[0]
    assert (prior, later, rho) == (0.5, 0.5, 0.3)
    assert len(weight) == len(first) == len(second) == 150
    assert not weight.requires_grad
    assert weight.mean().item() == pytest.approx(0.5, abs=0.15)
    last = seen[-1]
    likely = np.corrcoef(last[1].detach().numpy(), last[3].numpy())[0, 1]
    assert likely < -0.7  # a row that is likely negative gets a low answer


def test_apnu_with_rho_one_is_wuu(pu):
    one = fit(pu, variant="apnu", rho=1.0, epochs=5)
    two = fit(pu, variant="wuu", epochs=5)
    assert np.array_equal(one.decision_function(pu.X), two.decision_function(pu.X))
    other = fit(pu, variant="apnu", rho=0.5, epochs=5)
    assert not np.array_equal(
        one.decision_function(pu.X), other.decision_function(pu.X)
    )
