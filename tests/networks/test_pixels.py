"""From arrays of any dtype to tensors in [0, 1]."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu.exceptions import InvalidParameterError
from denspu.networks import pixels
from denspu.networks.pixels import PixelScale, pack, to_tensor, unpack

UNIT = PixelScale(0.0, 1.0)


def scaled(images):
    return PixelScale.of(images).apply(images)


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([0, 51, 255], np.uint8, [0, 0.2, 1]),
        ([0, 13107, 65535], np.uint16, [0, 0.2, 1]),
        ([False, True], bool, [0, 1]),
        ([0.0, 0.2, 0.7], np.float32, [0, 0.2, 0.7]),
        ([0.0, 51.0, 255.0], np.float64, [0, 0.2, 1]),
        ([-1.0, 0.0, 1.0], np.float64, [0, 0.5, 1]),
        ([-2, 0, 2], np.int16, [0, 0.5, 1]),
        ([2.0, 4.0], np.float64, [0.5, 1]),
    ],
)
def test_scaling(values, dtype, expected):
    result = scaled(np.array(values, dtype=dtype))
    assert result.dtype == np.float32
    assert np.allclose(result, expected, atol=1e-6)


def test_sixteen_bits_are_kept():
    images = np.arange(1000, 1004, dtype=np.uint16)
    assert len(np.unique(scaled(images))) == 4


@pytest.mark.parametrize("value", [0, 7, 255])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float64])
def test_constant_images_stay_finite(value, dtype):
    result = scaled(np.full((2, 3, 3, 1), value, dtype=dtype))
    assert np.isfinite(result).all()
    assert result.min() >= 0
    assert result.max() <= 1


def test_constant_negative_image():
    assert (
        scaled(np.full((1, 2, 2, 1), -3.0)).tolist() == np.zeros((1, 2, 2, 1)).tolist()
    )


def test_values_beyond_the_learned_range_are_clipped():
    scale = PixelScale.of(np.array([0.0, 10.0]))
    assert scale.apply(np.array([-5.0, 5.0, 20.0])).tolist() == [0, 0.5, 1]


def test_channels_come_first():
    image = np.zeros((1, 2, 2, 3))
    image[0, 0, 1, 2] = 1
    tensor = to_tensor(image, UNIT, 2)
    assert tensor.shape == (1, 3, 2, 2)
    assert tensor.dtype == torch.float32
    assert tensor.nonzero().tolist() == [[0, 2, 0, 1]]


def test_grey_is_copied():
    image = np.random.default_rng(0).random((2, 4, 4, 1))
    tensor = to_tensor(image, UNIT, 4)
    assert tensor.shape == (2, 3, 4, 4)
    for channel in range(3):
        assert np.allclose(tensor[:, channel], image[..., 0])
    assert to_tensor(image, UNIT, 4, channels=1).shape == (2, 1, 4, 4)


def test_alpha_is_dropped():
    rng = np.random.default_rng(0)
    colour = rng.random((2, 4, 4, 4))
    assert torch.equal(to_tensor(colour, UNIT, 4), to_tensor(colour[..., :3], UNIT, 4))
    grey = rng.random((2, 4, 4, 2))
    assert torch.equal(to_tensor(grey, UNIT, 4), to_tensor(grey[..., :1], UNIT, 4))


def test_colour_does_not_fit_one_channel():
    with pytest.raises(InvalidParameterError, match="have 3 colour channels"):
        to_tensor(np.zeros((1, 4, 4, 3)), UNIT, 4, channels=1)


@pytest.mark.parametrize("size", [4, 9, 32])
def test_resize(size):
    constant = np.full((2, 6, 7, 3), 0.25)
    tensor = to_tensor(constant, UNIT, size)
    assert tensor.shape == (2, 3, size, size)
    assert torch.allclose(tensor, torch.tensor(0.25))
    assert tensor.is_contiguous()


def test_resize_is_bilinear():
    """Doubling [0, 1]: the new centres lie at -1/4, 1/4, 3/4, 5/4, clamped."""
    image = np.array([[0.0, 1.0], [0.0, 1.0]]).reshape(1, 2, 2, 1)
    row = to_tensor(image, UNIT, 4)[0, 0, 0]
    assert torch.allclose(row, torch.tensor([0, 0.25, 0.75, 1.0]))


def test_right_size_is_left_alone():
    image = np.random.default_rng(0).random((1, 5, 5, 3))
    assert np.allclose(to_tensor(image, UNIT, 5)[0].permute(1, 2, 0), image[0])


# --- packed ---------------------------------------------------------------------------


def packed(images, size=None):
    return pack(images, PixelScale.of(images), size)


def random_images(dtype, shape=(3, 5, 5, 3)):
    high = np.iinfo(dtype).max
    return np.random.default_rng(0).integers(0, high, shape, dtype, endpoint=True)


def channels_last(tensor):
    return tensor.permute(0, 2, 3, 1).numpy()


def test_eight_bits_come_back_exactly():
    images = random_images(np.uint8)
    held = packed(images)
    assert held.dtype == torch.uint8
    assert np.array_equal(channels_last(held), images)
    assert np.array_equal(channels_last(unpack(held)), images / np.float32(255))


def test_sixteen_bits_come_back_within_a_step():
    images = random_images(np.uint16)
    images[0, 0, 0] = 0, 1, 65535
    held = packed(images)
    assert held.dtype == torch.int16
    found = channels_last(unpack(held))
    assert np.abs(found - images / 65535).max() <= 1 / 65535
    assert found[0, 0, 0].tolist() == pytest.approx([0, 1 / 65535, 1], abs=1e-7)


@pytest.mark.parametrize("top", [1.0, 255.0])
def test_floats_come_back_within_half_a_step(top):
    images = top * np.random.default_rng(0).random((3, 5, 5, 3))
    images[0, 0, 0, 0] = top
    held = packed(images)
    assert held.dtype == torch.int16
    assert np.abs(channels_last(unpack(held)) - images / top).max() < 0.51 / 65535


def test_black_and_white_images():
    images = np.random.default_rng(0).random((2, 4, 4, 1)) < 0.5
    assert np.array_equal(channels_last(unpack(packed(images))), images)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_packed_alpha_is_dropped(dtype):
    for channels in (2, 4):
        images = random_images(dtype, (2, 4, 4, channels))
        assert packed(images).shape == (2, channels - 1, 4, 4)
        assert torch.equal(packed(images), packed(images[..., :-1]))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_images_without_a_channel_axis(dtype):
    images = random_images(dtype, (3, 4, 6))
    assert packed(images).shape == (3, 1, 4, 6)
    assert torch.equal(packed(images), packed(images[..., None]))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(3, 8, 8, 3), (3, 4, 6, 1)])
def test_packed_images_are_resized(dtype, shape):
    images = np.full(shape, 51 * (257 if dtype == np.uint16 else 1), dtype)
    held = packed(images, 6)
    assert held.shape == (3, shape[-1], 6, 6)
    assert held.dtype == (torch.uint8 if dtype == np.uint8 else torch.int16)
    assert torch.allclose(unpack(held), torch.tensor(0.2), atol=1e-4)


def test_shrinking_averages():
    """Every fourth column white: a quarter as wide the picture is a quarter white."""
    images = np.zeros((1, 16, 16, 1), np.uint8)
    images[:, :, ::4] = 255
    small = unpack(packed(images, 4))[..., 1:-1]
    assert torch.allclose(small, torch.tensor(0.25), atol=0.05)


def test_chunks_of_rows_are_joined(monkeypatch):
    images = random_images(np.uint16, (5, 4, 4, 1))
    whole = packed(images)
    monkeypatch.setattr(pixels, "PACK_ROWS", 2)
    assert torch.equal(packed(images), whole)


def test_values_beyond_the_range_stay_inside():
    images = np.array([-5.0, 0.5, 9.0, 1.0]).reshape(1, 2, 2, 1)
    found = unpack(pack(images, UNIT))
    assert found.flatten().tolist() == pytest.approx([0, 0.5, 1, 1], abs=1e-5)


def test_read_only_images_are_copied():
    images = np.zeros((2, 4, 4, 1), dtype=np.uint8)
    images.flags.writeable = False
    packed = pack(images, PixelScale.of(images))
    packed += 1
    assert (images == 0).all()
