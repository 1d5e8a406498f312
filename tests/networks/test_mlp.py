"""The perceptron and the projection head."""

from __future__ import annotations

import torch

from denspu.networks.backbones import MLP
from denspu.networks.heads import Projector


def count(module):
    return sum(p.numel() for p in module.parameters())


def rows(n, columns):
    return torch.rand(n, columns, generator=torch.Generator())


def test_mlp_is_counted():
    """Each layer: a matrix without bias, and two numbers a unit to normalise."""
    assert count(MLP(7)) == 7 * 256 + 2 * 256 * 256 + 3 * 2 * 256
    assert count(MLP(7, width=5, depth=1)) == 7 * 5 + 2 * 5


def test_projector_is_counted():
    assert count(Projector(6, 4)) == 6 * 6 + 2 * 6 + 6 * 4 + 4
    assert Projector(6)(rows(3, 6)).shape == (3, 128)


def test_one_embedding_a_row():
    net = MLP(3, width=8).eval()
    with torch.inference_mode():
        z = net(rows(4, 3))
    assert z.shape == (4, net.n_features) == (4, 8)
    assert z.min() >= 0


def test_projections_may_be_negative():
    """The last layer is linear: a cosine must be able to reach -1."""
    with torch.inference_mode():
        assert Projector(6, 4).eval()(rows(20, 6)).min() < 0


def test_answers_do_not_depend_on_the_batch():
    net, x = MLP(3, width=8), rows(5, 3)
    net(x)  # moves the running statistics
    net.eval()
    with torch.inference_mode():
        whole = net(x)
        assert torch.allclose(net(x[1:2]), whole[1:2], atol=1e-6)
        assert torch.allclose(net(x.flip(0)), whole.flip(0), atol=1e-6)
        net.train()
        assert not torch.allclose(net(x[:2]), whole[:2], atol=1e-3)
