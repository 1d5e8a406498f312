"""PULNS: a selector that learns from reward alone, hold-outs, the last classifier."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from denspu import make
from denspu.methods.pulns import PULNS, EpisodeLoss, Pair
from denspu.networks.backbones import MLP, OneLogit

SMALL = {
    "prior": 0.57,
    "network": OneLogit(MLP(3, width=16, depth=1)),
    "epochs": 8,
    "batch_size": 32,
    "lr": 1e-2,
    "device": "cpu",
}
LINEAR = {**SMALL, "network": "linear", "epochs": 3, "final_epochs": 2}


@pytest.fixture
def some(make_blobs):
    return make_blobs(seed=10, far=2.5)


def fitted(data, **settings):
    keywords = {
        k: settings.pop(k) for k in ("known_negative", "groups") if k in settings
    }
    return make("pulns", random_state=10, **settings).fit(data.X, data.y, **keywords)


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DegenerateFitWarning")
def test_the_selector_learns_from_reward_alone(some):
    """No warm-up: nothing but REINFORCE tells negatives from hidden positives."""
    model = fitted(some, **{**SMALL, "warmup": 0.0, "epochs": 25, "final_epochs": 1})
    hidden = some.y == 0
    with torch.no_grad():
        rows = model._packed(some.X[hidden])
        chosen = model.selector_.eval()(rows).numpy()
    assert roc_auc_score(1 - some.truth[hidden], chosen) > 0.85


def test_as_many_rows_are_chosen_as_the_prior_says(some):
    """140 rows, 40 labelled: at π = 0.57 U holds 39.8 positives and 60.2 negatives."""
    model = fitted(some, **LINEAR)
    assert len(model.chosen_) == 60
    assert (some.y[model.chosen_] == 0).all()


def test_known_negatives_are_chosen(some):
    known = (some.truth == 1) & (some.y == 0)  # as unlikely as can be
    model = fitted(some, **LINEAR, known_negative=known)
    assert set(np.flatnonzero(known)) <= set(model.chosen_)


@pytest.mark.parametrize(
    "change",
    [
        {"draws": 2},
        {"trial_step": 50.0},
        {"warmup": 0.7},
        {"held_out": 0.5},
        {"epochs": 4},
    ],
)
def test_settings_reach_the_selector(some, change):
    plain, changed = fitted(some, **LINEAR), fitted(some, **{**LINEAR, **change})
    first, second = (model.selector_.head.weight for model in (plain, changed))
    assert not torch.allclose(first, second)


# --- the hold-out --------------------------------------------------------------------


def judges_and_learners(monkeypatch, data, **settings):
    """Return the rows that judged and those the selector learned from."""
    seen = {}
    plain = EpisodeLoss.__call__

    def spy(self, module, batch):
        seen["judges"] = torch.cat(self.judges)
        for rows in batch[:2]:
            seen.setdefault("learners", []).append(rows)
        return plain(self, module, batch)

    monkeypatch.setattr(EpisodeLoss, "__call__", spy)
    model = fitted(data, **LINEAR, **settings)
    rows = model._packed(data.X)
    return model, [
        (rows[:, None] == part[None]).all(2).any(1).numpy()
        for part in (seen["judges"], torch.cat(seen["learners"]))
    ]


def test_judges_never_teach(some, monkeypatch):
    model, (judges, learners) = judges_and_learners(monkeypatch, some)
    assert judges.sum() == model.held_out_ == 28
    assert judges[some.y == 1].sum() == 8
    assert not (judges & learners).any()


def test_no_group_is_split(some, monkeypatch):
    groups = np.arange(len(some.y)) // 2
    _, (judges, learners) = judges_and_learners(monkeypatch, some, groups=groups)
    assert judges.any()
    assert not set(groups[judges]) & set(groups[learners])


# --- an episode ----------------------------------------------------------------------


def episode(trial_step=0.1):
    torch.manual_seed(0)
    task = SimpleNamespace(
        rows=torch.cat([torch.randn(4, 2) + 1, torch.randn(8, 2)]),
        positive=np.arange(4),
        pool=np.arange(4, 12),
        known_negative=np.arange(0),
        index=torch.from_numpy,
        as_float=lambda x: x,
        prior=0.5,
        device=torch.device("cpu"),
    )
    layers = [torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Flatten(0))] * 2
    pair = Pair(layers[0], torch.nn.Sequential(*layers[1]))
    batch = torch.randn(2, 2), torch.randn(5, 2), torch.arange(2), torch.arange(5) + 2
    method = PULNS(draws=3, trial_step=trial_step)
    return EpisodeLoss(method, task, np.ones(12, dtype=bool)), pair, batch


def test_a_trial_step_leaves_the_classifier_where_it_was():
    loss, pair, batch = episode()
    before = [weight.clone() for weight in pair.parameters()]
    loss(pair, batch)
    after = list(pair.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert all(weight.grad is None for weight in after)


def test_the_reward_is_that_of_the_stepped_classifier():
    loss, pair, _ = episode(trial_step=0.3)
    weights = dict(pair.classifier.named_parameters())
    risk = pair.classifier(torch.ones(1, 2)).sum()
    x = torch.randn(6, 2)
    found = loss._reward(pair.classifier, weights, risk, (x, 2))
    moved_weight = pair.classifier[0].weight.detach() - 0.3 * torch.ones(1, 2)
    moved_bias = pair.classifier[0].bias.detach() - 0.3
    p = torch.sigmoid(x @ moved_weight.T + moved_bias).flatten()
    assert torch.allclose(found, p[:2].mean() + (1 - p[2:]).mean())


def test_all_of_u_is_chosen_in_the_warm_up():
    loss, pair, batch = episode()
    loss.exploring = False
    terms = loss(pair, batch)
    assert terms["chosen"] == 1
    assert "reward" not in terms


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_a_network_with_numbers_that_do_not_learn(tiny_images):
    """The convolutions for colour images hold some that stay zero."""
    X, y = tiny_images
    model = make("pulns", prior=0.6, epochs=2, final_epochs=1, warmup=0.0, device="cpu")
    assert np.isfinite(model.fit(X, y).decision_function(X)).all()
