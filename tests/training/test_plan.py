"""Seconds are turned into epochs once, and nothing else changes."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import torch
from torch import nn

from denspu._machine import Deadline
from denspu.training import TensorBatches, TrainingConfig, train
from denspu.training import budget as plan
from denspu.training.budget import within

CPU = torch.device("cpu")
CONFIG = TrainingConfig(epochs=40, lr=0.1, schedule="cosine")
X = torch.rand(30, 3, generator=torch.Generator())


class Slow(nn.Module):
    """A network whose step takes at least two milliseconds."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        time.sleep(0.002)
        return self.layer(x)


def loss(module, batch):
    return module(batch[0]).square().mean()


def batches():
    return TensorBatches(X, batch_size=10)


def planned(seconds, module=None, config=CONFIG, **more):
    return within(
        Deadline(seconds), module or Slow(), batches(), loss, config, device=CPU, **more
    )


def test_without_a_deadline_nothing_is_tried():
    module = Slow()
    assert planned(None, module) is CONFIG
    assert module.steps == 0


def test_a_long_deadline_leaves_the_epochs():
    assert planned(1000.0) == CONFIG


def test_a_short_deadline_lowers_the_epochs_only():
    """Three steps an epoch of at least 2 ms each."""
    found = planned(0.1)
    assert 1 <= found.epochs <= 0.1 / 0.006
    assert replace(found, epochs=CONFIG.epochs) == CONFIG


@pytest.mark.parametrize("seconds", [1e-9, 1e-3])
def test_at_least_one_epoch(seconds):
    assert planned(seconds).epochs == 1


def test_a_share_of_the_time(monkeypatch):
    monkeypatch.setattr(plan, "_seconds_per_step", lambda *_: 1.0)
    monkeypatch.setattr(Deadline, "left", lambda self: 60.0)
    assert planned(60.0).epochs == 20
    assert planned(60.0, share=0.5).epochs == 10
    assert planned(60.0, config=replace(CONFIG, epochs=7)).epochs == 7


def test_the_time_of_the_trial_counts(monkeypatch):
    """What is left is asked for after the trial, not before."""

    def slow_trial(*_):
        time.sleep(0.05)
        return 0.001

    monkeypatch.setattr(plan, "_seconds_per_step", slow_trial)
    assert planned(0.07).epochs <= 0.02 / 0.003


def test_network_and_random_numbers_are_untouched():
    module = Slow()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    state = torch.get_rng_state()
    planned(0.1, module)
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert module.steps == 0
    assert all(p.grad is None for p in module.parameters())


def test_the_epochs_found_reproduce_the_run():
    def run(module, config):
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            source = torch.Generator().manual_seed(1)
            train(module, batches(), loss, config, device=CPU, generator=source)
        return torch.cat([p.detach().flatten() for p in module.parameters()])

    start = {k: v.clone() for k, v in Slow().state_dict().items()}
    one, two = Slow(), Slow()
    one.load_state_dict(start)
    two.load_state_dict(start)
    config = planned(0.05, one)
    assert config.epochs < CONFIG.epochs
    assert torch.equal(
        run(one, config), run(two, replace(CONFIG, epochs=config.epochs))
    )


def test_the_first_steps_are_not_timed(monkeypatch):
    """A start that takes long, as compiling does, is not taken for the pace."""

    class Starting(Slow):
        started = 0

        def forward(self, x):
            Starting.started += 1
            if Starting.started <= plan.WARM_STEPS[False]:
                time.sleep(0.05)
            return super().forward(x)

    assert plan._seconds_per_step(Starting(), batches(), loss, CONFIG, CPU) < 0.04
    assert Starting.started == plan.WARM_STEPS[False] + plan.TIMED_STEPS
