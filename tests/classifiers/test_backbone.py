"""The papers' networks as ordinary classifiers, and a bound on the steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from denspu import classifiers, make
from denspu.classifiers import BackboneClassifier, VGG16Classifier
from denspu.exceptions import InvalidParameterError
from denspu.methods.elkan_noto import ElkanNoto
from denspu.methods.rank_pruning import RankPruning
from denspu.networks.backbones import build_backbone


def pictures(shape, seed=0, n=40):
    """Bright pictures are positive."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.ones(n // 2), np.zeros(n // 2)].astype(int)
    level = np.where(y == 1, 150, 60).reshape(-1, *([1] * len(shape)))
    noise = rng.integers(-50, 50, (n, *shape))
    return np.clip(level + noise, 0, 255).astype(np.uint8), y


def small(**settings):
    return BackboneClassifier(
        **{"epochs": 15, "batch_size": 10, "random_state": 0, "device": "cpu"}
        | settings
    )


def weights(model):
    return sum(p.numel() for p in model.module_.parameters())


def test_defaults_are_the_protocol():
    config = BackboneClassifier()._config()
    assert (config.optimizer, config.lr, config.weight_decay) == ("adam", 5e-4, 5e-3)
    assert (config.epochs, config.schedule) == (120, "cosine")
    assert (config.plateau, config.ema_decay) == (None, None)
    assert BackboneClassifier().batch_size == 256
    assert BackboneClassifier().balance is None


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 3), (8, 8, 4)], ids=str)
def test_it_learns_pictures_of_any_size_and_colour(shape):
    model = small(network="mlp").fit(*pictures(shape))
    X, y = pictures(shape, seed=1)
    assert roc_auc_score(y, model.decision_function(X)) > 0.95
    assert model.facts()["epochs"] == 15


def test_the_network_is_the_papers_for_the_kind_of_picture():
    grey = small(epochs=1).fit(*pictures((8, 8)))
    assert weights(grey) == sum(
        p.numel() for p in build_backbone("mlp", (1, 8, 8)).parameters()
    )
    colour = small(epochs=1).fit(*pictures((8, 8, 3)))
    assert weights(colour) == sum(
        p.numel() for p in build_backbone("cnn", (3, 8, 8)).parameters()
    )


def test_same_seed_same_answers():
    X, y = pictures((8, 8))
    first, second, other = (
        small(epochs=2, random_state=seed).fit(X, y).decision_function(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, other)


@pytest.mark.parametrize(
    "settings",
    [
        {"network": "vgg16"},
        {"batch_size": 1},
        {"max_steps": 0},
        {"balance": "both"},
        {"validation": 0.8},
        {"patience": 0},
    ],
    ids=str,
)
def test_bad_parameters(settings):
    with pytest.raises(InvalidParameterError, match=next(iter(settings))):
        small(**settings).fit(*pictures((8, 8)))


# --- a bound on the steps -------------------------------------------------------------


@pytest.mark.parametrize(
    ("max_steps", "epochs"),
    [(None, 15), (1000, 15), (60, 15), (59, 14), (8, 2), (1, 1)],
)
def test_whole_epochs_are_left_out(max_steps, epochs):
    """40 rows in batches of 10 are 4 steps an epoch."""
    model = small(network="linear", max_steps=max_steps).fit(*pictures((4, 4)))
    assert len(model.history_) == epochs


def test_the_papers_base_configuration_is_12600_steps():
    steps = -(-2 * 1000 // 32)
    assert VGG16Classifier(max_steps=12_600)._within_steps(steps).epochs == 200
    assert VGG16Classifier(max_steps=12_599)._within_steps(steps).epochs == 199
    assert VGG16Classifier(max_steps=12_600)._within_steps(625).epochs == 20
    assert VGG16Classifier()._within_steps(625).epochs == 200


# --- a hold-out chooses the epoch -----------------------------------------------------


def noisy(n=80):
    """Pictures whose labels are wrong for a third: a network learns them by heart."""
    X, y = pictures((6, 6), n=n)
    wrong = np.random.default_rng(1).random(n) < 0.3
    return X, np.where(wrong, 1 - y, y)


def watched_rows(monkeypatch):
    """Note the pixels that training steps see."""
    seen = []
    real = classifiers.weighted_logistic_loss

    def noting(module, batch):
        if torch.is_grad_enabled():
            seen.append(batch[0])
        return real(module, batch)

    monkeypatch.setattr("denspu.classifiers.weighted_logistic_loss", noting)
    return seen


def test_held_out_rows_are_not_learned_from(monkeypatch):
    seen = watched_rows(monkeypatch)
    X, y = pictures((4, 4))
    small(network="linear", epochs=2, validation=0.25).fit(X, y)
    pixels = np.unique(torch.cat(seen).flatten(1).numpy(), axis=0)
    assert len(pixels) == 30
    levels = pixels.mean(axis=1) > 100 / 255
    assert levels.sum() == 15  # a quarter of each class


def test_groups_are_not_divided_by_the_hold_out(monkeypatch):
    seen = watched_rows(monkeypatch)
    X, y = pictures((4, 4))
    X[1::2] = X[::2]  # twins, one group each
    model = small(network="linear", epochs=1, validation=0.25)
    model.fit(X, y, groups=np.arange(40) // 2)
    pixels = torch.cat(seen).flatten(1).numpy()
    _, times = np.unique(pixels, axis=0, return_counts=True)
    assert 20 < len(pixels) < 40
    assert set(times) == {2}


def given_groups(monkeypatch, method, **given):
    """Return the groups that each classifier of a method's fit is given."""
    found = []
    real = BackboneClassifier.fit

    def noting(self, X, y, sample_weight=None, *, groups=None):
        found.append(groups)
        return real(self, X, y, sample_weight, groups=groups)

    monkeypatch.setattr(BackboneClassifier, "fit", noting)
    X, truth = pictures((4, 4), n=60)
    estimator = small(network="linear", epochs=1, validation=0.2)
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


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DegenerateFitWarning")
def test_without_groups_only_rows_that_are_there_twice_are_kept_together(monkeypatch):
    assert given_groups(monkeypatch, RankPruning) == [None] * 3
    *folds, last = given_groups(monkeypatch, ElkanNoto)
    assert folds == [None] * 2
    rows, times = np.unique(last, return_counts=True)
    assert rows.tolist() == list(range(60))
    assert sorted(times) == [1] * 15 + [2] * 45  # P once, U as both classes


def test_the_epoch_with_the_least_held_out_loss_is_kept(monkeypatch):
    kept = {}
    real = classifiers.held_out_loss

    def noting(module, rows):
        kept["rows"] = rows
        return real(module, rows)

    monkeypatch.setattr("denspu.classifiers.held_out_loss", noting)
    X, y = noisy()
    settings = {"network": "mlp", "epochs": 30, "lr": 3e-3, "validation": 0.25}
    model = small(**settings, patience=None).fit(X, y)
    losses = model.history_.column("held_out")
    assert len(losses) == 30
    assert np.argmin(losses) < 25
    pixels, target, _ = (tensor.numpy() for tensor in kept["rows"])
    with torch.inference_mode():
        logits = model.module_(torch.from_numpy(pixels)).double().numpy()
    loss = np.mean(np.logaddexp(0, -(2 * target - 1) * logits))
    assert loss == pytest.approx(min(losses), abs=1e-5)
    patient = small(**settings, patience=4).fit(X, y)
    assert len(patient.history_) == np.argmin(losses) + 1 + 4


def test_without_a_hold_out_the_last_epoch_stands():
    model = small(network="linear", epochs=3).fit(*pictures((4, 4)))
    assert "held_out" not in model.history_.last


def test_too_few_rows_of_a_class_are_all_learned_from():
    X, _ = pictures((4, 4))
    y = np.ones(40, dtype=int)
    y[0] = 0
    model = small(network="linear", epochs=2, validation=0.2).fit(X, y)
    assert "held_out" not in model.history_.last


# --- inside a method ------------------------------------------------------------------


def test_a_classifier_named_by_its_key_takes_settings():
    model = make(
        "rank_pruning",
        estimator="backbone",
        estimator__network="linear",
        estimator__epochs=3,
    )
    assert isinstance(model.estimator, BackboneClassifier)
    assert (model.estimator.network, model.estimator.epochs) == ("linear", 3)
    later = RankPruning(estimator="backbone").set_params(estimator__epochs=4)
    assert later.estimator.epochs == 4


def test_settings_of_no_classifier_are_refused():
    with pytest.raises(InvalidParameterError, match=r"estimator='auto'\. Name"):
        RankPruning().set_params(estimator__epochs=3)


def test_rank_pruning_sees_the_pictures():
    X, y = pictures((8, 8), n=60)
    labels = np.where(np.arange(60) < 15, y, 0)
    model = make(
        "rank_pruning",
        random_state=0,
        device="cpu",
        estimator="backbone",
        estimator__network="linear",
        estimator__epochs=20,
        estimator__batch_size=20,
        estimator__lr=0.01,
    ).fit(X, labels)
    assert model.sees_ == "input"
    assert isinstance(model.estimator_, BackboneClassifier)
    assert len(model.estimator_.history_) == 20
    assert roc_auc_score(y, model.decision_function(X)) > 0.95
