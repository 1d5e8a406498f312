"""The PU risk: an independent twin in NumPy, its gradient, and what it estimates."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from denspu.losses import absolute_risk

logits = st.lists(st.floats(-8, 8), min_size=1, max_size=20)


def sigmoid_loss(margin):
    return 1 / (1 + np.exp(margin))


def twin(positive, unlabeled, prior):
    positive, unlabeled = np.array(positive), np.array(unlabeled)
    as_positive = prior * sigmoid_loss(positive).mean()
    as_negative = (
        sigmoid_loss(-unlabeled).mean() - prior * sigmoid_loss(-positive).mean()
    )
    return as_positive + abs(as_negative)


@given(logits, logits, st.floats(0.01, 0.99))
def test_equals_its_twin(positive, unlabeled, prior):
    found = absolute_risk(
        torch.tensor(positive, dtype=torch.float64),
        torch.tensor(unlabeled, dtype=torch.float64),
        prior,
    )
    assert found.item() == pytest.approx(twin(positive, unlabeled, prior), abs=1e-12)


def test_gradient():
    torch.manual_seed(0)
    rows = [torch.randn(n, dtype=torch.float64, requires_grad=True) for n in (5, 7)]
    assert torch.autograd.gradcheck(lambda p, u: absolute_risk(p, u, 0.4), rows)


def test_it_is_the_risk_of_the_classifier():
    """With U = π P + (1 - π) N exactly, the PU risk is the supervised one."""
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(1, 1, 300), rng.normal(-1, 1, 700)
    unlabeled = np.concatenate([positive, negative])
    found = absolute_risk(torch.tensor(positive), torch.tensor(unlabeled), 0.3).item()
    supervised = (
        0.3 * sigmoid_loss(positive).mean() + 0.7 * sigmoid_loss(-negative).mean()
    )
    assert found == pytest.approx(supervised, abs=1e-12)


def test_calling_too_few_of_u_positive_is_pushed_back():
    """Where the bracket is below zero, descent raises the logits of U."""
    positive = torch.full((4,), 5.0)
    unlabeled = torch.full((4,), -5.0, requires_grad=True)
    (gradient,) = torch.autograd.grad(
        absolute_risk(positive, unlabeled, 0.5), unlabeled
    )
    assert (gradient < 0).all()
