"""From arrays of any dtype to tensors in [0, 1]."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu.exceptions import InvalidParameterError
from denspu.networks import backbones
from denspu.networks.backbones import PixelScale, pack, to_tensor, unpack

UNIT = PixelScale(0.0, 1.0)


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([0, 51, 255], np.uint8, [0, 0.2, 1]),
        ([0, 13107, 65535], np.uint16, [0, 0.2, 1]),
        ([0.0, 0.2, 0.7], np.float32, [0, 0.2, 0.7]),
        ([0.0, 51.0, 255.0], np.float64, [0, 0.2, 1]),
        ([-1.0, 0.0, 1.0], np.float64, [0, 0.5, 1]),
        ([-2, 0, 2], np.int16, [0, 0.5, 1]),
        ([0, 0], np.int32, [0, 0]),
        ([-3.0, -3.0], np.float64, [0, 0]),
    ],
)
def test_scaling(values, dtype, expected):
    images = np.array(values, dtype=dtype)
    result = PixelScale.of(images).apply(images)
    assert result.dtype == np.float32
    assert result == pytest.approx(expected, abs=1e-6)


def test_values_beyond_the_learned_range_are_clipped():
    scale = PixelScale.of(np.array([0.0, 10.0]))
    assert scale.apply(np.array([-5.0, 5.0, 20.0])).tolist() == [0, 0.5, 1]
    beyond = np.array([-5.0, 0.5, 9.0, 1.0]).reshape(1, 2, 2, 1)
    found = unpack(pack(beyond, UNIT)).flatten()
    assert found.tolist() == pytest.approx([0, 0.5, 1, 1], abs=1e-5)


def test_channels_come_first_grey_is_copied_and_alpha_dropped():
    colour = np.random.default_rng(0).random((2, 4, 4, 4))
    found = to_tensor(colour, UNIT, 4)
    assert found.shape == (2, 3, 4, 4)
    assert np.allclose(found.permute(0, 2, 3, 1), colour[..., :3])
    grey = to_tensor(colour[..., :2], UNIT, 4)
    assert np.allclose(grey, colour[..., 0][:, None].repeat(3, 1))
    assert to_tensor(colour[..., :1], UNIT, 4, channels=1).shape == (2, 1, 4, 4)
    with pytest.raises(InvalidParameterError, match="have 3 colour channels"):
        to_tensor(colour, UNIT, 4, channels=1)


def test_resizing_is_bilinear():
    """Doubling [0, 1]: the new centres lie at -1/4, 1/4, 3/4, 5/4, clamped."""
    image = np.array([[0.0, 1.0], [0.0, 1.0]]).reshape(1, 2, 2, 1)
    row = to_tensor(image, UNIT, 4)[0, 0, 0]
    assert torch.allclose(row, torch.tensor([0, 0.25, 0.75, 1.0]))
    tensor = to_tensor(np.full((2, 6, 7, 3), 0.25), UNIT, 9)
    assert tensor.shape == (2, 3, 9, 9)
    assert torch.allclose(tensor, torch.tensor(0.25))


# --- packed ---------------------------------------------------------------------------


def packed(images, size=None):
    return pack(images, PixelScale.of(images), size)


def random_images(dtype, shape=(3, 5, 6, 3)):
    high = np.iinfo(dtype).max
    return np.random.default_rng(0).integers(0, high, shape, dtype, endpoint=True)


def back(tensor):
    return unpack(tensor).permute(0, 2, 3, 1).numpy()


def test_pixels_come_back():
    eight, sixteen = random_images(np.uint8), random_images(np.uint16)
    assert packed(eight).dtype == torch.uint8
    assert np.array_equal(back(packed(eight)), eight / np.float32(255))
    sixteen[0, 0, 0] = 0, 1, 65535
    assert packed(sixteen).dtype == torch.int16
    found = back(packed(sixteen))
    assert np.abs(found - sixteen / 65535).max() <= 1 / 65535
    assert found[0, 0, 0].tolist() == pytest.approx([0, 1 / 65535, 1], abs=1e-7)
    floats = np.random.default_rng(0).random((3, 5, 5, 3))
    floats[0, 0, 0, 0] = 1
    for top in (1.0, 255.0):
        assert np.abs(back(packed(top * floats)) - floats).max() < 0.51 / 65535
    assert np.array_equal(back(packed(floats < 0.5)), floats < 0.5)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_forms_of_images(dtype, monkeypatch):
    images = random_images(dtype, (5, 4, 6, 4))
    assert torch.equal(packed(images), packed(images[..., :3]))
    grey = images[..., 0]
    assert packed(grey).shape == (5, 1, 4, 6)
    assert torch.equal(packed(grey), packed(grey[..., None]))
    small = packed(images, 3)
    assert small.shape == (5, 3, 3, 3)
    assert small.dtype == (torch.uint8 if dtype == np.uint8 else torch.int16)
    whole = packed(images)
    monkeypatch.setattr(backbones, "PACK_ROWS", 2)
    assert torch.equal(packed(images), whole)
    assert torch.equal(packed(images, 3), small)


def test_shrinking_averages():
    """Every fourth column white: a quarter as wide the picture is a quarter white."""
    images = np.zeros((1, 16, 16, 1), np.uint8)
    images[:, :, ::4] = 255
    small = unpack(packed(images, 4))[..., 1:-1]
    assert torch.allclose(small, torch.tensor(0.25), atol=0.05)


def test_read_only_images_are_copied():
    images = np.zeros((2, 4, 4, 1), dtype=np.uint8)
    images.flags.writeable = False
    held = pack(images, UNIT)
    held += 1
    assert (images == 0).all()
