"""Keras's start: Glorot uniform weights, zero biases."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from denspu.encoders.cae import ConvAutoencoder
from denspu.networks.backbones import keras_defaults


def bound(layer):
    """Return Glorot's sqrt(6 / (fan in + fan out)); a kernel counts in both."""
    area = math.prod(layer.weight.shape[2:])
    return math.sqrt(6 / (area * (layer.weight.shape[0] + layer.weight.shape[1])))


@pytest.mark.parametrize(
    "layer",
    [nn.Linear(100, 50), nn.Conv2d(20, 30, 3), nn.ConvTranspose2d(20, 30, 3)],
    ids=lambda layer: type(layer).__name__,
)
def test_glorot_uniform(layer):
    keras_defaults(layer)
    limit = bound(layer)
    weight = layer.weight.detach()
    assert weight.abs().max() <= limit
    assert weight.abs().max() > 0.98 * limit
    assert weight.var().item() == pytest.approx(limit**2 / 3, rel=0.1)
    assert torch.equal(layer.bias, torch.zeros_like(layer.bias))


def test_layers_without_bias_and_other_layers_are_fine():
    net = nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.BatchNorm2d(2))
    keras_defaults(net)
    assert torch.equal(net[1].weight, torch.ones(2))


def test_the_papers_networks_use_it():
    net = ConvAutoencoder()
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            assert layer.weight.abs().max() <= bound(layer)
            assert layer.weight.abs().max() > 0.9 * bound(layer)
            assert layer.bias.abs().max() == 0
