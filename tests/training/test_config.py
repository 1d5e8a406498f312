"""Optimisers and schedules against their closed forms."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from denspu.exceptions import InvalidParameterError
from denspu.training import TrainingConfig


def factors(steps_per_epoch=4, **settings):
    config = TrainingConfig(**settings)
    factor = config.lr_factor(steps_per_epoch)
    return [factor(step) for step in range(config.epochs * steps_per_epoch)]


def test_constant():
    assert factors(epochs=3) == [1.0] * 12


def test_cosine():
    assert factors(epochs=3, schedule="cosine") == pytest.approx(
        [0.5 * (1 + math.cos(math.pi * step / 12)) for step in range(12)]
    )


def test_linear():
    assert factors(epochs=3, schedule="linear") == pytest.approx(
        [1 - step / 12 for step in range(12)]
    )


def test_a_cosine_may_end_above_zero():
    found = factors(epochs=3, schedule="cosine", lr_floor=0.7)
    usual = factors(epochs=3, schedule="cosine")
    assert found == pytest.approx([0.7 + 0.3 * factor for factor in usual])


def test_warm_up_then_cosine_over_the_rest():
    found = factors(epochs=3, schedule="cosine", warmup_epochs=0.5)
    assert found[:2] == [0.5, 1.0]
    assert found[2:] == pytest.approx(
        [0.5 * (1 + math.cos(math.pi * step / 10)) for step in range(10)]
    )


def test_schedules_never_go_below_zero_after_the_end():
    for schedule in ("cosine", "linear"):
        factor = TrainingConfig(epochs=2, schedule=schedule).lr_factor(3)
        assert factor(6) == factor(100) == pytest.approx(0)


def test_a_warm_up_as_long_as_the_training():
    assert factors(epochs=1, warmup_epochs=1) == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("adam", torch.optim.Adam),
        ("adamw", torch.optim.AdamW),
        ("sgd", torch.optim.SGD),
    ],
)
def test_weight_decay_is_for_matrices_only(name, cls):
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 1))
    config = TrainingConfig(epochs=1, optimizer=name, lr=0.5, weight_decay=0.1)
    optimizer = config.build_optimizer(net.parameters())
    assert type(optimizer) is cls
    decay = {
        id(p): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]
    }
    assert {p.ndim > 1: decay[id(p)] for p in net.parameters()} == {
        True: 0.1, False: 0.0,
    }  # fmt: skip
    assert all(group["lr"] == 0.5 for group in optimizer.param_groups)


def test_frozen_parameters_and_empty_groups_are_left_out():
    layer = nn.Linear(2, 2)
    layer.weight.requires_grad_(False)
    optimizer = TrainingConfig(epochs=1).build_optimizer(layer.parameters())
    assert [len(group["params"]) for group in optimizer.param_groups] == [1]


def test_settings_reach_the_optimizer():
    weights = [nn.Parameter(torch.zeros(2, 2))]
    sgd = TrainingConfig(epochs=1, optimizer="sgd", momentum=0.9, nesterov=True)
    group = sgd.build_optimizer(weights).param_groups[0]
    assert (group["momentum"], group["nesterov"]) == (0.9, True)
    adam = TrainingConfig(epochs=1, betas=(0.5, 0.9)).build_optimizer(weights)
    assert adam.param_groups[0]["betas"] == (0.5, 0.9)


def test_unknown_optimizer_suggests():
    with pytest.raises(InvalidParameterError, match="Did you mean 'adam'"):
        TrainingConfig(epochs=1, optimizer="adma").build_optimizer([])
