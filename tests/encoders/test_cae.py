"""The autoencoder learns, from the rows it should, and measures itself right."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from denspu.encoders import CAEEncoder, cae
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.training import History, TrainingConfig


def small(**settings):
    settings = {"epochs": 2, "image_size": 8, "lr": 1e-2, "device": "cpu", **settings}
    return CAEEncoder(random_state=0, **settings)


def state(encoder):
    return torch.cat([p.detach().flatten() for p in encoder.module_.parameters()])


@pytest.fixture(scope="module")
def pictures():
    """Return 20 images, the upper half bright or the lower, and labels of six."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 80, (20, 8, 8, 3), dtype=np.uint8)
    X[:10, :4] += 150
    X[10:, 4:] += 150
    return X, np.r_[np.ones(6), np.zeros(14)].astype(int)


def test_it_learns_to_redraw(pictures):
    X, _ = pictures
    encoder = small(epochs=30).fit(X)
    loss = encoder.history_.column("loss")
    assert loss[-1] < 0.5 * loss[0]
    pixels = np.moveaxis(X / np.float32(255), -1, 1)
    redrawn = encoder.reconstruct(X)
    assert np.mean(np.abs(redrawn - pixels)) < np.mean(np.abs(redrawn - pixels[::-1]))
    error = ((redrawn - pixels) ** 2).mean(axis=(1, 2, 3))
    assert np.allclose(encoder.psnr(X), 10 * np.log10(1 / error), atol=1e-3)
    many = np.tile(X, (15, 1, 1, 1))  # more than a chunk
    assert np.array_equal(encoder.psnr(many)[280:], encoder.psnr(X))
    Z = encoder.transform(X)
    with torch.inference_mode():
        expected = encoder.module_.encode(torch.from_numpy(pixels.copy())).numpy()
    assert np.allclose(Z, expected, atol=1e-5)
    assert np.array_equal(encoder.transform(X[7:8]), Z[7:8])
    assert np.array_equal(encoder.transform(X[::-1]), Z[::-1])
    assert (Z.dtype, Z.shape) == (np.float32, (20, 32))
    assert encoder.facts() == {"trained_on": 20, "epochs": 30, "loss": loss[-1]}


def test_training_is_the_papers(monkeypatch, pictures):
    """Adam, coupled decay, mean squared error, full precision, batches of 64."""
    seen = []

    def note(module, batches, loss, config, **more):
        seen.extend([batches.batch_size, loss, config])
        return History()

    monkeypatch.setattr(cae, "train", note)
    CAEEncoder().fit(*pictures)
    assert seen[:2] == [64, cae.reconstruction_loss]
    assert seen[2] == TrainingConfig(
        epochs=50, optimizer="adam", lr=1e-4, weight_decay=1e-3, precision="float32"
    )
    pixels = torch.rand(2, 3, 4, 4, generator=torch.Generator())
    loss = cae.reconstruction_loss(torch.nn.Threshold(2.0, 0.5), (pixels,))
    assert loss.item() == pytest.approx(((pixels - 0.5) ** 2).mean().item())
    with torch.inference_mode():
        latent = cae.ConvAutoencoder().encode(torch.zeros(2, 3, 32, 32))
    assert latent.shape == (2, 512)


def test_which_rows_shape_the_weights(pictures):
    X, y = pictures
    other = X.copy()
    other[y == 0] = 255 - other[y == 0]
    plain = small().fit(X, y)
    assert torch.equal(state(plain), state(small().fit(other, y)))
    assert plain.n_trained_on_ == 6
    everything, others = (small(fit_on="all").fit(rows, y) for rows in (X, other))
    assert not torch.equal(state(everything), state(others))
    assert torch.equal(state(everything), state(small().fit(X)))  # without labels
    bright = X.astype(float)
    bright[y == 1] /= 10
    assert small(epochs=1).fit(bright, y).scale_.high == bright.max()


def test_settings_reach_the_training(pictures):
    plain = state(small().fit(*pictures))
    for change in ({"lr": 1e-3}, {"weight_decay": 0.5}, {"batch_size": 2},
                   {"epochs": 3}):  # fmt: skip
        assert not torch.equal(state(small(**change).fit(*pictures)), plain), change


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"image_size": 30}, "a multiple of 4"),
        ({"channels": 1}, "have 3 colour channels"),
    ],
)
def test_bad_parameters(pictures, settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        small(**settings).fit(*pictures)


def test_bad_inputs(pictures):
    X, y = pictures
    for answer in ("transform", "reconstruct", "psnr"):
        with pytest.raises(NotFittedError):
            getattr(CAEEncoder(), answer)(X)
    with pytest.raises(InvalidInputError, match="images are N×H×W"):
        small().fit(X.reshape(20, -1), y)
    with pytest.raises(InvalidInputError, match="fitted on 8×8×3"):
        small(epochs=1).fit(X, y).transform(X[:, :6])
