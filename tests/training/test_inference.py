"""A row's answer never depends on the batch it comes in."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from denspu.training import in_fixed_batches

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def conv_net():
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.ReLU(),
            nn.BatchNorm2d(8),
            nn.Dropout(0.5),
            nn.Flatten(),
            nn.Linear(8 * 36, 5),
        )


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(0).random((23, 3, 6, 6), dtype=np.float32)


def apply(net, X, batch_size=8):
    return in_fixed_batches(net, X, torch.from_numpy, device=CPU, batch_size=batch_size)


@pytest.mark.parametrize("rows", [slice(0, 1), slice(3, 4), slice(5, 18), slice(8, 16)])
def test_bit_equal_whatever_the_neighbours(conv_net, pixels, rows):
    whole = apply(conv_net, pixels)
    assert np.array_equal(apply(conv_net, pixels[rows]), whole[rows])


def test_bit_equal_in_any_order(conv_net, pixels):
    order = np.random.default_rng(1).permutation(len(pixels))
    assert np.array_equal(
        apply(conv_net, pixels[order]), apply(conv_net, pixels)[order]
    )


def test_every_batch_has_the_same_size(conv_net, pixels):
    sizes = []
    hook = conv_net.register_forward_pre_hook(lambda m, a: sizes.append(len(a[0])))
    apply(conv_net, pixels)
    hook.remove()
    assert sizes == [8, 8, 8]


def test_matches_a_plain_forward_pass(conv_net, pixels):
    conv_net.eval()
    with torch.inference_mode():
        plain = conv_net(torch.from_numpy(pixels)).numpy()
    assert np.allclose(apply(conv_net, pixels), plain, atol=1e-5)


def test_runs_in_evaluation_mode_and_leaves_no_gradient(conv_net, pixels):
    conv_net.train()
    before = conv_net[2].running_mean.clone()
    first = apply(conv_net, pixels)
    assert not conv_net.training
    assert torch.equal(conv_net[2].running_mean, before)
    assert np.array_equal(first, apply(conv_net, pixels))
    assert first.dtype == np.float32
