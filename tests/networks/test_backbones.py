"""The papers' networks: counted weights, one logit a row, their random start."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from denspu.networks.backbones import (
    BACKBONES,
    NormalisedConv,
    build_backbone,
    suitable,
)


def count(module):
    return sum(p.numel() for p in module.parameters())


def test_the_papers_networks_are_counted():
    assert count(build_backbone("cnn", (3, 32, 32))) == 3_015_255
    assert count(build_backbone("mlp", (1, 28, 28))) == 507_901
    assert count(build_backbone("mlp", (784,))) == 507_901
    assert count(build_backbone("linear", (7,))) == 8


def test_a_bias_before_normalisation_is_held_because_it_does_nothing():
    x = torch.rand(6, 3, 8, 8, generator=torch.Generator(), dtype=torch.float64)
    ours = NormalisedConv(3, 5, 3, 2).double()
    usual = nn.Conv2d(3, 5, 3, 2, 1).double()
    usual.weight.data.copy_(ours.weight)
    norm = nn.BatchNorm2d(5).double().train()
    torch.testing.assert_close(norm(ours(x)), norm(usual(x)))
    net = build_backbone("cnn", (3, 8, 8))
    held = [p for p in net.parameters() if not p.requires_grad]
    assert sum(p.numel() for p in held) == 3 * 96 + 5 * 192 + 10
    assert all(not p.any() for p in held)


@pytest.mark.parametrize(("channels", "filters"), [(3, 16), (8, 10), (3, 10), (8, 8)])
def test_channels_made_up_to_eights_change_nothing(channels, filters):
    x = torch.rand(4, channels, 6, 6, generator=torch.Generator(), dtype=torch.float64)
    conv = NormalisedConv(channels, filters, 3, 2).double()
    found = {}
    for way in (conv.in_eights, conv):
        conv.zero_grad()
        answer = way(x.requires_grad_())
        answer.square().sum().backward()
        found[way] = answer, conv.weight.grad, x.grad.clone()
        x.grad = None
    torch.testing.assert_close(*found.values())


@pytest.mark.parametrize(
    ("on_gpu", "sizes"),
    [
        (True, [(8, 96, 8), (192, 16, 192), (96, 96, 96)]),
        (False, [(3, 96, 3), (192, 10, 192), (96, 96, 96)]),
    ],
)
def test_channels_are_made_up_to_eights_on_a_gpu(monkeypatch, on_gpu, sizes):
    class Rows(torch.Tensor):
        is_cuda = on_gpu

    seen = []

    def convolve(self, x, weight, bias):
        seen.append((x.shape[1], *weight.shape[:2]))
        return x.new_zeros(len(x), len(weight), 4, 4)

    monkeypatch.setattr(NormalisedConv, "_conv_forward", convolve)
    for channels, filters in ((3, 96), (192, 10), (96, 96)):
        conv = NormalisedConv(channels, filters, 3, 1)
        answer = conv(torch.zeros(2, channels, 4, 4).as_subclass(Rows))
        assert answer.shape[1] == filters
    assert seen == sizes


@pytest.mark.parametrize("name", sorted(set(BACKBONES) - {"vgg16"}))
def test_one_logit_a_row(name):
    net = build_backbone(name, (3, 8, 8)).eval()
    with torch.inference_mode():
        assert net(torch.rand(5, 3, 8, 8, generator=torch.Generator())).shape == (5,)


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((30,), "mlp"),
        ((1, 28, 28), "mlp"),
        ((3, 32, 32), "cnn"),
        ((3, 64, 64), "cnn"),
        ((3, 65, 32), "resnet18"),
        ((1, 224, 224), "resnet18"),
    ],
)
def test_the_network_follows_the_shape(shape, name):
    assert suitable(shape) == name


def test_the_start_is_kaiming_normal_with_zero_biases():
    net = build_backbone("mlp", (784,))
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
    assert len(layers) == 5
    first = layers[0].weight
    assert first.std().item() == pytest.approx((2 / 784) ** 0.5, rel=0.02)
    assert [layer.bias is None for layer in layers] == [True] * 4 + [False]
    assert layers[-1].bias.abs().max() == 0


def test_images_of_uneven_sides():
    net = build_backbone("cnn", (2, 9, 6)).eval()
    with torch.inference_mode():
        assert net(torch.zeros(2, 2, 9, 6)).shape == (2,)
