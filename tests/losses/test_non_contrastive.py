"""The representation loss of NcPU: a NumPy twin, its gradient, its limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu.losses import class_alignment


def twin(online, target, probability, class_weight, agree=0.5):
    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    n = len(online)
    own = np.mean([2 * (1 - cosine(online[i], target[i])) for i in range(n)])
    pairs = [
        2 * np.sqrt(1 - cosine(online[i], target[j]))
        for i in range(n)
        for j in range(n)
        if i != j
        and probability[i] * probability[j]
        + (1 - probability[i]) * (1 - probability[j])
        >= agree
    ]
    return own + class_weight * (np.mean(pairs) if pairs else 0.0)


@pytest.mark.parametrize("class_weight", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_equals_its_twin(n, class_weight):
    rng = np.random.default_rng(n)
    online, target = rng.normal(size=(2, n, 4))
    probability = rng.random(n)
    found = class_alignment(
        torch.tensor(online),
        torch.tensor(target),
        torch.tensor(probability),
        class_weight=class_weight,
    )
    assert found.item() == pytest.approx(
        twin(online, target, probability, class_weight)
    )


def test_gradient():
    torch.manual_seed(0)
    online = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    target = torch.randn(5, 3, dtype=torch.float64)
    chance = torch.tensor([0.9, 0.8, 0.1, 0.2, 0.95], dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda z: class_alignment(z, target, chance), [online]
    )


def test_rows_of_other_classes_do_not_pull():
    """Two classes on two axes: nothing is left to descend on."""
    z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    chance = torch.tensor([1.0, 1.0, 0.0])
    assert class_alignment(z, z, chance).item() == pytest.approx(0.0, abs=3e-3)
    mixed = class_alignment(z, z, torch.tensor([1.0, 0.0, 0.0])).item()
    assert mixed == pytest.approx(2.0)  # the one pair is at right angles


def test_equal_rows_have_a_finite_slope():
    z = torch.ones(3, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(class_alignment(z, z.detach(), torch.ones(3)), z)
    assert torch.isfinite(slope).all()
