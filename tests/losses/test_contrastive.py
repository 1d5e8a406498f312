"""The contrastive loss against loops, closed forms and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu.losses import nt_xent


def draw(n, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(2 * n, d))


def twin(z, temperature, positive=None, positive_weight=0.0):
    """Return the same number by plain loops in float64."""
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    n, half = len(z), len(z) // 2

    def log_share(i, j):
        others = [np.exp(z[i] @ z[k] / temperature) for k in range(n) if k != i]
        return z[i] @ z[j] / temperature - np.log(sum(others))

    loss = -np.mean([log_share(i, (i + half) % n) for i in range(n)])
    if positive is None:
        return loss
    views = [i for i in range(n) if positive[i % half]]
    pairs = [log_share(i, j) for i in views for j in views if i != j]
    if not pairs:
        return loss
    return loss - positive_weight * np.mean(pairs) * len(views) / n


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("temperature", [0.2, 1.0])
def test_equals_its_twin(n, temperature):
    z = draw(n)
    found = nt_xent(torch.tensor(z), temperature).item()
    assert found == pytest.approx(twin(z, temperature), abs=1e-5)


@pytest.mark.parametrize(
    "positive", [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 1, 1], [1, 1, 1, 1]]
)
@pytest.mark.parametrize("weight", [0.5, 2.0])
def test_equals_its_twin_with_positives(positive, weight):
    z = draw(4)
    found = nt_xent(torch.tensor(z), 0.5, torch.tensor(positive, dtype=bool), weight)
    assert found.item() == pytest.approx(twin(z, 0.5, positive, weight), abs=1e-5)


def test_weight_zero_ignores_the_positives():
    z = torch.tensor(draw(4))
    positive = torch.tensor([True, False, True, True])
    assert nt_xent(z, 0.2, positive, 0.0) == nt_xent(z, 0.2)


@pytest.mark.parametrize("n", [2, 8])
def test_equal_embeddings_leave_every_other_view_as_likely(n):
    z = torch.ones(2 * n, 3)
    assert nt_xent(z).item() == pytest.approx(np.log(2 * n - 1), abs=1e-5)
    everyone = torch.ones(n, dtype=bool)
    assert nt_xent(z, 0.2, everyone, 0.5).item() == pytest.approx(
        1.5 * np.log(2 * n - 1), abs=1e-5
    )


def test_pairs_that_find_each_other_cost_nothing():
    z = torch.eye(4).repeat(2, 1)
    assert nt_xent(z, 0.05).item() < 1e-6
    assert nt_xent(torch.cat([z[:4], z[:4].roll(1, 0)]), 0.05).item() > 10


def test_length_does_not_matter():
    z = draw(4)
    longer = z * np.arange(1, 9)[:, None]
    assert nt_xent(torch.tensor(longer)).item() == pytest.approx(
        nt_xent(torch.tensor(z)).item(), abs=1e-5
    )


def test_half_precision_is_summed_in_full():
    z = torch.tensor(draw(4)).bfloat16()
    loss = nt_xent(z)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(twin(z.double().numpy(), 0.2), abs=1e-5)


@pytest.mark.parametrize("weight", [0.0, 0.7])
def test_gradient_by_finite_differences(weight):
    z, positive = draw(3), [True, False, True]
    leaf = torch.tensor(z, requires_grad=True)
    nt_xent(leaf, 0.5, torch.tensor(positive), weight).backward()
    step, slope = 1e-6, np.empty_like(z)
    for place in np.ndindex(*z.shape):
        up, down = z.copy(), z.copy()
        up[place] += step
        down[place] -= step
        ends = [twin(v, 0.5, positive, weight) for v in (up, down)]
        slope[place] = (ends[0] - ends[1]) / (2 * step)
    assert np.allclose(leaf.grad.numpy(), slope, atol=1e-4)


def test_positive_term_pulls_positives_together():
    """A step against the gradient brings the positives nearer than without the term."""
    z = torch.tensor(draw(6, seed=1))
    positive = torch.tensor([True, True, True, False, False, False])

    def cosine_after(weight):
        leaf = z.clone().requires_grad_(True)
        nt_xent(leaf, 0.5, positive, weight).backward()
        moved = torch.nn.functional.normalize(leaf.detach() - leaf.grad, dim=1)
        return (moved[:3] @ moved[:3].T).mean()

    assert cosine_after(5.0) > cosine_after(0.0)
