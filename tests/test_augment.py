"""Random views: what each change may do, and what it may not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from denspu._random import Randomness
from denspu.augment import PRESETS, ImageAugment, ImagePreset, RowAugment

NONE = PRESETS["none"]


def views(rows, how, seed=0):
    augment = ImageAugment(how) if isinstance(how, ImagePreset) else how
    before = rows.clone()
    with Randomness(seed).torch_scope("views", torch.device("cpu")):
        seen = augment(rows)
    assert torch.equal(rows, before)  # what is given is left alone
    return seen


def random_images(n=40, channels=3, size=12):
    return torch.rand(n, channels, size, size, generator=torch.Generator())


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", PRESETS)
def test_values_and_shapes_are_kept_and_the_seed_decides(name, channels):
    images = random_images(channels=channels)
    images[:5], images[5:10] = 0, 1
    preset = replace(PRESETS[name], erase=0.3)
    seen = views(images, preset)
    assert seen.shape == images.shape
    assert 0 <= seen.min() <= seen.max() <= 1
    assert torch.equal(seen, views(images, preset))
    assert not torch.equal(seen, views(images, preset, seed=1))
    if name == "none":
        assert torch.equal(views(images, NONE), images)


# --- shape ----------------------------------------------------------------------------


def slopes(n=400):
    """Return images that grow brighter from left to right."""
    return torch.linspace(0, 1, 12).expand(n, 1, 12, 12).contiguous()


def test_flips_alone_mirror_half_of_the_images():
    images = random_images(200)
    seen = views(images, replace(NONE, flip=True))
    same = (seen - images).abs().amax((1, 2, 3)) < 1e-5
    mirrored = (seen - images.flip(3)).abs().amax((1, 2, 3)) < 1e-5
    assert (same | mirrored).all()
    assert 0.35 < mirrored.float().mean() < 0.65
    for name in ("grey", "documents"):
        seen = views(slopes(), replace(PRESETS[name], brightness=0, contrast=0))
        assert (seen[..., -1] > seen[..., 0]).all()


def test_crops_show_a_part_at_least_as_large_as_stated_and_reach_all_sides():
    """The range of a slope that a crop shows is its width."""
    seen = views(slopes(), replace(NONE, crop=0.25))
    low, high = seen.amin((1, 2, 3)), seen.amax((1, 2, 3))
    assert (high - low).min().item() == pytest.approx(0.5, abs=0.05)
    assert (high - low).max().item() == pytest.approx(1.0, abs=0.05)
    assert low.max() > 0.4
    assert high.min() < 0.6
    seen = views(slopes(), replace(NONE, crop=0.999))
    assert torch.allclose(seen, slopes(), atol=0.01)


def test_stretching_keeps_one_side_whole():
    seen = views(slopes(), replace(NONE, aspect=2.0))
    width = seen.amax((1, 2, 3)) - seen.amin((1, 2, 3))
    assert 0.65 < width.min() < 0.8  # √½ of the side
    assert (width > 0.95).float().mean() > 0.4


def test_turns_stay_within_the_angle():
    seen = views(slopes(), replace(NONE, rotate=30))[:, 0, 4:8, 4:8]
    slope_x = (seen[:, :, -1] - seen[:, :, 0]).mean(1)
    slope_y = (seen[:, -1] - seen[:, 0]).mean(1)
    angle = torch.rad2deg(torch.atan2(slope_y, slope_x))
    assert -30.5 < angle.min() < -25
    assert 25 < angle.max() < 30.5


# --- colour ---------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
def test_brightness_and_contrast(channels):
    even = torch.full((400, channels, 2, 2), 0.5)
    preset = replace(NONE, brightness=0.4, contrast=0.9, colour_chance=1)
    gain = (views(even, preset) / even).mean((1, 2, 3))  # no contrast to change
    assert gain.min().item() == pytest.approx(0.6, abs=0.02)
    assert gain.max().item() == pytest.approx(1.4, abs=0.02)
    images = 0.4 + 0.2 * random_images(100, channels)
    seen = views(images, replace(NONE, contrast=0.4, colour_chance=1))
    assert torch.allclose(seen.mean((1, 2, 3)), images.mean((1, 2, 3)), atol=2e-3)
    gain = seen.std((1, 2, 3)) / images.std((1, 2, 3))
    assert 0.59 < gain.min() < 0.7
    assert 1.3 < gain.max() < 1.41


def test_colours_and_greys_change_as_often_as_stated():
    images = random_images(400, size=2)
    seen = views(images, replace(NONE, brightness=0.4, colour_chance=0.25))
    changed = (seen - images).abs().amax((1, 2, 3)) > 1e-4
    assert 0.17 < changed.float().mean() < 0.33
    seen = views(images, replace(NONE, grey_chance=0.2))
    grey = (seen - seen[:, :1]).abs().amax((1, 2, 3)) < 1e-4
    assert 0.12 < grey.float().mean() < 0.28


def test_saturation_and_hue_keep_white_and_luma():
    luma = torch.tensor([0.299, 0.587, 0.114])
    images = 0.4 + 0.2 * random_images()
    preset = replace(NONE, saturation=0.5, hue=0.5, colour_chance=1)
    seen = views(images, preset)
    kept = (luma[:, None, None] * images).sum(1)
    found = (luma[:, None, None] * seen).sum(1)
    assert torch.allclose(found, kept, atol=1e-3)
    assert (seen - images).abs().max() > 0.1
    for level in (0.0, 0.5, 1.0):
        grey = torch.full((50, 3, 2, 2), level)
        assert torch.allclose(views(grey, preset), grey, atol=1e-5)
    unchanged = views(images, replace(NONE, saturation=1e-9))
    assert torch.allclose(unchanged, images, atol=1e-5)


# --- holes ----------------------------------------------------------------------------


def test_a_hole_covers_about_its_share_with_the_mean_of_each_channel():
    """Squares that reach over the edge cover less: on average side·(1 - side/4)."""
    images = random_images(2000, 2, 16)
    seen = views(images, replace(NONE, erase=0.5))
    hole = seen != images
    share = hole.float().mean((1, 2, 3))
    assert share.max().item() == pytest.approx(0.25, abs=0.02)
    assert share.mean().item() == pytest.approx((0.5 * (1 - 0.5 / 4)) ** 2, abs=0.02)
    assert share.min() > 0
    mean = images.mean((2, 3), keepdim=True).expand_as(images)
    assert torch.equal(seen[hole], mean[hole])
    assert (hole.all(1) == hole.any(1))[:50].all()


def test_milder_views():
    natural = ImageAugment(PRESETS["natural"])
    mild = natural.milder(crop=0.5, erase=0.3).preset
    assert mild == replace(PRESETS["natural"], crop=0.5, erase=0.3)
    documents = ImageAugment(PRESETS["documents"]).milder(crop=0.5, erase=0)
    assert documents.preset.crop == 0.6
    assert natural.preset == ImagePreset()


# --- rows of a table ------------------------------------------------------------------


def columns(n=4000, d=3):
    """Return rows whose columns share no value: column j lies in [10 j, 10 j + 1]."""
    return torch.rand(n, d, generator=torch.Generator()) + 10 * torch.arange(d)


def test_noise_has_its_deviation():
    rows = columns()
    difference = views(rows, RowAugment(noise=0.3, mask=0)) - rows
    assert difference.std().item() == pytest.approx(0.3, rel=0.05)
    assert difference.mean().item() == pytest.approx(0, abs=0.02)
    assert torch.equal(views(rows, RowAugment(noise=0, mask=0)), rows)
    assert torch.equal(views(rows, RowAugment()), views(rows, RowAugment()))


def test_the_stated_share_of_values_comes_from_other_rows_of_the_column():
    rows = columns()
    rows[:, 1] = rows[:, 0]
    seen = views(rows, RowAugment(noise=0, mask=0.3))
    assert (seen != rows).float().mean().item() == pytest.approx(0.3, abs=0.03)
    seen = views(rows, RowAugment(noise=0, mask=0.999))
    for j in range(3):
        assert np.isin(seen[:, j], rows[:, j]).all()
    for part in (0.1, 0.9):
        found, wanted = seen.quantile(part, dim=0), rows.quantile(part, dim=0)
        assert torch.allclose(found, wanted, atol=0.05)
    # Equal columns come apart: values are drawn cell by cell.
    assert abs(np.corrcoef(seen[:, :2].T.numpy())[0, 1]) < 0.2
