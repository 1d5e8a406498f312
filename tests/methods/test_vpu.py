"""VPU: no prior, the largest Φ counts as certainty, held-out rows choose the epoch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit, logit

from denspu import make_pu
from denspu.methods import vpu
from denspu.methods._deep import Task
from denspu.methods.vpu import VPU, log_odds


@pytest.fixture(scope="module")
def pu():
    rng = np.random.default_rng(10)
    truth = (np.arange(240) % 2 == 0).astype(int)
    X = rng.normal(size=(240, 4)) + 1.2 * (2 * truth - 1)[:, None]
    return make_pu(X, truth, n_labeled=0.3, random_state=10)


def fit(pu, groups=None, **settings):
    usual = {"network": "linear", "epochs": 60, "lr": 0.02, "device": "cpu"}
    model = VPU(**{**usual, "random_state": 10, **settings})
    return model.fit(pu.X, pu.y, groups=groups)


@pytest.fixture(scope="module")
def model(pu):
    return fit(pu)


def test_rows_above_half_of_the_largest_phi_are_positive(pu):
    """A factor on Φ cancels: the ratio decides."""
    model = fit(pu, top="max")
    hidden = pu.X[pu.y == 0]
    phi = expit(model._logits(hidden))
    assert model.top_ == pytest.approx(np.log(phi.max()), abs=1e-9)
    wanted = (phi / phi.max() > 0.5).astype(int)
    assert np.array_equal(model.predict(hidden), wanted)
    probability = model.predict_proba(hidden)[:, 1]
    below = phi / phi.max() < 0.99
    assert probability[below] == pytest.approx((phi / phi.max())[below], abs=1e-9)


def test_log_odds_go_on_above_the_maximum():
    ratio = np.array([0.01, 0.5, 0.99, 1.0, 1.5])
    found = log_odds(np.log(ratio))
    assert found[:3] == pytest.approx(logit(ratio[:3]), abs=1e-9)
    assert (np.diff(found) > 0).all()
    assert np.isfinite(found).all()
    slope = np.diff(log_odds(np.log(0.99) + np.array([-1e-6, 0, 1e-6])))
    assert slope[0] == pytest.approx(slope[1], rel=1e-3)


def test_held_out_rows_are_not_learned_from(pu, monkeypatch):
    kept, seen = {}, set()
    split_off, real = Task.split_off, vpu.VPULoss.__call__

    def noted(*args):
        kept["split"] = split_off(*args)
        return kept["split"]

    def watched(self, module, batch):
        seen.update(torch.cat(batch[2:]).tolist())
        return real(self, module, batch)

    monkeypatch.setattr(Task, "split_off", noted)
    monkeypatch.setattr(vpu.VPULoss, "__call__", watched)
    groups = np.arange(240) // 3
    fit(pu, groups, epochs=2)
    held_positive, held_pool = kept["split"][1]
    held = set(held_positive.tolist()) | set(held_pool.tolist())
    assert 30 < len(held) < 70
    assert not held & seen
    assert held | seen == set(range(240))
    assert set(held_positive) <= set(held_pool)  # one sample
    assert not set(groups[list(held)]) & set(groups[list(seen)])


def test_the_best_epoch_on_held_out_rows_is_kept(pu, monkeypatch):
    """The weights handed back give the least held-out loss of the history."""
    kept = {}
    split_off = Task.split_off

    def noted(*args):
        kept["split"] = split_off(*args)
        return kept["split"]

    monkeypatch.setattr(Task, "split_off", noted)
    flexible = {"network": "mlp", "epochs": 25, "lr": 2e-3, "patience": None}
    model = fit(pu, **flexible)
    losses = model.history_.column("held_out")
    assert len(losses) == 25
    assert np.argmin(losses) < 24
    held = kept["split"][1]
    logits = [torch.from_numpy(model._logits(pu.X[rows])) for rows in held]
    found = vpu.held_out_loss(*logits).item()
    assert found == pytest.approx(min(losses), abs=1e-4)
    patient = fit(pu, **{**flexible, "patience": 3})
    assert len(patient.history_) == np.argmin(losses) + 1 + 3


def test_short_epochs_let_the_hold_out_be_looked_at_sooner(pu, monkeypatch):
    steps = []
    real = vpu.VPULoss.__call__

    def watched(self, module, batch):
        steps.append(1)
        return real(self, module, batch)

    monkeypatch.setattr(vpu.VPULoss, "__call__", watched)
    model = fit(pu, epochs=6, batch_size=10, epoch_steps=3, patience=None)
    assert len(steps) == 6 * 3
    assert len(model.history_.column("held_out")) == 6


def test_without_validation_the_last_epoch_stands(pu):
    model = fit(pu, validation=0.0, epochs=5)
    assert "held_out" not in model.history_.last
    assert len(model.history_) == 5
