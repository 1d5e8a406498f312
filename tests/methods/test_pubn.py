"""PUbN: two networks, and known negatives of some kinds only."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu import make_pu
from denspu.exceptions import InvalidParameterError
from denspu.methods import pubn
from denspu.methods._deep import BesideBatches
from denspu.methods.pubn import PUbN
from denspu.training import PUBatches


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(240) % 2 == 0).astype(int)
    X = rng.normal(size=(240, 4)) + 1.2 * (2 * truth - 1)[:, None]
    return make_pu(X, truth, n_labeled=0.3, random_state=10)


@pytest.fixture(scope="module")
def known(pu):
    """Return twelve negatives, all of one kind."""
    mask = np.zeros(len(pu.y), dtype=bool)
    negative = np.flatnonzero(pu.oracle.labels == 0)
    mask[negative[np.argsort(pu.X[negative, 0])[:12]]] = True
    return mask


def fit(pu, known=None, **settings):
    usual = {"prior": 0.5, "network": "linear", "epochs": 60, "lr": 0.02}
    usual |= {"random_state": 10, "device": "cpu"}
    return PUbN(**{**usual, **settings}).fit(pu.X, pu.y, known_negative=known)


def watch(monkeypatch):
    """Return the arguments of every call of the second risk."""
    calls = []
    real = pubn.partly_trusting_risk

    def watched(*args):
        calls.append(args)
        return real(*args)

    monkeypatch.setattr(pubn, "partly_trusting_risk", watched)
    return calls


def test_known_negatives_are_the_third_set(pu, known, monkeypatch):
    calls = watch(monkeypatch)
    model = fit(pu, known, epochs=2)
    _, _, prior, eta, (logits, seen), rho = calls[0]
    assert len(logits) == len(seen) == 12
    assert (prior, eta, rho) == (0.5, model.eta_, model.rho_)
    calls.clear()
    fit(pu, known, epochs=1, batch_size=120)
    assert {len(args[4][0]) for args in calls} == {6}


def test_rho_is_estimated_from_the_rate_of_labels(pu, known):
    """36 of the positives (a half) are labelled: 12 negatives stand for 12/36 · 0.5."""
    assert fit(pu, known, epochs=1).rho_ == pytest.approx(0.5 * 12 / pu.y.sum())
    assert fit(pu, known, epochs=1, rho=0.3).rho_ == 0.3
    many = pu.oracle.labels == 0
    assert fit(pu, many, epochs=1).rho_ == 0.5


def test_eta_leaves_the_given_share_below(pu, known, monkeypatch):
    calls = watch(monkeypatch)
    model = fit(pu, epochs=3)
    seen = calls[0][1][1]
    assert len(seen) == 240
    assert (seen <= model.eta_).double().mean().item() == pytest.approx(0.45, abs=0.01)
    calls.clear()
    model = fit(pu, epochs=3, tau=0.5)
    share = (calls[0][1][1] <= model.eta_).double().mean().item()
    assert share == pytest.approx(0.25, abs=0.01)
    calls.clear()
    model = fit(pu, known, epochs=3, rho=0.1)
    share = (calls[0][1][1] <= model.eta_).double().mean().item()
    assert share == pytest.approx(0.7 * 0.4, abs=0.01)


def test_a_rho_above_all_negatives_is_refused(pu, known):
    with pytest.raises(InvalidParameterError, match=r"rho=0\.6 .* make up 0\.5"):
        fit(pu, known, rho=0.6)


# --- batches of three sets ------------------------------------------------------------


def three(count=3, device=None):
    rows = torch.arange(30) * 10
    batches = PUBatches(
        rows, torch.arange(4), torch.arange(30), batch_size=7, device=device
    )
    return BesideBatches(batches, torch.tensor([20, 21, 22, 23, 24]), count)


def test_the_third_set_comes_in_turn_with_its_numbers():
    found = list(three().epoch(torch.Generator().manual_seed(0)))
    assert len(found) == len(three()) == 4
    for batch in found:
        assert [len(part) for part in batch] == [2, 7, 3, 2, 7, 3]
        for rows, numbers in zip(batch[:3], batch[3:], strict=True):
            assert torch.equal(rows, numbers * 10)
    counts = torch.cat([batch[5] for batch in found]).bincount(minlength=25)[20:]
    assert counts.sum() == 12
    assert counts.max() - counts.min() <= 1
