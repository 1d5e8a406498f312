"""The losses of PULNS: NumPy twins, gradients, and what the reward estimates."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from denspu.losses import chosen_risk, pu_accuracy, reinforce

logits = st.lists(st.floats(-8, 8), min_size=1, max_size=12)


def sigmoid(t):
    return 1 / (1 + np.exp(-np.asarray(t, dtype=float)))


def double(values):
    return torch.tensor(values, dtype=torch.float64)


@given(logits, logits, st.floats(0.05, 0.95), st.integers(0, 1000))
def test_chosen_risk_equals_its_twin(positive, unlabeled, prior, seed):
    chosen = np.random.default_rng(seed).random(len(unlabeled)) < 0.5
    expected = prior * -np.log(sigmoid(positive)).mean()
    if chosen.any():
        of_chosen = -np.log(sigmoid(-np.array(unlabeled)[chosen]))
        expected += (1 - prior) * of_chosen.mean()
    found = chosen_risk(
        double(positive), double(unlabeled), double(chosen.astype(float)), prior
    )
    assert found.item() == pytest.approx(expected, abs=1e-10)


def test_the_reward_is_the_accuracy_plus_the_prior():
    """With a pool of π P and (1 - π) N exactly, without a true label."""
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(1, 1, 300), rng.normal(-1, 1, 700)
    found = pu_accuracy(
        double(positive), double(np.concatenate([positive, negative])), 0.3
    )
    right = 0.3 * sigmoid(positive).mean() + 0.7 * (1 - sigmoid(negative)).mean()
    assert found.item() == pytest.approx(right + 0.3, abs=1e-12)


def test_reinforce_equals_its_twin():
    rng = np.random.default_rng(0)
    scores, rewards = rng.normal(size=6), rng.normal(size=3)
    chosen = (rng.random((3, 6)) < 0.5).astype(float)
    advantage = (rewards - rewards.mean()) / rewards.std()
    chance = np.where(chosen == 1, sigmoid(scores), 1 - sigmoid(scores))
    expected = -np.mean(advantage * np.log(chance).mean(axis=1))
    found = reinforce(double(scores), double(chosen), double(rewards))
    assert found.item() == pytest.approx(expected, abs=1e-12)


def test_gradients():
    torch.manual_seed(0)
    rows = [torch.randn(n, dtype=torch.float64, requires_grad=True) for n in (4, 6)]
    chosen = double([0, 1, 1, 0, 1, 0])
    draws = torch.stack([chosen, 1 - chosen])
    rewards = double([0.3, 0.5])
    check = torch.autograd.gradcheck
    assert check(lambda p, u: chosen_risk(p, u, chosen, 0.4), rows)
    assert check(lambda p, u: pu_accuracy(p, u, 0.4), rows)
    assert check(lambda s: reinforce(s, draws, rewards), rows[1:])


def test_choices_of_the_better_draw_become_likelier():
    scores = torch.zeros(2, requires_grad=True)
    draws = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    (slope,) = torch.autograd.grad(
        reinforce(scores, draws, torch.tensor([1.0, 0.2])), scores
    )
    assert slope[0] < 0 < slope[1]


def test_equal_rewards_teach_nothing():
    scores = torch.randn(3, requires_grad=True)
    draws = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    (slope,) = torch.autograd.grad(reinforce(scores, draws, torch.ones(2)), scores)
    assert (slope == 0).all()
