"""The losses of Self-PU: NumPy twins, gradients, and the cases that must be nnPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from denspu.losses import (
    agreeing,
    disagreement,
    non_negative,
    risk_parts,
    self_paced_risk,
)

logits = st.lists(st.floats(-8, 8), min_size=1, max_size=12)


def sigmoid(t):
    return 1 / (1 + np.exp(-np.asarray(t, dtype=float)))


def twin(positive, pool, target, trusted, prior):
    trusted = np.asarray(trusted, dtype=bool)
    as_positive = prior * sigmoid(-np.asarray(positive)).mean()
    of_rest = sigmoid(np.asarray(pool)[~trusted]).mean() if (~trusted).any() else 0.0
    as_negative = of_rest - prior * sigmoid(positive).mean()
    risk = as_positive + as_negative if as_negative >= 0 else -as_negative
    p = sigmoid(pool)
    entropy = -(
        np.asarray(target) * np.log(p) + (1 - np.asarray(target)) * np.log1p(-p)
    )
    return (~trusted).mean() * risk + (trusted * entropy).mean()


@given(logits, logits, st.floats(0.05, 0.95), st.integers(0, 1000))
def test_equals_its_twin(positive, pool, prior, seed):
    rng = np.random.default_rng(seed)
    target, trusted = rng.random(len(pool)), rng.random(len(pool)) < 0.5
    found = self_paced_risk(
        torch.tensor(positive, dtype=torch.float64),
        torch.tensor(pool, dtype=torch.float64),
        torch.tensor(target),
        torch.tensor(trusted, dtype=torch.float64),
        prior,
    )
    expected = twin(positive, pool, target, trusted, prior)
    assert found.item() == pytest.approx(expected, abs=1e-10)


def test_nobody_trusted_is_nnpu():
    torch.manual_seed(0)
    positive, pool = torch.randn(5), torch.randn(9)
    found = self_paced_risk(positive, pool, torch.zeros(9), torch.zeros(9), 0.3)
    assert torch.allclose(found, non_negative(*risk_parts(positive, pool, 0.3)))


def test_the_step_back_leaves_the_positive_part_alone():
    """Oracle 1: P at +10, U at -10 makes B negative; the slope is that of -B."""
    positive = torch.full((3,), 10.0, dtype=torch.float64, requires_grad=True)
    pool = torch.full((4,), -10.0, dtype=torch.float64, requires_grad=True)
    zeros = torch.zeros(4, dtype=torch.float64)
    risk = self_paced_risk(positive, pool, zeros, zeros, 0.4)
    found = torch.autograd.grad(risk, (positive, pool))
    _, negative_part = risk_parts(positive, pool, 0.4)
    wanted = torch.autograd.grad(-negative_part, (positive, pool))
    assert all(torch.allclose(f, w) for f, w in zip(found, wanted, strict=True))


def test_gradient():
    torch.manual_seed(1)
    rows = [torch.randn(n, dtype=torch.float64, requires_grad=True) for n in (4, 6)]
    trusted = torch.tensor([0, 1, 0, 1, 0, 0], dtype=torch.float64)
    target = torch.rand(6, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda p, u: self_paced_risk(p, u, target, trusted, 0.4), rows
    )
    other = torch.randn(4, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda p: disagreement(p, other), rows[:1])


def test_disagreement_is_about_probabilities_and_moves_one_side():
    """The softmax of one logit, which the released code compares, is always 1."""
    one = torch.tensor([2.0, -1.0], requires_grad=True)
    other = torch.tensor([0.0, 3.0], requires_grad=True)
    found = disagreement(one, other)
    expected = np.mean((sigmoid([2.0, -1.0]) - sigmoid([0.0, 3.0])) ** 2)
    assert found.item() == pytest.approx(expected, abs=1e-6)
    found.backward()
    assert (one.grad != 0).all()
    assert other.grad is None


@pytest.mark.parametrize(("loss", "kept"), [(1.1, 1.0), (0.9, 0.0)])
def test_students_that_differ_much_are_left_alone(loss, kept):
    difference = torch.tensor(0.1, requires_grad=True)
    found = agreeing(torch.tensor(loss), difference, 10.0)
    (slope,) = torch.autograd.grad(found, difference)
    assert slope.item() == kept
    assert found.item() == pytest.approx(0.1 * kept)
