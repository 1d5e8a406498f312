"""Contrastive embeddings: on the sphere, repeatable, and better than untrained."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from torch import nn

from denspu import DensPU, load, save
from denspu._random import Randomness
from denspu.augment import PRESETS, ImagePreset
from denspu.encoders import ContrastiveEncoder, contrastive
from denspu.encoders.contrastive import COMPILE_PIXELS, ContrastiveLoss
from denspu.exceptions import (
    DegenerateFitWarning,
    DensPUError,
    InvalidParameterError,
    LabelError,
)
from denspu.networks.backbones import ResNet
from denspu.refinement import NetworkRefiner
from denspu.training import Checkpoint, History


@pytest.fixture(autouse=True)
def tiny_networks(monkeypatch):
    """Keep the networks small: two stages of 8 and 16 channels, layers of 16."""
    network = partial(ResNet, widths=(8, 16), depth=1)
    monkeypatch.setitem(contrastive.IMAGE_NETWORKS, "small", network)
    monkeypatch.setattr(contrastive, "MLP", partial(contrastive.MLP, width=16))


def small(**settings):
    settings = {"epochs": 2, "batch_size": 10, "lr": 0.05, "device": "cpu", **settings}
    return ContrastiveEncoder(**{"random_state": 0, **settings})


def textures(seed=0, n=25, size=8):
    """Return images of four kinds of waves, in any phase, light and contrast."""
    rng = np.random.default_rng(seed)
    y, x = 1.6 * np.mgrid[:size, :size]
    images = []
    for i in range(4 * n):
        phase = rng.uniform(0, 2 * np.pi)
        wave = (
            np.sin(x + phase),
            np.sin(y + phase),
            np.sin(0.7 * (x + y) + phase),
            np.sin(x + phase) * np.sin(y + phase),
        )[i // n]
        noise = rng.normal(0, 0.05, wave.shape)
        images.append(rng.uniform(0.25, 0.75) + rng.uniform(0.1, 0.3) * wave + noise)
    pixels = (255 * np.clip(images, 0, 1)).astype(np.uint8)
    return pixels[..., None], np.repeat(np.arange(4), n)


def table(n=60, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[: n // 2] += 3
    return X


def neighbour_agreement(Z, kind):
    similarity = Z @ Z.T
    np.fill_diagonal(similarity, -np.inf)
    return np.mean(kind[similarity.argmax(axis=1)] == kind)


# --- what comes out -------------------------------------------------------------------


def with_gaps():
    X = table()
    X[::5, 0] = np.nan
    return X


@pytest.mark.parametrize("kind", ["image", "table"])
def test_rows_lie_on_the_sphere_and_depend_on_row_and_seed_alone(tiny_images, kind):
    X, y = tiny_images if kind == "image" else (with_gaps(), None)
    state = torch.get_rng_state()
    encoder = small(max_seconds=100.0).fit(X, y)
    Z = encoder.transform(X)
    assert torch.equal(torch.get_rng_state(), state)
    assert (Z.shape, Z.dtype) == ((len(X), 16), np.float32)
    assert np.allclose(np.linalg.norm(Z, axis=1), 1, atol=1e-5)
    assert Z.std(axis=0).max() > 0.01
    assert np.array_equal(encoder.transform(X[7:8]), Z[7:8])
    assert np.array_equal(encoder.transform(X[::-1]), Z[::-1])
    assert np.array_equal(small().fit(X, y).transform(X), Z)
    assert not np.array_equal(small(random_state=1).fit(X, y).transform(X), Z)


@pytest.mark.parametrize("shape", [(20, 9, 14, 3), (20, 9, 14), (20, 8, 8, 4)])
def test_shapes_of_images(shape):
    X = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    X[::2] //= 4
    preset = ImagePreset(crop=0.9, hue=0)
    encoder = small(epochs=1, augment=preset, image_size=12).fit(X)
    assert encoder.preset_ is preset
    assert encoder.packed(X).shape[2:] == (12, 12)
    plain = small(epochs=1).fit(X)
    assert plain.transform(X).shape == (20, 16)
    pixels = X[..., :3] / 255 if X.ndim == 4 else X[..., None] / 255
    for found, wanted in (
        (plain.module_.mean, pixels.mean(axis=(0, 1, 2))),
        (plain.module_.std, pixels.std(axis=(0, 1, 2))),
    ):
        assert np.allclose(found.flatten(), wanted, atol=1e-3)


def test_natural_embeddings_do_not_know_left_from_right(tiny_images):
    X, y = tiny_images
    encoder = small(augment="natural").fit(X, y)
    mirrored = encoder.transform(X[:, :, ::-1])
    assert np.allclose(encoder.transform(X), mirrored, atol=1e-5)
    encoder = small(augment="grey").fit(X, y)
    mirrored = encoder.transform(X[:, :, ::-1])
    assert not np.allclose(encoder.transform(X), mirrored, atol=1e-5)


# --- learning -------------------------------------------------------------------------


def test_neighbours_are_of_one_kind_after_training():
    X, kind = textures(1)
    settings = {"batch_size": 25, "random_state": 1}
    trained = small(epochs=20, lr=0.1, **settings).fit(X)
    untrained = small(epochs=1, lr=1e-9, **settings).fit(X)
    after = neighbour_agreement(trained.transform(X), kind)
    assert after > 0.9
    assert after > neighbour_agreement(untrained.transform(X), kind) + 0.1
    loss = trained.history_.column("loss")
    assert loss[-1] < loss[0] - 0.5


def test_labelled_positives_attract_each_other():
    """P holds two kinds of waves: the term brings them together, away from others."""
    X, kind = textures(n=12)
    y = (kind < 2).astype(int)

    def gap(weight):
        encoder = small(epochs=15, batch_size=24, lr=0.1, positive_weight=weight)
        Z = encoder.fit(X, y).transform(X)
        centre = Z[y == 1].mean(axis=0)
        return centre @ centre - centre @ Z[y == 0].mean(axis=0)

    assert gap(5.0) > gap(0.0) + 0.2


def test_weight_zero_uses_no_label(tiny_images):
    X, y = tiny_images
    without = small(positive_weight=0.0).fit(X).transform(X)
    assert np.array_equal(small(positive_weight=0.0).fit(X, y).transform(X), without)
    assert not np.array_equal(small().fit(X, y).transform(X), without)
    classes = np.arange(len(X)) % 3
    assert np.array_equal(
        small(positive_weight=0).fit(X, classes).transform(X), without
    )
    with pytest.raises(LabelError, match="PU labels are 1"):
        small().fit(X, classes)


def test_settings_reach_the_training(tiny_images):
    X, y = tiny_images
    plain = small().fit(X, y).transform(X)
    for change in ({"lr": 0.01}, {"weight_decay": 0.5}, {"batch_size": 5},
                   {"epochs": 3}, {"temperature": 1.0}, {"augment": "none"},
                   {"n_projection": 4}):  # fmt: skip
        Z = small(**change).fit(X, y).transform(X)
        assert not np.array_equal(Z, plain), change
    for change in ({"noise": 0.5}, {"mask": 0.0}):
        one, two = (small(**c).fit(table()).transform(table()) for c in ({}, change))
        assert not np.array_equal(one, two), change


# --- auto -----------------------------------------------------------------------------


def test_auto_on_a_cpu(tiny_images):
    X, y = tiny_images
    encoder = ContrastiveEncoder(max_seconds=1e-3, device="cpu", random_state=0)
    encoder.fit(X, y)
    found = encoder.network_name_, encoder.epochs_, encoder.batch_size_
    assert found == ("small", 1, 10)
    assert encoder.preset_ == PRESETS["natural"]
    assert clone(encoder).fit(X[..., :1], y).preset_ == PRESETS["grey"]
    assert clone(encoder).fit(table()).network_name_ == "mlp"
    many = np.random.default_rng(0).normal(size=(600, 2))
    assert clone(encoder).fit(many).batch_size_ == 256
    assert small(epochs=1, batch_size=280).fit(many).batch_size_ == 280


def test_auto_learns_and_compiles_by_the_size_of_the_task():
    encoder, cpu, gpu = ContrastiveEncoder(), torch.device("cpu"), torch.device("cuda")
    encoder.input_kind_, encoder.network_name_ = "image", "resnet18"
    whole = ContrastiveLoss(lambda x: x, lambda x: x, 0.2, 0.0)
    for size, epochs, lr, warmup in ((1024, 100, 0.8, 5), (256, 20, 0.2, 2)):
        config = encoder._config(size, cpu, whole, 1, epochs)
        assert config.lr == pytest.approx(lr)
        assert config.warmup_epochs == warmup
    assert encoder._config(256, gpu, whole, COMPILE_PIXELS, 1).compile
    assert not encoder._config(256, gpu, whole, COMPILE_PIXELS - 1, 1).compile
    assert not encoder._config(256, cpu, whole, COMPILE_PIXELS, 1).compile
    for rows, side in ((50_000, 32), (60_000, 28)):  # the papers' sets
        epochs = encoder._epochs(rows, gpu)
        assert encoder._config(256, gpu, whole, 2 * rows * side**2, epochs).compile
    for rows, device, epochs in ((1_000, gpu, 300), (10**7, gpu, 30), (50, cpu, 100),
                                 (2_000, cpu, 40), (10**6, cpu, 3)):  # fmt: skip
        assert encoder._epochs(rows, device) == epochs
    encoder.network_name_ = "small"
    assert not encoder._config(256, gpu, whole, COMPILE_PIXELS, 1).compile
    encoder.set_params(compile=True)
    assert encoder._config(256, cpu, whole, 1, 1).compile


@pytest.mark.parametrize(
    ("plain", "compiled", "epochs", "tried"),
    [(4, 9, 4, [False]), (5, 9, 9, [False, True]), (6, 3, 6, [False, True])],
)
def test_a_short_training_is_not_compiled_to_learn_its_length(
    monkeypatch, plain, compiled, epochs, tried
):
    """What compiles follows from the epochs, so that a run can be repeated by them."""
    asked, trained = [], []

    def within(deadline, model, batches, loss, config, *, configure, device):
        asked.append(config.compile)
        return configure(compiled if config.compile else plain)

    def train(model, batches, loss, config, **more):
        trained.append((config.epochs, config.compile))
        return History()

    monkeypatch.setattr(contrastive, "within", within)
    monkeypatch.setattr(contrastive, "train", train)
    rows, side = 20, 4
    monkeypatch.setattr(
        ContrastiveEncoder,
        "_compiles",
        lambda encoder, device, pixels: pixels >= 5 * 2 * rows * side**2,
    )
    X = np.random.default_rng(0).integers(0, 256, (rows, side, side, 1), np.uint8)
    for settings in ({"max_seconds": 60}, {"epochs": epochs}):
        small(**{"epochs": 50, **settings}).fit(X)
    assert asked == tried
    assert trained == [(epochs, epochs >= 5)] * 2


# --- time and cuts --------------------------------------------------------------------


def test_short_time_lowers_the_epochs_and_they_reproduce_the_fit(tiny_images):
    X, y = tiny_images
    start = time.perf_counter()
    hurried = small(epochs=100_000, max_seconds=0.3).fit(X, y)
    assert time.perf_counter() - start < 10
    assert 1 <= hurried.epochs_ < 100_000
    assert len(hurried.history_) == hurried.epochs_
    again = small(epochs=hurried.epochs_).fit(X, y)
    assert np.array_equal(again.transform(X), hurried.transform(X))


class PulledPlugError(Exception):
    pass


def cut_off(monkeypatch, encoder, X, after):
    """Fit until ``after`` losses have been computed."""
    compute, seen = ContrastiveLoss.__call__, []

    def counted(self, module, batch):
        seen.append(1)
        if len(seen) > after:
            raise PulledPlugError
        return compute(self, module, batch)

    with monkeypatch.context() as patch:
        patch.setattr(ContrastiveLoss, "__call__", counted)
        with pytest.raises(PulledPlugError):
            encoder.fit(X)


@pytest.fixture
def every_epoch(monkeypatch):
    monkeypatch.setattr(contrastive, "Checkpoint", partial(Checkpoint, every=1))


@pytest.mark.usefixtures("every_epoch")
def test_a_training_that_was_cut_off_goes_on(monkeypatch, tmp_path, tiny_images):
    X, _ = tiny_images
    encoder = small(epochs=5, checkpoint=str(tmp_path))
    cut_off(monkeypatch, encoder, X, after=6)
    assert (tmp_path / "training.safetensors").is_file()
    resumed = encoder.fit(X)
    assert len(resumed.history_) == 5
    assert np.array_equal(resumed.transform(X), small(epochs=5).fit(X).transform(X))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("every_epoch")
def test_a_deadline_is_turned_into_epochs_once(monkeypatch, tmp_path, tiny_images):
    """Going on later, the number found at first holds, however fast the trial is."""
    X, _ = tiny_images
    seconds = iter([10.0, 1e-6])
    monkeypatch.setattr(
        "denspu.training.loop._seconds_per_step", lambda *_: next(seconds)
    )
    encoder = small(epochs=50, max_seconds=81.0, checkpoint=str(tmp_path))
    cut_off(monkeypatch, encoder, X, after=4)
    assert encoder.fit(X).epochs_ == 4


@pytest.mark.usefixtures("every_epoch")
def test_other_settings_do_not_go_on(monkeypatch, tmp_path, tiny_images):
    X, _ = tiny_images
    cut_off(monkeypatch, small(epochs=5, checkpoint=str(tmp_path)), X, after=6)
    with pytest.raises(DensPUError, match="belongs to another training"):
        small(epochs=6, checkpoint=str(tmp_path)).fit(X)
    with pytest.raises(DensPUError, match="belongs to another training"):
        small(epochs=5, checkpoint=str(tmp_path)).fit(X[..., :1])


# --- a step in parts ------------------------------------------------------------------


@pytest.mark.parametrize(("parts", "weight"), [(3, 0.5)])
def test_parts_change_neither_loss_nor_gradients(parts, weight):
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4)).double()
    rows = torch.rand(8, 3, generator=torch.Generator(), dtype=torch.float64)
    positive = torch.arange(8) < 3

    def noisy(x):
        return x + 0.1 * torch.randn_like(x)

    def gradients(parts):
        loss = ContrastiveLoss(lambda x: x, noisy, 0.2, weight)
        loss.parts = parts
        net.zero_grad()
        with Randomness(0).torch_scope("views", torch.device("cpu")):
            value = loss(net, (rows, positive))
            value.backward()
        return value.item(), torch.cat([p.grad.flatten() for p in net.parameters()])

    loss = ContrastiveLoss(lambda x: x, noisy, 0.2, weight)
    assert sum(loss.use_less_memory() for _ in range(20)) == 6
    whole, split = gradients(1), gradients(parts)
    assert split[0] == pytest.approx(whole[0], abs=1e-6)
    assert torch.allclose(split[1], whole[1], atol=1e-6)


# --- hard cases -----------------------------------------------------------------------


def test_copies_of_one_image_collapse_with_a_warning():
    X = np.full((20, 8, 8, 3), 90, dtype=np.uint8)
    with pytest.warns(DegenerateFitWarning, match=r"collapsed: .* cosine of 1\.000"):
        encoder = small(augment="none").fit(X)
    assert encoder.mean_cosine_ == pytest.approx(1, abs=1e-3)
    assert np.isfinite(encoder.transform(X)).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"augment": "nature"}, "Did you mean 'natural'"),
        ({"checkpoint": 3}, "'checkpoint'"),
    ],
)
def test_bad_parameters(tiny_images, settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        small(**settings).fit(*tiny_images)


def test_a_network_that_does_not_suit_the_rows(tiny_images):
    with pytest.raises(InvalidParameterError, match="network='mlp'"):
        small(network="mlp").fit(*tiny_images)
    with pytest.raises(InvalidParameterError, match="network='small'"):
        small(network="small").fit(table())


# --- keeping --------------------------------------------------------------------------


def test_a_kept_encoder_answers_the_same(tmp_path, tiny_images):
    X, y = tiny_images
    encoder = small(image_size=12, augment="grey").fit(X, y)
    kept = load(save(encoder, tmp_path / "kept"))
    assert np.array_equal(kept.transform(X), encoder.transform(X))
    assert (
        kept.facts()
        == encoder.facts()
        == {
            "network": "small",
            "epochs": 2,
            "batch_size": 10,
            "loss": encoder.history_.last["loss"],
            "mean_cosine": encoder.mean_cosine_,
        }
    )
    assert torch.equal(kept.packed(X), encoder.packed(X))
    assert kept.views_.preset == encoder.views_.preset


def test_it_must_be_fitted_first():
    with pytest.raises(NotFittedError):
        small().transform(table())


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_a_frozen_encoder_is_not_trained_again():
    X, kind = textures()
    y = ((kind == 0) & (np.arange(len(kind)) % 2 == 0)).astype(int)
    encoder = small().fit(X, y)
    before = encoder.transform(X)
    model = DensPU(
        encoder=FrozenEstimator(encoder),
        refiner=NetworkRefiner(ratio_epochs=1, rounds=1, epochs=1, batch_size=20),
        device="cpu",
        random_state=0,
    ).fit(X, y)
    assert model.encoder_.estimator is encoder
    assert np.array_equal(encoder.transform(X), before)
    assert model.stages_["encode"].facts["network"] == "small"
    assert np.isfinite(model.decision_function(X)).all()
