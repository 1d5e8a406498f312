"""The autoencoder learns, from the rows it should, and measures itself right."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch import nn

from denspu.encoders import CAEEncoder, cae
from denspu.encoders.cae import reconstruction_loss
from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.training import History, TrainingConfig


def small(**settings):
    settings = {"epochs": 2, "image_size": 8, "lr": 1e-2, "device": "cpu", **settings}
    return CAEEncoder(random_state=0, **settings)


def state(encoder):
    return torch.cat([p.detach().flatten() for p in encoder.module_.parameters()])


def test_it_learns_to_redraw():
    """Two kinds of images: after training each is redrawn like itself."""
    images = np.zeros((16, 8, 8), np.float32)
    images[:8, :4] = 1
    images[8:, 4:] = 1
    encoder = small(epochs=60).fit(images)
    loss = encoder.history_.column("loss")
    assert loss[-1] < 0.3 * loss[0]
    redrawn = encoder.reconstruct(images)[:, 0]
    assert np.mean(np.abs(redrawn - images)) < np.mean(np.abs(redrawn - images[::-1]))
    assert encoder.psnr(images).min() > small(epochs=1).fit(images).psnr(images).max()


def test_latent_of_32_pixels_has_512_values(tiny_images):
    X, y = tiny_images
    Z = small(image_size=32, epochs=1).fit(X, y).transform(X)
    assert Z.shape == (20, 512)
    assert Z.dtype == np.float32
    assert Z.std() > 0


def test_defaults_are_the_papers():
    encoder = CAEEncoder()
    assert (encoder.epochs, encoder.batch_size) == (50, 64)
    assert (encoder.lr, encoder.weight_decay) == (1e-4, 1e-3)
    assert (encoder.fit_on, encoder.image_size, encoder.channels) == ("positive", 32, 3)


def test_training_is_the_papers(monkeypatch, tiny_images):
    """Adam, coupled decay, mean squared error, full precision, batches of 64."""
    seen = []

    def note(module, batches, loss, config, **more):
        seen.extend([batches.batch_size, loss, config])
        return History()

    monkeypatch.setattr(cae, "train", note)
    CAEEncoder().fit(*tiny_images)
    batch_size, loss, config = seen
    assert batch_size == 64
    assert loss is reconstruction_loss
    assert config == TrainingConfig(
        epochs=50, optimizer="adam", lr=1e-4, weight_decay=1e-3, precision="float32"
    )


def test_positives_alone_shape_the_weights(tiny_images):
    X, y = tiny_images
    other = X.copy()
    other[y == 0] = 255 - other[y == 0]
    assert torch.equal(state(small().fit(X, y)), state(small().fit(other, y)))
    assert small().fit(X, y).n_trained_on_ == 6


def test_all_rows_shape_the_weights_when_asked(tiny_images):
    X, y = tiny_images
    other = X.copy()
    other[y == 0] = 255 - other[y == 0]
    one, two = (small(fit_on="all").fit(images, y) for images in (X, other))
    assert not torch.equal(state(one), state(two))
    assert one.n_trained_on_ == 20


def test_without_labels_all_rows_count(tiny_images):
    X, y = tiny_images
    assert torch.equal(state(small().fit(X)), state(small(fit_on="all").fit(X, y)))


def test_settings_reach_the_training(tiny_images):
    X, y = tiny_images
    plain = state(small().fit(X, y))
    for change in ({"lr": 1e-3}, {"weight_decay": 0.5}, {"batch_size": 2},
                   {"epochs": 3}):  # fmt: skip
        assert not torch.equal(state(small(**change).fit(X, y)), plain), change


def test_psnr_equals_its_twin(tiny_images):
    X, y = tiny_images
    encoder = small().fit(X, y)
    pixels = np.moveaxis(X / 255.0, -1, 1)
    error = ((encoder.reconstruct(X) - pixels) ** 2).mean(axis=(1, 2, 3))
    assert np.allclose(encoder.psnr(X), 10 * np.log10(1 / error), atol=1e-3)


def test_psnr_of_more_rows_than_a_chunk():
    X = np.random.default_rng(0).integers(0, 256, (300, 4, 4), dtype=np.uint8)
    encoder = small(image_size=4, epochs=1).fit(X[:4])
    assert np.array_equal(encoder.psnr(X)[250:], encoder.psnr(X[250:]))


def test_reconstruction_loss_is_the_mean_squared_error():
    pixels = torch.rand(2, 3, 4, 4, generator=torch.Generator())
    loss = reconstruction_loss(nn.Threshold(2.0, 0.5), (pixels,))
    assert loss.item() == pytest.approx(((pixels - 0.5) ** 2).mean().item())


def test_transform_is_the_encoder_half(tiny_images):
    X, y = tiny_images
    encoder = small().fit(X, y)
    pixels = torch.from_numpy(np.moveaxis(X / np.float32(255), -1, 1).copy())
    with torch.inference_mode():
        expected = encoder.module_.encode(pixels).numpy()
    assert np.allclose(encoder.transform(X), expected, atol=1e-5)


def test_rows_do_not_depend_on_the_batch(tiny_images):
    X, y = tiny_images
    encoder = small().fit(X, y)
    whole = encoder.transform(X)
    assert np.array_equal(encoder.transform(X[7:8]), whole[7:8])
    assert np.array_equal(encoder.transform(X[::-1]), whole[::-1])


def test_facts(tiny_images):
    encoder = small().fit(*tiny_images)
    assert encoder.facts() == {
        "trained_on": 6,
        "epochs": 2,
        "loss": encoder.history_.last["loss"],
    }


@pytest.mark.parametrize("answer", ["transform", "reconstruct", "psnr"])
def test_before_fit(answer, tiny_images):
    with pytest.raises(NotFittedError):
        getattr(CAEEncoder(), answer)(tiny_images[0])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"image_size": 30}, "a multiple of 4"),
        ({"image_size": 0}, "a multiple of 4"),
        ({"fit_on": "positives"}, "Did you mean 'positive'"),
        ({"epochs": 0}, "'epochs'"),
        ({"lr": 0}, "'lr'"),
        ({"channels": 4}, "'channels'"),
        ({"channels": 1}, "have 3 colour channels"),
    ],
)
def test_bad_parameters(tiny_images, settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        small(**settings).fit(*tiny_images)


def test_bad_inputs(tiny_images):
    X, y = tiny_images
    with pytest.raises(InvalidInputError, match="images are N×H×W"):
        small().fit(X.reshape(20, -1), y)
    with pytest.raises(InvalidInputError, match="X has 20 rows, y has 19"):
        small().fit(X, y[:-1])
    with pytest.raises(InvalidInputError, match="fitted on 8×8×3"):
        small(epochs=1).fit(X, y).transform(X[:, :6])


@pytest.mark.slow
def test_the_papers_training_learns_at_full_size():
    """All defaults, 50 epochs, on smooth pictures."""
    rng = np.random.default_rng(0)
    slope = np.linspace(0, 1, 32)[:, None, None] * np.ones((32, 32, 3))
    images = (rng.random((80, 1, 1, 3)) * slope * 255).astype(np.uint8)
    encoder = CAEEncoder(random_state=0).fit(images)
    loss = encoder.history_.column("loss")
    assert len(loss) == 50
    assert loss[-1] < 0.75 * loss[0]
    assert encoder.transform(images).shape == (80, 512)


def test_the_pixel_range_is_that_of_all_images(tiny_images):
    X, y = tiny_images
    X = X.astype(float)
    X[y == 1] /= 10
    encoder = CAEEncoder(epochs=1, image_size=8, random_state=0).fit(X, y)
    assert encoder.scale_.high == X.max()
