"""The losses of GenPU: NumPy twins, gradients, and who pushes where."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu.losses import (
    discriminator_loss,
    negative_generator_loss,
    positive_generator_loss,
)


def sigmoid(t):
    return 1 / (1 + np.exp(-t))


@pytest.fixture
def some():
    rng = np.random.default_rng(0)
    return [rng.normal(size=n) for n in (4, 5, 6)]


def test_equal_their_twins(some):
    a, b, c = (sigmoid(values) for values in some)
    first, second, third = (torch.tensor(values) for values in some)
    mixture = 0.3 * np.log(1 - b).mean() + 0.7 * np.log(1 - c).mean()
    found = discriminator_loss(first, second, third, 0.3).item()
    assert found == pytest.approx(-np.log(a).mean() - mixture)
    found = discriminator_loss(first, second).item()
    assert found == pytest.approx(-np.log(a).mean() - np.log(1 - b).mean())
    found = positive_generator_loss(first, second, 0.3, 2.0, 5.0).item()
    expected = 0.3 * (-2 * np.log(a).mean() - 5 * np.log(b).mean())
    assert found == pytest.approx(expected)
    found = negative_generator_loss(first, second, 0.3, 2.0, 5.0).item()
    expected = 0.7 * (-2 * np.log(1 - a).mean() - 5 * np.log(b).mean())
    assert found == pytest.approx(expected)


def test_gradients(some):
    rows = [torch.tensor(values, requires_grad=True) for values in some]
    check = torch.autograd.gradcheck
    assert check(lambda a, b, c: discriminator_loss(a, b, c, 0.3), rows)
    assert check(lambda a, b: positive_generator_loss(a, b, 0.3, 2.0, 5.0), rows[:2])
    assert check(lambda a, b: negative_generator_loss(a, b, 0.3, 2.0, 5.0), rows[:2])


def test_made_negatives_help_to_tell_them_from_p():
    """Descent lowers D_n on made negatives and raises D_u: the minus sign of λ_n."""
    by_n, by_u = (torch.zeros(3, requires_grad=True) for _ in range(2))
    loss = negative_generator_loss(by_n, by_u, 0.4, 1.0, 1.0)
    of_n, of_u = torch.autograd.grad(loss, (by_n, by_u))
    assert (of_n > 0).all()
    assert (of_u < 0).all()


def test_made_positives_fool_both():
    by_p, by_u = (torch.zeros(3, requires_grad=True) for _ in range(2))
    loss = positive_generator_loss(by_p, by_u, 0.4, 1.0, 1.0)
    assert all((slope < 0).all() for slope in torch.autograd.grad(loss, (by_p, by_u)))


def test_an_undecided_discriminator():
    """At the optimum of a fooled game each side costs log 2."""
    zero = torch.zeros(3)
    assert discriminator_loss(zero, zero).item() == pytest.approx(2 * np.log(2))
    mixed = discriminator_loss(zero, zero, zero, 0.2).item()
    assert mixed == pytest.approx(2 * np.log(2))
