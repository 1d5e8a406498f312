"""Self-PU: who is trusted when, what teachers are, and that it learns."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from denspu import make
from denspu.exceptions import InvalidParameterError
from denspu.methods.self_pu import Lessons, School, SelfPU
from denspu.networks.backbones import MLP, OneLogit

SMALL = {
    "prior": 0.57,
    "network": OneLogit(MLP(3, width=16, depth=1)),
    "epochs": 8,
    "batch_size": 32,
    "lr": 5e-3,
    "device": "cpu",
}
LINEAR = {**SMALL, "network": "linear", "epochs": 4}


@pytest.fixture
def some(make_blobs):
    return make_blobs(seed=10, far=2.5)


def fitted(data, **settings):
    keywords = {k: settings.pop(k) for k in ("known_negative",) if k in settings}
    model = make("self_pu", random_state=10, **settings)
    return model.fit(data.X, data.y, **keywords)


def test_each_student_trusts_as_many_as_its_pace(some):
    """100 rows of U: 10 and 20 on either side in the end."""
    model = fitted(some, **LINEAR, paces=(0.1, 0.2))
    assert model.trusted_ == [20, 40]


@pytest.mark.parametrize(
    "change",
    [
        {"paces": (0.3, 0.4)},
        {"labels": "hard"},
        {"consistency": 50.0},
        {"teacher_decay": 0.0},
        {"warmup": 0.5},
        {"growing": 0.6},
        {"alpha": 0.0},
    ],
)
def test_settings_reach_the_training(some, change):
    base = {**LINEAR, "epochs": 8, "paces": (0.1, 0.2), "lr": 0.05}
    plain, changed = fitted(some, **base), fitted(some, **{**base, **change})
    assert not np.allclose(
        plain.decision_function(some.X), changed.decision_function(some.X)
    )


def test_known_negatives_are_trusted_from_the_start(some):
    known = (some.truth == 0) & (np.arange(len(some.y)) % 2 == 0)
    model = fitted(some, **LINEAR, paces=(0.0, 0.0), known_negative=known)
    assert model.trusted_ == [known.sum()] * 2
    plain = fitted(some, **LINEAR, paces=(0.0, 0.0))
    assert (
        model.decision_function(some.X[known]).mean()
        < plain.decision_function(some.X[known]).mean()
    )


def school(prior=0.4, n_rows=6):
    torch.manual_seed(0)

    def network():
        return torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Flatten(0))

    return School([network(), network()], [network(), network()], n_rows, prior)


def lessons(both, **settings):
    task = SimpleNamespace(
        as_float=lambda x: x, unlabeled=np.arange(2, 5), known_negative=np.arange(0)
    )
    return Lessons(SelfPU(**settings), task, both, (0.1, 0.1))


def test_teachers_count_only_once_they_have_begun():
    both = school()
    batch = (torch.randn(2, 2), torch.randn(3, 2), torch.arange(2), torch.arange(3) + 2)
    loss = lessons(both, alpha=0.0, consistency=2.0)
    apart = loss(both, batch)
    assert apart["loss"] == apart["risk"]
    both.together.fill_(1.0)
    agreed = loss(both, batch)
    expected = agreed["risk"] + 2 * (agreed["students"] + agreed["teachers"])
    assert torch.allclose(agreed["loss"], expected)
    assert agreed["teachers"] > 0  # the released code has 0 here
    agreed["loss"].backward()
    assert all(weight.grad is None for weight in both.teachers.parameters())
    assert all(weight.grad is not None for weight in both.students.parameters())


def test_each_student_has_its_own_trusted_rows_and_prior():
    both = school()
    batch = (torch.randn(2, 2), torch.randn(3, 2), torch.arange(2), torch.arange(3) + 2)
    loss = lessons(both, alpha=0.0, consistency=0.0)
    before = loss(both, batch)["risk"].item()
    both.trusted[1, 4] = 1.0
    trusting = loss(both, batch)["risk"].item()
    both.prior[0] = 0.9
    assert len({before, trusting, loss(both, batch)["risk"].item()}) == 3


def test_the_answer_is_the_mean_of_the_teachers(some):
    model = fitted(some, **LINEAR)
    x = torch.randn(5, 3)
    answers = [teacher(x) for teacher in model.module_.networks]
    assert len(answers) == 2
    assert torch.allclose(model.module_(x), (answers[0] + answers[1]) / 2)
    assert not torch.allclose(answers[0], answers[1])


@pytest.mark.parametrize("paces", [0.1, (0.1,), (0.1, 0.6), ("a", 0.1)])
def test_bad_paces(some, paces):
    with pytest.raises(InvalidParameterError, match="two numbers in"):
        SelfPU(prior=0.57, paces=paces).fit(some.X, some.y)
