"""Residual networks: counted, shaped, and blind to a row's neighbours."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from denspu.exceptions import InvalidParameterError
from denspu.networks.backbones import ResNet, resnet18, small_resnet


def count(module):
    return sum(p.numel() for p in module.parameters())


def tiny(channels=3, image_size=8):
    return ResNet(channels, image_size, widths=(8, 12), depth=1)


def images(n, size, channels=3):
    return torch.rand(n, channels, size, size, generator=torch.Generator())


def test_resnet18_has_its_parameters():
    assert count(resnet18(3, 32)) == 11_168_832
    assert count(resnet18(1, 32)) == 11_168_832 - 2 * 9 * 64


def test_resnet18_has_seventeen_convolutions_and_three_ways_around():
    layers = [m for m in resnet18(3, 32).modules() if isinstance(m, nn.Conv2d)]
    assert sum(layer.kernel_size == (3, 3) for layer in layers) == 17
    assert sum(layer.kernel_size == (1, 1) for layer in layers) == 3
    assert [layer.stride for layer in layers].count((2, 2)) == 6


def test_the_small_network_has_the_size_it_states():
    net = small_resnet(3, 32)
    assert net.n_features == 128
    assert 0.25e6 < count(net) < 0.35e6


@pytest.mark.parametrize(("size", "side"), [(8, 8), (15, 15), (16, 8), (64, 32)])
def test_the_small_network_halves_what_is_not_tiny(size, side):
    with torch.inference_mode():
        found = small_resnet(3, size).stem(images(1, size))
    assert found.shape[-2:] == (side, side)


@pytest.mark.parametrize(("size", "channels"), [(8, 3), (12, 1), (33, 4)])
def test_one_embedding_an_image(size, channels):
    net = small_resnet(channels, size).eval()
    with torch.inference_mode():
        z = net(images(2, size, channels))
    assert z.shape == (2, net.n_features)
    assert not torch.equal(z[0], z[1])


def test_images_need_not_be_square():
    with torch.inference_mode():
        z = tiny().eval()(torch.rand(2, 3, 9, 14, generator=torch.Generator()))
    assert z.shape == (2, 12)


@pytest.mark.parametrize(("size", "side"), [(64, 64), (65, 17), (128, 32)])
def test_above_64_pixels_the_stem_keeps_a_quarter_of_the_side(size, side):
    net = tiny(image_size=size)
    with torch.inference_mode():
        assert net.stem(images(1, size)).shape[-2:] == (side, side)


def test_stages_halve_the_image_after_the_first():
    net = ResNet(3, 16, widths=(8, 8, 8, 8), depth=2)
    x = net.stem(images(1, 16))
    sides = []
    for block in net.stages:
        x = block(x)
        sides.append(x.shape[-1])
    assert sides == [16, 16, 8, 8, 4, 4, 2, 2]


def test_the_way_around_is_added():
    """With the inner branch at 0 a block of equal widths passes its input on."""
    block = tiny().stages[0].eval()
    nn.init.zeros_(block.norm2.weight)
    x = images(2, 5, channels=8)
    assert torch.equal(block(x), x)


def test_answers_do_not_depend_on_the_batch():
    net = tiny()
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_(-1, 1, generator=torch.Generator())
    x = images(6, 8)
    net.eval()
    with torch.inference_mode():
        whole = net(x)
        assert torch.allclose(net(x[2:3]), whole[2:3], atol=1e-6)
        assert torch.allclose(net(x.flip(0)), whole.flip(0), atol=1e-6)
        net.train()
        assert not torch.allclose(net(x[:2]), whole[:2], atol=1e-3)


def test_weights_lie_channels_last():
    for layer in tiny().modules():
        if isinstance(layer, nn.Conv2d) and layer.kernel_size == (3, 3):
            assert layer.weight.is_contiguous(memory_format=torch.channels_last)


def test_narrow_stages_are_refused():
    for widths in ((4, 16), (16, 4)):
        with pytest.raises(InvalidParameterError, match="must be at least 8 each"):
            ResNet(3, 8, widths=widths)


def test_every_weight_gets_a_gradient():
    net = tiny()
    net(images(4, 8)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())
