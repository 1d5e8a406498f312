"""VGG-16 with the paper's head, counted."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from denspu.networks.backbones import VGG16


@pytest.fixture(scope="module")
def net():
    return VGG16()


def count(module):
    return sum(p.numel() for p in module.parameters())


def test_body_has_the_parameters_of_vgg16(net):
    assert count(net.body) == 14_714_688


def test_head_is_the_papers(net):
    assert count(net.head) == (512 * 128 + 128) + (128 + 1)
    names = [type(layer).__name__ for layer in net.head]
    assert names == ["AdaptiveAvgPool2d", "Flatten", "Linear", "ReLU", "Linear"]


def test_thirteen_convolutions_in_five_pooled_blocks(net):
    text = "".join(
        {nn.Conv2d: "c", nn.MaxPool2d: "p", nn.ReLU: ""}[type(layer)]
        for layer in net.body
    )
    assert text == "ccpccpcccpcccpcccp"
    widths = [layer.out_channels for layer in net.body if isinstance(layer, nn.Conv2d)]
    assert widths == [64] * 2 + [128] * 2 + [256] * 3 + [512] * 6


def test_one_logit_an_image(net):
    x = torch.rand(2, 3, 32, 32, generator=torch.Generator())
    with torch.inference_mode():
        out = net(x)
    assert out.shape == (2,)
    assert out[0] != out[1]


def test_no_batch_normalisation_and_no_dropout(net):
    kinds = {type(layer) for layer in net.modules()}
    assert not kinds & {nn.BatchNorm2d, nn.Dropout, nn.Dropout2d}
