"""GenPU: who moves in which step, what is made, and that it learns."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from denspu import make
from denspu._machine import Deadline
from denspu.methods.gen_pu import EndInTime, Game, GenPU, Scale
from denspu.networks.backbones import MLP, OneLogit

SMALL = {
    "prior": 0.57,
    "network": OneLogit(MLP(3, width=16, depth=1)),
    "gan_epochs": 60,
    "epochs": 8,
    "batch_size": 32,
    "n_noise": 4,
    "width": 16,
    "n_made": 200,
    "lr": 1e-2,
    "gan_lr": 5e-3,
    "device": "cpu",
}
TINY = {**SMALL, "gan_epochs": 2}


@pytest.fixture
def some(make_blobs):
    return make_blobs(seed=10, far=4.0)


def fitted(data, **settings):
    return make("gen_pu", random_state=10, **settings).fit(data.X, data.y)


quiet = pytest.mark.filterwarnings("ignore::denspu.exceptions.DegenerateFitWarning")


def test_made_rows_resemble_their_class(some):
    model = fitted(some, **SMALL)
    torch.manual_seed(0)
    made = [
        model.generators_.make(generator, 200).detach().mean().item()
        for generator in (model.generators_.positive, model.generators_.negative)
    ]
    assert made[1] > made[0] + 0.8  # negatives lie 4 away: some 1.6 after scaling


@quiet
@pytest.mark.parametrize(
    "change",
    [
        {"lambda_p": 20.0},
        {"lambda_u": 20.0},
        {"lambda_n": 20.0},
        {"gan_epochs": 3},
        {"gan_lr": 1e-2},
        {"n_noise": 2},
        {"width": 8},
        {"smear": 1.0},
        {"n_made": 100},
        {"epochs": 1},
    ],
)
def test_settings_reach_the_training(some, change):
    base = {**TINY, "gan_epochs": 4}
    plain, changed = fitted(some, **base), fitted(some, **{**base, **change})
    assert not np.allclose(
        plain.decision_function(some.X), changed.decision_function(some.X)
    )


# --- the game ------------------------------------------------------------------------


def game_and_batch(prior=0.4, **weights):
    torch.manual_seed(0)
    task = SimpleNamespace(prior=prior, as_float=lambda x: x)
    batch = (torch.randn(4, 3), torch.randn(6, 3))
    method = GenPU(n_noise=2, width=8, smear=0.0, **weights)
    return Game(method, Scale(torch.zeros(3), 1.0, (3,)), task), batch


def test_discriminators_step_alone():
    game, batch = game_and_batch()
    game.tell_apart(batch)["loss"].backward()
    assert all(weight.grad is None for weight in game.generators.parameters())
    assert all(weight.grad is not None for weight in game.judges.parameters())


@pytest.mark.parametrize(
    ("weights", "moved"),
    [((1.0, 0.0, 0.0), "positive"), ((0.0, 0.0, 1.0), "negative")],
)
def test_each_weight_moves_its_generator(weights, moved):
    names = ("lambda_p", "lambda_u", "lambda_n")
    game, batch = game_and_batch(**dict(zip(names, weights, strict=True)))
    game.fool(batch)["loss"].backward()
    for name in ("positive", "negative"):
        last = getattr(game.generators, name)[-1].weight.grad
        assert bool(last.abs().sum() > 0) == (name == moved)


def test_the_mixture_of_d_u_has_the_prior():
    game, batch = game_and_batch(prior=0.25)
    for number, name in enumerate(("p", "u", "n")):
        for weight in game.judges[name].parameters():
            weight.data.zero_()
        game.judges[name][4].bias.data.fill_(number - 1.0)
    terms = game.tell_apart(batch)
    for name, bias in (("p", -1.0), ("u", 0.0), ("n", 1.0)):
        expected = np.log1p(np.exp(-bias)) + np.log1p(np.exp(bias))
        assert terms[f"d_{name}"].item() == pytest.approx(expected, rel=1e-5)
    total = terms["d_p"] + terms["d_u"] + terms["d_n"]
    assert torch.allclose(terms["loss"], total)


def test_scaling_goes_both_ways():
    class Rows:
        rows = torch.rand(50, 1, 4, 4) * 3 + 1
        device = torch.device("cpu")

        @staticmethod
        def as_float(rows):
            return rows / 5

    scale = Scale.of(Rows)
    x = Rows.as_float(Rows.rows)
    z = scale.flat(x)
    assert z.shape == (50, 16) == (50, scale.size)
    assert z.mean(0).abs().max() < 1e-5
    assert z.var(0, unbiased=False).mean().item() == pytest.approx(1, abs=1e-4)
    assert torch.allclose(scale.back(z), x, atol=1e-5)
    assert scale.back(100 * z).max() == 1  # pixels stay in range


def test_the_game_leaves_time_for_the_classifier():
    class State:
        stop = None

    state = State()
    EndInTime(Deadline(None)).on_epoch_end(state)
    assert state.stop is None
    hook = EndInTime(Deadline(100.0))
    hook.on_epoch_end(state)
    assert state.stop is None
    hook.deadline = Deadline(40.0)
    hook.on_epoch_end(state)
    assert state.stop == "time"
