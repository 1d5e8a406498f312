"""Modules against the code they stand for, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu.networks.pixels import PixelScale, pack, to_tensor, unpack
from denspu.persistence.onnx.parts.neighbours import Nearest, NearestVotes
from denspu.persistence.onnx.parts.rows import Pixels
from denspu.persistence.onnx.parts.scores import Steps


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("shape", [(9, 12, 3), (16, 16, 1), (9, 9, 4)])
def test_pixels_are_scaled_resized_and_rounded_as_for_the_networks(dtype, shape):
    rng = np.random.default_rng(0)
    X = rng.random((5, *shape))
    top = 1 if dtype == "float32" else np.iinfo(dtype).max
    X = (X * top).astype(dtype)
    scale = PixelScale.of(X)
    levels = 255 if dtype == "uint8" else 65535
    for size in (None, 6, 20):
        twin = Pixels(
            scale.low, scale.high, shape, size=size, antialias=True, levels=levels
        )
        found = (twin(torch.from_numpy(X)) * levels).round()
        wanted = (unpack(pack(X, scale, size)) * levels).round()
        assert found.shape == wanted.shape
        assert (found - wanted).abs().max() <= 1  # halfway falls either way
        assert (found != wanted).float().mean() < 0.02
    plain = Pixels(scale.low, scale.high, shape, size=32, channels=3)
    if shape[2] != 1:
        plain.channels = None
    wanted = to_tensor(X, scale, 32, 3)
    torch.testing.assert_close(plain(torch.from_numpy(X)), wanted)


def test_a_rising_map_between_and_beyond_its_points():
    x, y = np.array([0.0, 1.0, 1.0, 3.0]), np.array([0.1, 0.2, 0.5, 0.9])
    scores = np.array([-5.0, 0.0, 0.5, 2.0, 3.0, 9.0])
    found = Steps(x, y)(torch.from_numpy(scores)).numpy()
    np.testing.assert_allclose(found, [0.1, 0.1, 0.15, 0.7, 0.9, 0.9])
    one = Steps([2.0], [0.4])(torch.from_numpy(scores)).numpy()
    np.testing.assert_allclose(one, 0.4)


def test_copies_of_a_row_outvote_its_other_neighbours():
    rows = np.array([[0.0], [1.0], [2.0]])
    twin = NearestVotes(Nearest(rows, 3), [1.0, 0.0, 0.0], weighted=True)
    found = twin(torch.tensor([[0.0], [1.5]], dtype=torch.float64)).numpy()
    np.testing.assert_allclose(found, [1.0, (1 / 1.5) / (1 / 1.5 + 4)])
