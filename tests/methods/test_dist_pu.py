"""Dist-PU: two phases, a bank of answers, weights that grow with the epochs."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from denspu import make_pu
from denspu.losses import entropy, label_distribution, mixup_loss
from denspu.methods import dist_pu
from denspu.methods.dist_pu import DistPU, MainLoss


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(240) % 2 == 0).astype(int)
    X = rng.normal(size=(240, 4)) + 1.2 * (2 * truth - 1)[:, None]
    return make_pu(X, truth, n_labeled=0.3, random_state=10)


def fit(pu, **settings):
    usual = {"prior": 0.5, "network": "linear", "epochs": 80, "lr": 0.02}
    usual |= {"random_state": 10, "device": "cpu"}
    return DistPU(**{**usual, **settings}).fit(pu.X, pu.y)


def main_loss():
    task = SimpleNamespace(rows=range(9), device=None, prior=0.3, as_float=lambda x: x)
    loss = MainLoss(DistPU(), task)
    loss.bank = torch.linspace(0.1, 0.9, 9)
    loss.entropy_weight.fill_(0.5)
    return loss


class Sum(nn.Module):
    """The sum of a row as its logit."""

    def forward(self, x):
        return x.sum(1)


def batch():
    rows = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    return rows[:2], rows[2:], torch.tensor([0, 1]), torch.tensor([8, 3, 5, 4])


def test_the_main_loss_is_the_sum_of_its_terms(monkeypatch):
    monkeypatch.setattr(dist_pu, "beta_share", lambda *_: torch.tensor(0.7))
    order = torch.tensor([5, 0, 3, 1, 2, 4])
    monkeypatch.setattr(dist_pu, "random_order", lambda *_: order)
    loss = main_loss()
    bank = loss.bank.clone()
    found = loss(Sum(), batch())
    p, u, _, numbers = batch()
    x = torch.cat([p, u])
    clean, between = x.sum(1), (0.7 * x + 0.3 * x[order]).sum(1)
    label = torch.cat([torch.ones(2), bank[numbers]])
    apart = label_distribution(clean[:2], clean[2:], 0.3)
    wanted = apart + 0.5 * entropy(clean[2:]) + 0.04 * entropy(between)
    wanted += 5 * mixup_loss(between, label, label[order], torch.tensor(0.7))
    assert found["loss"].item() == pytest.approx(wanted.item(), abs=1e-6)
    assert found["distribution"].item() == pytest.approx(apart.item(), abs=1e-6)


def test_the_bank_takes_the_answers_of_the_batch_alone():
    loss = main_loss()
    before = loss.bank.clone()
    loss(Sum(), batch())
    _, u, _, numbers = batch()
    assert torch.allclose(loss.bank[numbers], torch.sigmoid(u.sum(1)))
    others = [row for row in range(9) if row not in numbers.tolist()]
    assert torch.equal(loss.bank[others], before[others])


def test_the_weight_of_the_entropy_grows():
    loss = main_loss()
    found = []
    for epoch in (0, 20, 59):
        state = SimpleNamespace(epoch=epoch, config=SimpleNamespace(epochs=60))
        loss.on_epoch_start(state)
        found.append(loss.entropy_weight.item())
    wanted = [0.004 * (1 - math.cos(math.pi * e / 120)) for e in (0, 20, 59)]
    assert found == pytest.approx(wanted, abs=1e-9)


def test_two_phases_share_the_epochs(pu):
    assert fit(pu, epochs=8).epochs_ == {"warm-up": 4, "main": 4}
    model = fit(pu, epochs=8, warm_up=0.25)
    assert model.epochs_ == {"warm-up": 2, "main": 6}
    assert len(model.warm_up_history_) == 2
    assert fit(pu, epochs=1).epochs_ == {"warm-up": 1, "main": 1}


def test_the_main_phase_has_its_own_learning_rate(pu):
    history = fit(pu, epochs=8, lr=0.02).history_
    assert history.rows[0]["lr"] == pytest.approx(0.002)
    assert 0.7 * 0.002 < history.last["lr"] < 0.8 * 0.002
    assert fit(pu, epochs=8, main_lr=0.5).history_.rows[0]["lr"] == 0.5
