"""Seconds are turned into epochs once, and rows fit into memory."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import torch
from torch import nn

from denspu._machine import Deadline
from denspu.training import TensorBatches, TrainingConfig, loop, train
from denspu.training.loop import fits, free_bytes, within

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
CONFIG = TrainingConfig(epochs=40, lr=0.1, schedule="cosine")
X = torch.rand(30, 3, generator=torch.Generator())


class Slow(nn.Module):
    """A network whose step takes at least two milliseconds, the first ones longer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        self.steps = []  # shared with copies

    def __deepcopy__(self, memo):
        other = Slow()
        other.load_state_dict(self.state_dict())
        other.steps = self.steps
        return other

    def forward(self, x):
        starting = len(self.steps) < loop.WARM_STEPS[False]
        self.steps.append(1)
        time.sleep(0.05 if starting else 0.002)
        return self.layer(x)


def loss(module, batch):
    return module(batch[0]).square().mean()


def batches():
    return TensorBatches(X, batch_size=10)


def planned(seconds, module=None, config=CONFIG, **more):
    return within(
        Deadline(seconds), module or Slow(), batches(), loss, config, device=CPU, **more
    )


def test_only_a_short_deadline_lowers_the_epochs():
    """Three steps an epoch of at least 2 ms each."""
    module = Slow()
    assert planned(None, module) is CONFIG
    assert not module.steps
    assert planned(1000.0) == CONFIG
    found = planned(0.3)
    assert 1 <= found.epochs <= 0.25 / 0.006
    assert replace(found, epochs=CONFIG.epochs) == CONFIG
    assert planned(1e-9).epochs == 1


def test_a_share_of_the_time_that_is_left_after_the_trial(monkeypatch):
    monkeypatch.setattr(loop, "_seconds_per_step", lambda *_: 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(Deadline, "left", lambda self: 60.0)
        assert planned(60.0).epochs == 20
        assert planned(60.0, share=0.5).epochs == 10
        assert planned(60.0, config=replace(CONFIG, epochs=7)).epochs == 7

    def slow_trial(*_):
        time.sleep(0.05)
        return 0.001

    monkeypatch.setattr(loop, "_seconds_per_step", slow_trial)
    assert planned(0.07).epochs <= 0.02 / 0.003


def test_the_epochs_found_reproduce_the_run():
    def run(module, config):
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            source = torch.Generator().manual_seed(1)
            train(module, batches(), loss, config, device=CPU, generator=source)
        return torch.cat([p.detach().flatten() for p in module.parameters()])

    one, two = Slow(), Slow()
    two.load_state_dict(one.state_dict())
    state = torch.get_rng_state()
    config = planned(0.15, one)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in one.parameters())
    assert config.epochs < CONFIG.epochs
    assert torch.equal(
        run(one, config), run(two, replace(CONFIG, epochs=config.epochs))
    )


# --- memory ---------------------------------------------------------------------------


def test_a_data_set_may_take_a_share_of_what_is_free(monkeypatch):
    assert free_bytes(CPU) == float("inf")
    assert fits(torch.zeros(10), CPU)
    monkeypatch.setattr("denspu.training.loop.free_bytes", lambda device: 1000.0)
    assert fits(torch.zeros(100), CUDA)
    assert not fits(torch.zeros(101), CUDA)
    assert fits(torch.zeros(400, dtype=torch.uint8), CUDA)


@pytest.mark.parametrize(("fraction", "free"), [(1.0, 60 + 20), (0.5, 20 + 20)])
def test_free_memory_of_a_gpu(monkeypatch, fraction, free):
    """What others left, or what this process may take, and what it holds unused."""
    told = {
        "mem_get_info": (60, 100),
        "memory_reserved": 30,
        "memory_allocated": 10,
        "get_per_process_memory_fraction": fraction,
    }
    for name, value in told.items():
        monkeypatch.setattr(torch.cuda, name, lambda _, v=value: v, raising=False)
    assert free_bytes(CUDA) == free
