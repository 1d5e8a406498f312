"""NcPU: labels that follow prototypes, the network that follows, and that it learns."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from denspu import make
from denspu.exceptions import InvalidParameterError
from denspu.methods.ncpu import NcLoss, NcPU, OnlineAndTarget
from denspu.networks.backbones import MLP, OneLogit


def small_network():
    return OneLogit(MLP(3, width=16, depth=1))


SMALL = {
    "network": small_network(),
    "epochs": 10,
    "batch_size": 32,
    "lr": 5e-3,
    "n_projection": 8,
    "device": "cpu",
}
TINY = {**SMALL, "epochs": 4}


@pytest.fixture
def some(make_blobs):
    return make_blobs(seed=10, far=3.0)


def fitted(data, **settings):
    keywords = {k: settings.pop(k) for k in ("known_negative",) if k in settings}
    return make("ncpu", random_state=10, **settings).fit(data.X, data.y, **keywords)


def test_it_learns_and_finds_the_share_without_a_prior(some):
    hidden = some.y == 0
    model = fitted(some, **{**SMALL, "epochs": 20})
    scores = model.decision_function(some.X[hidden])
    assert roc_auc_score(some.truth[hidden], scores) > 0.95
    assert 0.25 < np.mean(scores > 0) < 0.55
    assert not hasattr(model, "prior_")


@pytest.mark.parametrize(
    "change",
    [
        {"warmup": 1.0},
        {"representation_weight": 0.0},
        {"class_level": False},
        {"label_decay": 0.0},
        {"prototype_decay": 0.0},
        {"target_decay": 0.0},
        {"confidence": None},
        {"noise": 1.0},
        {"mask": 0.9},
        {"n_projection": 4},
    ],
)
def test_settings_reach_the_training(some, change):
    base = {**TINY, "epochs": 6, "confidence": 0.5}
    plain, changed = fitted(some, **base), fitted(some, **{**base, **change})
    assert not np.allclose(
        plain.decision_function(some.X), changed.decision_function(some.X)
    )


def test_labels_start_negative_and_move_after_the_warm_up(some):
    hidden = some.y == 0
    still = fitted(some, **TINY, warmup=1.0).labels_
    assert (still[hidden] == 0).all()
    assert (still[~hidden] == 1).all()
    moved = fitted(some, **{**SMALL, "warmup": 0.2}).labels_[hidden]
    assert (
        moved[some.truth[hidden] == 1].mean()
        > moved[some.truth[hidden] == 0].mean() + 0.2
    )


def test_known_negatives_keep_their_label(some):
    known = (some.y == 0) & (np.arange(len(some.y)) % 2 == 0)
    model = fitted(some, **TINY, warmup=0.0, label_decay=0.0, known_negative=known)
    assert (model.labels_[known] == 0).all()
    assert (model.labels_[(some.y == 0) & ~known] > 0).any()


# --- the parts -----------------------------------------------------------------------


def pair(n_rows=4):
    torch.manual_seed(0)
    return OnlineAndTarget(small_network(), 2, n_rows)


def test_prototypes_move_towards_their_class():
    both = pair()
    z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    both.move_prototypes(z, torch.tensor([1.0, 1.0, 0.0]), 0.5)
    assert torch.allclose(both.prototypes, torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    both.move_prototypes(z[2:], torch.tensor([1.0]), 0.5)
    half = 0.5**0.5
    assert torch.allclose(both.prototypes, torch.tensor([[0.0, 1.0], [half, half]]))


def test_labels_follow_the_nearer_prototype_slowly():
    both = pair()
    both.prototypes.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    rows, z = torch.tensor([2, 0]), torch.tensor([[1.0, 0.2], [0.1, 1.0]])
    assert both.move_labels(rows, z, 0.9).tolist() == [0, 0]  # the warm-up
    both.labelling.fill_(1.0)
    both.labels[0] = 1.0
    found = both.move_labels(rows, z, 0.9)
    assert torch.allclose(found, torch.tensor([0.1, 0.9]))
    assert torch.allclose(both.labels, torch.tensor([0.9, 0.0, 0.1, 0.0]))


def loss(confidence=None):
    method = NcPU(
        representation_weight=0.0,
        label_decay=1.0,
        prototype_decay=0.9,
        confidence=confidence,
        noise=0.0,
        mask=0.0,
    )
    rows = SimpleNamespace(as_float=lambda x: x, rows=torch.zeros(4, 3))
    return NcLoss(method, rows)


def batch():
    torch.manual_seed(1)
    return (
        torch.randn(2, 3),
        torch.randn(3, 3),
        torch.arange(2),
        torch.tensor([2, 3, 1]),
    )


def test_means_of_p_and_u_are_separate():
    both, rows = pair().eval(), batch()
    both.labels.copy_(torch.tensor([1.0, 0.7, 0.2, 0.0]))
    found = loss()(both, rows)["loss"].item()
    logits = both.online(torch.cat(rows[:2]))[0].detach().double().numpy()
    p = 1 / (1 + np.exp(-logits))
    label = np.array([0.2, 0.0, 0.7])
    of_u = -(label * np.log(p[2:]) + (1 - label) * np.log(1 - p[2:])).mean()
    assert found == pytest.approx(-np.log(p[:2]).mean() + of_u, rel=1e-5)


def test_a_confident_negative_is_taught_as_negative_for_the_step():
    both, rows = pair().eval(), batch()
    both.labels.fill_(0.8)
    chance = torch.sigmoid(both.online(rows[1])[0])
    held = 0.8 * (chance > 0.5).float().mean()
    found = loss(confidence=0.5)(both, rows)["positive"]
    assert 0 < held < 0.8
    assert torch.allclose(found, held)
    assert (both.labels == 0.8).all()  # the label itself stays


# --- what users may get wrong --------------------------------------------------------


def test_a_network_without_a_last_layer(some):
    model = NcPU(network=torch.nn.Flatten(0))
    with pytest.raises(InvalidParameterError, match=r"has no nn\.Linear"):
        model.fit(some.X, some.y)
