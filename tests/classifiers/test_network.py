"""A network as a classifier: loss, balance and weights, on a network of one layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch import nn

from denspu.classifiers import NetworkClassifier, weighted_logistic_loss
from denspu.exceptions import InvalidInputError
from denspu.training import BalancedBatches, TensorBatches, TrainingConfig

CPU = torch.device("cpu")


class Linear(NetworkClassifier):
    """Logistic regression on pixels, through the same doors as VGG-16."""

    image_size = 4
    device = "cpu"
    verbose = 0

    def __init__(self, *, epochs=40, batch_size=8, balance="batches", random_state=0):
        self.epochs = epochs
        self.batch_size = batch_size
        self.balance = balance
        self.random_state = random_state

    def _build(self):
        return nn.Sequential(nn.Flatten(), nn.Linear(48, 1), nn.Flatten(0))

    def _config(self):
        return TrainingConfig(epochs=self.epochs, lr=0.02)


@pytest.fixture
def pictures():
    """Bright pictures are positive: 6 of them against 18 dark ones."""
    rng = np.random.default_rng(0)
    bright = rng.integers(150, 256, (6, 4, 4, 3), dtype=np.uint8)
    dark = rng.integers(0, 100, (18, 4, 4, 3), dtype=np.uint8)
    return np.concatenate([bright, dark]), np.r_[np.ones(6), np.zeros(18)].astype(int)


def vector(model):
    return torch.cat([p.detach().flatten() for p in model.module_.parameters()])


# --- the loss -------------------------------------------------------------------------


def batch(targets, weights, seed=0):
    pixels = torch.rand(len(targets), 3, generator=torch.Generator().manual_seed(seed))
    return pixels, torch.tensor(targets), torch.tensor(weights)


@pytest.fixture
def layer():
    net = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    nn.init.constant_(net[0].weight, 0.7)
    nn.init.constant_(net[0].bias, -0.4)
    return net


def gradient(net, data):
    net.zero_grad()
    torch.autograd.backward(weighted_logistic_loss(net, data))
    return net[0].weight.grad.clone()


def test_loss_equals_its_twin(layer):
    pixels, target, weight = batch([1.0, 0.0, 1.0], [1.0, 2.0, 0.5])
    logits = pixels.numpy() @ np.full(3, 0.7) - 0.4
    chance = 1 / (1 + np.exp(-logits))
    losses = -(
        target.numpy() * np.log(chance) + (1 - target.numpy()) * np.log(1 - chance)
    )
    loss = weighted_logistic_loss(layer, (pixels, target, weight))
    assert loss.item() == pytest.approx(np.mean(weight.numpy() * losses), rel=1e-5)


def test_a_row_of_weight_zero_has_no_pull(layer):
    """Neither its pixels nor its target change the gradient."""
    pixels, target, weight = batch([1.0, 0.0, 1.0], [1.0, 1.0, 0.0])
    other = pixels.clone()
    other[2] = 99.0
    wrong = torch.tensor([1.0, 0.0, 0.0])
    plain = gradient(layer, (pixels, target, weight))
    assert torch.equal(gradient(layer, (other, wrong, weight)), plain)
    counted = gradient(layer, (other, wrong, torch.ones(3)))
    assert not torch.equal(counted, plain)


def test_weight_two_counts_like_two_rows(layer):
    pixels, target, _ = batch([1.0, 0.0], [1.0, 1.0])
    twice = pixels[[0, 0, 1]], target[[0, 0, 1]], torch.ones(3)
    once = pixels, target, torch.tensor([2.0, 1.0])
    assert torch.allclose(3 * gradient(layer, twice), 2 * gradient(layer, once))


# --- balance --------------------------------------------------------------------------


def batches_of(model, images, y):
    model.fit(images, y)
    positive = y == 1
    weight = np.ones(len(y), np.float32)
    return model._batches(images, positive, weight, CPU)


def test_balanced_batches_only_for_uneven_classes(pictures):
    X, y = pictures
    assert isinstance(batches_of(Linear(epochs=1), X, y), BalancedBatches)
    assert isinstance(batches_of(Linear(epochs=1), X[:12], y[:12]), TensorBatches)
    for balance in ("weights", None):
        model = Linear(epochs=1, balance=balance)
        assert isinstance(batches_of(model, X, y), TensorBatches)


def test_balanced_weights_give_each_class_the_same_total(pictures):
    X, y = pictures
    weight = Linear(balance="weights")._weights(y == 1, X, None)
    assert weight[y == 1].sum() == pytest.approx(weight[y == 0].sum())
    assert weight.mean() == pytest.approx(1)
    given = np.linspace(1, 2, 24)
    both = Linear(balance="weights")._weights(y == 1, X, given)
    assert np.allclose(both, weight * given)
    assert np.array_equal(Linear(balance=None)._weights(y == 1, X, None), np.ones(24))


# --- fit and answers ------------------------------------------------------------------


@pytest.mark.parametrize("balance", ["batches", "weights", None])
def test_it_learns(pictures, balance):
    X, y = pictures
    model = Linear(balance=balance).fit(X, y)
    loss = model.history_.column("loss")
    assert loss[-1] < 0.5 * loss[0]
    assert np.array_equal(model.predict(X), y)


def test_shuffled_labels_do_not_generalise(pictures):
    X, y = pictures
    wrong = y.copy()
    wrong[[0, 1, 2, 6, 7, 8]] = 1 - wrong[[0, 1, 2, 6, 7, 8]]
    right = Linear().fit(X, y).history_.last["loss"]
    assert Linear().fit(X, wrong).history_.last["loss"] > 2 * right


def test_answers_agree(pictures):
    X, y = pictures
    model = Linear(epochs=3).fit(X, y)
    logits = model.decision_function(X)
    proba = model.predict_proba(X)
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.allclose(proba[:, 1], 1 / (1 + np.exp(-logits.astype(float))))
    assert np.array_equal(model.predict(X), logits > 0)
    assert model.classes_.tolist() == [0, 1]
    assert np.array_equal(model.decision_function(X[5:6]), logits[5:6])


def test_sample_weight_reaches_the_loss(pictures):
    """Rows of weight 0 may hold anything."""
    X, y = pictures
    weight = np.r_[np.ones(23), 0]
    other = X.copy()
    other[23] = 255 - other[23]
    one = Linear(balance=None).fit(X, y, sample_weight=weight)
    two = Linear(balance=None).fit(other, y, sample_weight=weight)
    plain = Linear(balance=None).fit(X, y)
    assert torch.equal(vector(one), vector(two))
    assert not torch.equal(vector(one), vector(plain))


def test_seed(pictures):
    X, y = pictures
    one, two, other = (Linear(epochs=2, random_state=s).fit(X, y) for s in (0, 0, 1))
    assert torch.equal(vector(one), vector(two))
    assert not torch.equal(vector(one), vector(other))


def test_facts(pictures):
    model = Linear(epochs=2).fit(*pictures)
    assert model.facts() == {
        "epochs": 2,
        "stopped": "all epochs done",
        "loss": model.history_.last["loss"],
    }


def test_bad_inputs(pictures):
    X, y = pictures
    with pytest.raises(NotFittedError):
        Linear().predict(X)
    with pytest.raises(InvalidInputError, match="images are N×H×W"):
        Linear().fit(X.reshape(24, -1), y)
    with pytest.raises(InvalidInputError, match="PU labels"):
        Linear().fit(X, y + 1)
    with pytest.raises(InvalidInputError, match="X has 24 rows, y has 23"):
        Linear().fit(X, y[1:])
    with pytest.raises(InvalidInputError, match="fitted on 4×4×3"):
        Linear(epochs=1).fit(X, y).predict(X[:, :3])
