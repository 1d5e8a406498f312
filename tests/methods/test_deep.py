"""What deep PU methods share: rows, the pool, the prior, networks, time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from tests.small import takes
from torch import nn

from denspu._machine import MOMENT
from denspu._registry import registry
from denspu.encoders import IdentityEncoder
from denspu.exceptions import InvalidParameterError, UnusedInputWarning
from denspu.methods import _deep
from denspu.methods._deep import LARGE, SMALL
from denspu.methods.nnpu import NNPU

pytestmark = pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")


class Watched(NNPU):
    """nnPU that keeps its task."""

    def _learn(self, task):
        self.task_ = task
        super()._learn(task)


def watched(blobs, **settings):
    usual = {"prior": 0.6, "network": "linear", "epochs": 2, "device": "cpu"}
    return Watched(**{**usual, "random_state": 10, **settings}).fit(blobs.X, blobs.y)


# --- who stands for the population ----------------------------------------------------


def test_one_sample_puts_p_back_into_the_pool(blobs):
    task = watched(blobs).task_
    assert task.positive.tolist() == list(range(40))
    assert task.unlabeled.tolist() == list(range(40, 140))
    assert task.pool.tolist() == list(range(140))


METHODS = registry().of_kind("method").values()
IGNORING = [entry for entry in METHODS if not entry.uses_known_negatives]


@pytest.mark.parametrize("entry", IGNORING[:2], ids=lambda entry: entry.key)
def test_a_method_without_a_use_for_known_negatives_says_so(entry, blobs):
    known = np.zeros(140, dtype=bool)
    known[[90, 95]] = True

    def fitted(**given):
        short = {"prior": 0.6, "gan_epochs": 2, "n_made": 50}
        short = {name: v for name, v in short.items() if takes(entry, name)}
        model = entry.build(
            **short, network="linear", epochs=1, device="cpu", random_state=0
        )
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.fit(blobs.X, blobs.y, **given)
        return model.decision_function(blobs.X), [
            str(w.message) for w in said if w.category is UnusedInputWarning
        ]

    scores, said = fitted()
    assert not said
    same, said = fitted(known_negative=known)
    assert len(said) == 1
    assert "the 2 rows of known_negative count as unlabelled" in said[0]
    np.testing.assert_array_equal(same, scores)


# --- settings by the size of the sample -----------------------------------------------


def test_small_samples_are_one_batch(blobs):
    model = watched(blobs, epochs="auto", lr="auto")
    assert len(model.task_.batches()) == 1
    assert model.epochs_ == {"nnpu": SMALL["epochs"]}
    assert model.task_.plan.lr == SMALL["lr"]


def test_larger_ones_are_trained_as_the_papers_are_compared(blobs, monkeypatch):
    monkeypatch.setattr(_deep, "WHOLE", 100)
    task = watched(blobs, epochs="auto", lr="auto", max_seconds=1e-6).task_
    assert (task.plan.epochs, task.batch_size) == (LARGE["epochs"], 256)
    assert task.plan.lr == LARGE["lr"]


def test_given_settings_are_kept(blobs):
    task = watched(blobs, epochs=3, batch_size=20, lr=0.5, weight_decay=0.25).task_
    assert (task.plan.epochs, task.plan.lr, task.batch_size) == (3, 0.5, 20)
    assert task.plan.weight_decay == 0.25
    assert len(task.batches()) == 7


def test_max_seconds_cuts_epochs(blobs):
    model = watched(blobs, epochs=500, max_seconds=1e-6)
    assert model.epochs_ == {"nnpu": 1}
    assert len(model.history_) == 1


class Clocked(IdentityEncoder):
    """Remembers how long it may take."""

    def __init__(self, *, normalize=False, max_seconds=None):
        super().__init__(normalize=normalize)
        self.max_seconds = max_seconds


def test_encoder_and_prior_get_their_parts_of_the_time(blobs, monkeypatch):
    asked = []
    monkeypatch.setattr(
        _deep, "resolve_prior", lambda *a, max_seconds, **k: asked.append(max_seconds)
        or (0.6, 0.4)
    )  # fmt: skip
    model = watched(blobs, encoder=Clocked(), max_seconds=100.0)
    assert 49 < model.encoder_.max_seconds <= 50
    assert 29 < asked[-1] <= 30
    model = watched(blobs, encoder=Clocked(), max_seconds=1e-9)  # past before it began
    assert model.encoder_.max_seconds == asked[-1] == MOMENT
    model = watched(blobs, encoder=Clocked())
    assert model.encoder_.max_seconds is asked[-1] is None


# --- networks -------------------------------------------------------------------------


def test_convolutions_are_refused_for_tables(blobs):
    with pytest.raises(
        InvalidParameterError, match=r"'cnn' takes images.*a table of 3"
    ):
        watched(blobs, network="cnn")
    with pytest.raises(InvalidParameterError, match=r"an embedding of 3 columns"):
        watched(blobs, network="cnn", encoder="identity")


def test_an_image_too_small_is_refused(tiny_images):
    X, y = tiny_images
    with pytest.raises(InvalidParameterError, match=r"at least 32 pixels.*not 8×8"):
        NNPU(prior=0.6, network="vgg16", device="cpu").fit(X, y)


def test_a_network_of_your_own_is_copied_and_starts_afresh(blobs):
    mine = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    before = mine[0].weight.detach().clone()
    one, two = (watched(blobs, network=mine, lr=1e-9) for _ in range(2))
    assert torch.equal(mine[0].weight, before)
    assert one.module_ is not mine
    first, second = (model.module_.module[0].weight for model in (one, two))
    assert not torch.allclose(first, before, atol=1e-3)
    assert torch.equal(first, second)


def test_a_network_that_answers_in_a_column(blobs):
    flat, column = (
        watched(blobs, network=net).decision_function(blobs.X)
        for net in (nn.Sequential(nn.Linear(3, 1), nn.Flatten(0)), nn.Linear(3, 1))
    )
    assert flat.shape == column.shape == (len(blobs.X),)
    with pytest.raises(InvalidParameterError, match="one logit a row"):
        watched(blobs, network=nn.Linear(3, 2))


# --- rows -----------------------------------------------------------------------------


def test_an_encoder_puts_its_embedding_in_their_place(blobs):
    model = watched(blobs, encoder="identity")
    rows = model.task_.rows.numpy()
    assert rows.mean(axis=0) == pytest.approx(0, abs=1e-5)
    assert rows.std(axis=0) == pytest.approx(1, abs=1e-4)
    far = model.decision_function(blobs.X + 1)
    assert not np.allclose(far, model.decision_function(blobs.X))
