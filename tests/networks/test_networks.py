"""The networks of the papers: counted weights, their start, one answer a row."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from denspu.encoders.cae import ConvAutoencoder
from denspu.exceptions import InvalidParameterError
from denspu.networks.backbones import (
    VGG16,
    NormalisedConv,
    Projector,
    ResNet,
    WithMirror,
    build_backbone,
    keras_defaults,
    resnet18,
    small_resnet,
    suitable,
)


def count(module):
    return sum(p.numel() for p in module.parameters())


def draw(*shape, dtype=torch.float32):
    return torch.rand(*shape, generator=torch.Generator(), dtype=dtype)


def layers(module, kind):
    return [layer for layer in module.modules() if isinstance(layer, kind)]


@pytest.mark.parametrize(
    ("module", "weights"),
    [
        (lambda: build_backbone("cnn", (3, 32, 32)), 3_015_255),
        (lambda: build_backbone("mlp", (1, 28, 28)), 507_901),
        (lambda: VGG16().body, 14_714_688),
        (lambda: VGG16().head, (512 * 128 + 128) + (128 + 1)),
        (lambda: resnet18(3, 32), 11_168_832),
        (lambda: small_resnet(3, 32), 307_536),
    ],
)
def test_weights_are_counted(module, weights):
    assert count(module()) == weights


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("linear", (3, 8, 8)),
        ("mlp", (30,)),
        ("cnn", (2, 9, 6)),
        ("resnet18", (3, 8, 8)),
        ("vgg16", (3, 32, 32)),
    ],
)
def test_one_logit_a_row_that_depends_on_the_row_alone(name, shape):
    net, x = build_backbone(name, shape), draw(3, *shape)
    net(x)  # moves the running statistics
    net.eval()
    with torch.inference_mode():
        whole = net(x)
        assert whole.shape == (3,)
        assert len(whole.unique()) == 3
        torch.testing.assert_close(net(x.flip(0)), whole.flip(0))
        torch.testing.assert_close(net(x[1:2]), whole[1:2])


# --- their start ----------------------------------------------------------------------


def glorot(layer):
    """Return sqrt(6 / (fan in + fan out)); a kernel counts in both."""
    area = math.prod(layer.weight.shape[2:])
    return math.sqrt(6 / (area * (layer.weight.shape[0] + layer.weight.shape[1])))


def test_keras_defaults_are_glorot_uniform_with_zero_biases():
    net = nn.Sequential(
        nn.Linear(100, 50),
        nn.Conv2d(20, 30, 3),
        nn.ConvTranspose2d(20, 30, 3),
        nn.Conv2d(20, 30, 3, bias=False),
        nn.BatchNorm2d(2),
    )
    keras_defaults(net)
    for layer in net[:4]:
        weight, limit = layer.weight.detach(), glorot(layer)
        assert 0.98 * limit < weight.abs().max() <= limit
        assert weight.var().item() == pytest.approx(limit**2 / 3, rel=0.1)
        assert layer.bias is None or not layer.bias.any()
    assert torch.equal(net[4].weight, torch.ones(2))
    for layer in layers(ConvAutoencoder(), nn.Conv2d):
        assert 0.9 * glorot(layer) < layer.weight.abs().max() <= glorot(layer)


def test_the_others_start_kaiming_normal_with_zero_biases():
    found = layers(build_backbone("mlp", (784,)), nn.Linear)
    assert found[0].weight.std().item() == pytest.approx((2 / 784) ** 0.5, rel=0.02)
    assert [layer.bias is None for layer in found] == [True] * 4 + [False]
    assert not found[-1].bias.any()


# --- their parts ----------------------------------------------------------------------


def test_the_autoencoder_mirrors_itself_around_512_values():
    net = ConvAutoencoder().eval()
    assert [c.out_channels for c in layers(net.encoder, nn.Conv2d)] == [64, 32, 8]
    mirror = layers(net.decoder, nn.ConvTranspose2d)
    assert [d.out_channels for d in mirror] == [8, 32, 64]
    x = 50 * draw(2, 3, 32, 32) - 25
    with torch.inference_mode():
        z, redrawn = net.encode(x), net(x)
        assert torch.equal(net.decoder(z.reshape(2, 8, 8, 8)), redrawn)
    assert z.shape == (2, 512)
    assert redrawn.shape == x.shape
    assert 0 <= redrawn.min() < redrawn.max() <= 1


def test_a_bias_before_normalisation_is_held_because_it_does_nothing():
    x = draw(6, 3, 8, 8, dtype=torch.float64)
    ours = NormalisedConv(3, 5, 3, 2).double()
    usual = nn.Conv2d(3, 5, 3, 2, 1).double()
    usual.weight.data.copy_(ours.weight)
    norm = nn.BatchNorm2d(5).double().train()
    torch.testing.assert_close(norm(ours(x)), norm(usual(x)))
    held = [p for p in build_backbone("cnn", (3, 8, 8)).parameters()
            if not p.requires_grad]  # fmt: skip
    assert sum(p.numel() for p in held) == 3 * 96 + 5 * 192 + 10
    assert not any(p.any() for p in held)


@pytest.mark.parametrize(("channels", "filters"), [(3, 10), (8, 8)])
def test_channels_made_up_to_eights_change_nothing(channels, filters):
    x = draw(4, channels, 6, 6, dtype=torch.float64)
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
    [(True, [(8, 96, 8), (192, 16, 192)]), (False, [(3, 96, 3), (192, 10, 192)])],
)
def test_channels_are_made_up_to_eights_on_a_gpu(monkeypatch, on_gpu, sizes):
    class Rows(torch.Tensor):
        is_cuda = on_gpu

    seen = []

    def convolve(self, x, weight, bias):
        seen.append((x.shape[1], *weight.shape[:2]))
        return x.new_zeros(len(x), len(weight), 4, 4)

    monkeypatch.setattr(NormalisedConv, "_conv_forward", convolve)
    for channels, filters in ((3, 96), (192, 10)):
        conv = NormalisedConv(channels, filters, 3, 1)
        answer = conv(torch.zeros(2, channels, 4, 4).as_subclass(Rows))
        assert answer.shape[1] == filters
    assert seen == sizes


@pytest.mark.parametrize(
    ("network", "size", "side"),
    [
        (small_resnet, 16, 8),
        (small_resnet, 65, 17),
        (resnet18, 64, 64),
        (resnet18, 128, 32),
    ],
)
def test_the_first_layer_shrinks_large_images(network, size, side):
    with torch.inference_mode():
        assert network(1, size).stem(draw(1, 1, size, size)).shape[-1] == side


def test_residual_stages():
    net = ResNet(3, 16, widths=(8, 8, 8, 12), depth=2)
    x = net.stem(draw(2, 3, 16, 20))
    sides = [(x := block(x)).shape[-2] for block in net.stages]
    assert sides == [16, 16, 8, 8, 4, 4, 2, 2]
    assert net(draw(2, 3, 16, 20)).shape == (2, 12)
    block = net.stages[0].eval()  # with the inner branch at 0 it passes its input on
    nn.init.zeros_(block.norm2.weight)
    x = draw(2, 8, 5, 5)
    assert torch.equal(block(x), x)
    with pytest.raises(InvalidParameterError, match="must be at least 8 each"):
        ResNet(3, 8, widths=(16, 4))


def test_a_mirror_and_a_projection():
    torch.manual_seed(0)
    net = build_backbone("linear", (1, 2, 2))
    x = draw(3, 1, 2, 2)
    both = WithMirror(net, True)
    torch.testing.assert_close(both(x), both(x.flip(3)))
    assert torch.equal(WithMirror(net, False)(x), net(x))
    projections = Projector(6, 64).eval()(draw(20, 6))
    assert projections.min() < 0  # a cosine must be able to reach -1


def test_the_network_follows_the_shape():
    shapes = ((30,), (1, 28, 28), (3, 64, 64), (3, 65, 32))
    assert [suitable(shape) for shape in shapes] == ["mlp", "mlp", "cnn", "resnet18"]
