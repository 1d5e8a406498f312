"""Networks as classifiers: the loss, balance and weights, steps, a hold-out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from torch import nn

from denspu import classifiers, make
from denspu._random import Randomness
from denspu.classifiers import BackboneClassifier, VGG16Classifier
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.methods.rank_pruning import RankPruning
from denspu.networks.backbones import VGG16, build_backbone


def pictures(shape=(4, 4), seed=0, n=40, n_positive=None):
    """Bright pictures are positive, half of them where nothing else is said."""
    rng = np.random.default_rng(seed)
    n_positive = n // 2 if n_positive is None else n_positive
    y = np.r_[np.ones(n_positive), np.zeros(n - n_positive)].astype(int)
    level = np.where(y == 1, 150, 60).reshape(-1, *([1] * len(shape)))
    noise = rng.integers(-50, 50, (n, *shape))
    return np.clip(level + noise, 0, 255).astype(np.uint8), y


def small(**settings):
    return BackboneClassifier(
        **{"network": "linear", "epochs": 15, "batch_size": 10, "lr": 0.01,
           "random_state": 0, "device": "cpu"}
        | settings
    )  # fmt: skip


def vector(model):
    return torch.cat([p.detach().flatten() for p in model.module_.parameters()])


# --- the loss -------------------------------------------------------------------------


def test_the_loss_and_its_weights():
    layer = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    nn.init.constant_(layer[0].weight, 0.7)
    nn.init.constant_(layer[0].bias, -0.4)

    def gradient(*batch):
        loss = classifiers.weighted_logistic_loss(layer, batch)
        return torch.autograd.grad(loss, layer[0].weight)[0]

    pixels = torch.rand(3, 3, generator=torch.Generator())
    target, weight = torch.tensor([1.0, 0.0, 1.0]), torch.tensor([1.0, 2.0, 0.0])
    chance = 1 / (1 + np.exp(0.4 - pixels.numpy() @ np.full(3, 0.7)))
    wanted = -(np.log(chance[0]) + 2 * np.log(1 - chance[1])) / 3
    loss = classifiers.weighted_logistic_loss(layer, (pixels, target, weight))
    assert loss.item() == pytest.approx(wanted, rel=1e-5)
    other = pixels.clone()
    other[2] = 99.0  # a row of weight 0 has no pull
    plain = gradient(pixels, target, weight)
    assert torch.equal(gradient(other, target, weight), plain)
    twice = gradient(pixels[[0, 1, 1]], target[[0, 1, 1]], torch.ones(3))
    assert torch.allclose(twice, plain)  # weight two counts like two rows


def test_sample_weight_reaches_the_loss():
    """Rows of weight 0 may hold anything."""
    X, y = pictures()
    other = X.copy()
    other[-1] = 255 - other[-1]
    weight = np.r_[np.ones(39), 0]
    one, two = (small().fit(images, y, sample_weight=weight) for images in (X, other))
    assert torch.equal(vector(one), vector(two))
    assert not torch.equal(vector(one), vector(small().fit(X, y)))


def test_balanced_weights_give_each_class_the_same_total():
    X, y = pictures(n_positive=10)
    given = np.linspace(1, 2, 40)
    plain = small()._weights(y == 1, X, given)
    weight = small(balance="weights")._weights(y == 1, X, None)
    assert weight[y == 1].sum() == pytest.approx(weight[y == 0].sum())
    assert weight.mean() == pytest.approx(1)
    assert np.allclose(small(balance="weights")._weights(y == 1, X, given),
                       weight * plain)  # fmt: skip


@pytest.mark.parametrize(
    ("balance", "steps", "rows"), [("batches", 2, 20), ("weights", 4, 40),
                                   (None, 4, 40)]
)  # fmt: skip
def test_balanced_batches_take_as_many_of_each_class(watched, balance, steps, rows):
    X, y = pictures(n_positive=10)
    model = small(balance=balance, epochs=30, lr=0.1).fit(X, y)
    first = watched[:steps]
    assert sum(len(target) for _, target, _ in first) == rows
    if balance == "batches":
        assert {target.mean().item() for _, target, _ in first} == {0.5}
    loss = model.history_.column("loss")
    assert loss[-1] < 0.5 * loss[0]
    assert roc_auc_score(y, model.decision_function(X)) > 0.95


# --- fit and answers ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "network"), [((8, 8), "mlp"), ((8, 8, 3), "cnn"), ((8, 8, 4), "cnn")]
)
def test_it_learns_with_the_papers_network_for_the_picture(shape, network):
    X, y = pictures(shape)
    model = small(network="auto", epochs=4, lr=5e-4).fit(X, y)
    channels = {2: 1, 3: 3}[len(shape)]
    papers = build_backbone(network, (channels, *shape[:2]))
    sizes = [[p.shape for p in net.parameters()] for net in (model.module_, papers)]
    assert sizes[0] == sizes[1]
    X, y = pictures(shape, seed=1)
    assert roc_auc_score(y, model.decision_function(X)) > 0.9
    assert model.facts() == {
        "epochs": 4,
        "stopped": "all epochs done",
        "loss": model.history_.last["loss"],
    }


def test_answers_agree_and_the_seed_decides():
    X, y = pictures()
    model, same, other = (small(random_state=s).fit(X, y) for s in (0, 0, 1))
    logits, proba = model.decision_function(X), model.predict_proba(X)
    assert np.allclose(proba[:, 1], 1 / (1 + np.exp(-logits.astype(float))))
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.array_equal(model.predict(X), logits > 0)
    assert model.classes_.tolist() == [0, 1]
    assert np.array_equal(model.decision_function(X[5:6]), logits[5:6])
    assert np.array_equal(same.decision_function(X), logits)
    assert not np.allclose(other.decision_function(X), logits)


def test_bad_inputs():
    X, y = pictures()
    with pytest.raises(NotFittedError):
        small().predict(X)
    with pytest.raises(InvalidInputError, match="images are N×H×W"):
        small().fit(X.reshape(40, -1), y)
    with pytest.raises(InvalidInputError, match="PU labels"):
        small().fit(X, y + 1)
    with pytest.raises(InvalidInputError, match="fitted on 4×4"):
        small(epochs=1).fit(X, y).predict(X[:, :3])


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (BackboneClassifier, {"network": "vgg16"}),
        (VGG16Classifier, {"image_size": 16}),
    ],
    ids=str,
)
def test_bad_parameters(cls, settings):
    with pytest.raises(InvalidParameterError, match=next(iter(settings))):
        cls(**settings).fit(*pictures())


@pytest.mark.parametrize(("max_steps", "epochs"), [(59, 14), (8, 2), (1, 1)])
def test_whole_epochs_are_left_out(max_steps, epochs):
    """40 rows in batches of 10 are 4 steps an epoch."""
    assert len(small(max_steps=max_steps).fit(*pictures()).history_) == epochs


# --- a hold-out chooses the epoch -----------------------------------------------------


@pytest.fixture
def watched(monkeypatch):
    """Note the batches that training steps see."""
    seen, real = [], classifiers.weighted_logistic_loss

    def noting(module, batch):
        if torch.is_grad_enabled():
            seen.append(batch)
        return real(module, batch)

    monkeypatch.setattr("denspu.classifiers.weighted_logistic_loss", noting)
    return seen


def test_held_out_rows_are_not_learned_from(watched):
    small(epochs=2, validation=0.25).fit(*pictures())
    pixels = torch.cat([batch[0] for batch in watched]).flatten(1).numpy()
    rows = np.unique(pixels, axis=0)
    assert len(rows) == 30
    assert (rows.mean(axis=1) > 100 / 255).sum() == 15  # a quarter of each class


def test_groups_are_not_divided_by_the_hold_out(watched):
    X, y = pictures()
    X[1::2] = X[::2]  # twins, one group each
    small(epochs=1, validation=0.25).fit(X, y, groups=np.arange(40) // 2)
    pixels = torch.cat([batch[0] for batch in watched]).flatten(1).numpy()
    _, times = np.unique(pixels, axis=0, return_counts=True)
    assert 20 < len(pixels) < 40
    assert set(times) == {2}


def test_the_epoch_with_the_least_held_out_loss_is_kept(monkeypatch):
    """Labels are wrong for a third: a network learns them by heart."""
    kept, real = {}, classifiers.held_out_loss

    def noting(module, rows):
        kept["rows"] = rows
        return real(module, rows)

    monkeypatch.setattr("denspu.classifiers.held_out_loss", noting)
    X, y = pictures((6, 6), n=80)
    y = np.where(np.random.default_rng(1).random(80) < 0.3, 1 - y, y)
    settings = {"network": "mlp", "epochs": 12, "lr": 3e-3, "validation": 0.25}
    model = small(**settings, patience=None).fit(X, y)
    losses = model.history_.column("held_out")
    assert len(losses) == 12
    assert np.argmin(losses) < 7
    pixels, target, _ = (tensor.numpy() for tensor in kept["rows"])
    with torch.inference_mode():
        logits = model.module_(torch.from_numpy(pixels)).double().numpy()
    loss = np.mean(np.logaddexp(0, -(2 * target - 1) * logits))
    assert loss == pytest.approx(min(losses), abs=1e-5)
    patient = small(**settings, patience=2).fit(X, y)
    assert len(patient.history_) == np.argmin(losses) + 1 + 2


# --- inside a method ------------------------------------------------------------------


def given_groups(monkeypatch, method, **given):
    """Return the groups that each classifier of a method's fit is given."""
    found, real = [], BackboneClassifier.fit

    def noting(self, X, y, sample_weight=None, *, groups=None):
        found.append(groups)
        return real(self, X, y, sample_weight, groups=groups)

    monkeypatch.setattr(BackboneClassifier, "fit", noting)
    X, truth = pictures(n=60)
    estimator = small(epochs=1, validation=0.2)
    model = method(estimator=estimator, folds=2, device="cpu", random_state=0)
    model.fit(X, truth * (np.arange(60) % 2), **given)
    return found


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DegenerateFitWarning")
def test_methods_hand_groups_to_the_hold_out_of_their_classifier(monkeypatch):
    groups = np.arange(60) // 2
    one, other, last = given_groups(monkeypatch, RankPruning, groups=groups)
    assert sorted(np.r_[one, other]) == sorted(groups)
    assert not set(one) & set(other)
    assert set(last) <= set(groups)


def test_rank_pruning_sees_the_pictures():
    X, y = pictures((8, 8), n=60)
    model = make(
        "rank_pruning",
        random_state=0,
        device="cpu",
        estimator="backbone",
        estimator__network="linear",
        estimator__epochs=3,
        estimator__batch_size=20,
        estimator__lr=0.01,
    )
    assert (model.estimator.network, model.estimator.epochs) == ("linear", 3)
    model.set_params(estimator__epochs=20).fit(X, np.where(np.arange(60) < 15, y, 0))
    assert model.sees_ == "input"
    assert isinstance(model.estimator_, BackboneClassifier)
    assert len(model.estimator_.history_) == 20
    assert roc_auc_score(y, model.decision_function(X)) > 0.95
    with pytest.raises(InvalidParameterError, match=r"estimator='auto'\. Name"):
        RankPruning().set_params(estimator__epochs=3)


# --- the papers' settings -------------------------------------------------------------


def test_a_short_training_moves_every_layer_of_vgg16():
    X, y = pictures((32, 32, 3), n=4)
    model = VGG16Classifier(epochs=1, batch_size=4, random_state=0, device="cpu")
    model.fit(X, y)
    with Randomness(0).torch_scope("weights", torch.device("cpu")):
        start = VGG16()
    pairs = zip(start.parameters(), model.module_.parameters(), strict=True)
    for before, after in pairs:
        assert not torch.equal(before, after)
        assert torch.allclose(before, after, atol=1e-2)
