"""Random views of images: what each change may do, and what it may not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from denspu._random import Randomness
from denspu.augment import PRESETS, RGB, YIQ, ImageAugment, ImagePreset, _colour_matrix

CPU = torch.device("cpu")
NONE = PRESETS["none"]


def views(images, preset, seed=0):
    with Randomness(seed).torch_scope("views", CPU):
        return ImageAugment(preset)(images)


def random_images(n=40, channels=3, size=12):
    return torch.rand(n, channels, size, size, generator=torch.Generator())


@pytest.mark.parametrize("channels", [1, 3])
def test_none_is_the_identity(channels):
    images = random_images(channels=channels)
    assert torch.equal(views(images, NONE), images)
    assert not NONE.changes_shape
    assert not NONE.changes_colour


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("channels", [1, 3])
def test_values_and_shapes_are_kept(name, channels):
    images = random_images(channels=channels)
    images[:5], images[5:10] = 0, 1
    seen = views(images, replace(PRESETS[name], erase=0.3))
    assert seen.shape == images.shape
    assert seen.min() >= 0
    assert seen.max() <= 1


@pytest.mark.parametrize("name", ["natural", "grey", "documents"])
def test_same_seed_same_views(name):
    images = random_images()
    assert torch.equal(*(views(images, PRESETS[name], seed=1) for _ in range(2)))
    other = views(images, PRESETS[name], seed=2)
    assert not torch.equal(views(images, PRESETS[name], seed=1), other)


def test_every_image_gets_its_own_view():
    seen = views(random_images(1).expand(8, -1, -1, -1), PRESETS["natural"])
    assert len(np.unique(seen.flatten(1).numpy(), axis=0)) == 8


def test_images_given_are_left_alone():
    images = random_images()
    before = images.clone()
    views(images, replace(PRESETS["natural"], erase=0.5))
    assert torch.equal(images, before)


# --- shape ----------------------------------------------------------------------------


def left_is_dark(n=60):
    """Return images that grow brighter from left to right."""
    return torch.linspace(0, 1, 12).expand(n, 1, 12, 12).contiguous()


def rises(seen):
    return (seen[..., -1] > seen[..., 0]).flatten(1).all(1)


def test_flips_alone_mirror_half_of_the_images():
    images = random_images(200)
    seen = views(images, replace(NONE, flip=True))
    same = (seen - images).abs().amax((1, 2, 3)) < 1e-5
    mirrored = (seen - images.flip(3)).abs().amax((1, 2, 3)) < 1e-5
    assert (same | mirrored).all()
    assert 0.35 < mirrored.float().mean() < 0.65


@pytest.mark.parametrize("name", ["grey", "documents"])
def test_without_flips_nothing_is_mirrored(name):
    shape = replace(PRESETS[name], brightness=0, contrast=0)
    assert rises(views(left_is_dark(), shape)).all()
    assert not rises(views(left_is_dark(), replace(shape, flip=True))).all()


def test_crops_show_a_part_of_the_area_at_least_as_large_as_stated():
    """The range of a slope that a crop shows is its width."""
    seen = views(left_is_dark(400), replace(NONE, crop=0.25))
    width = (seen.amax((1, 2, 3)) - seen.amin((1, 2, 3))).numpy()
    assert width.min() == pytest.approx(0.5, abs=0.05)
    assert width.max() == pytest.approx(1.0, abs=0.05)
    seen = views(left_is_dark(400), replace(NONE, crop=0.999))
    assert torch.allclose(seen, left_is_dark(400), atol=0.01)


def test_crops_reach_all_sides():
    seen = views(left_is_dark(400), replace(NONE, crop=0.25))
    assert seen.amin((1, 2, 3)).max() > 0.4
    assert seen.amax((1, 2, 3)).min() < 0.6


def test_turns_stay_within_the_angle():
    images = left_is_dark(200)
    seen = views(images, replace(NONE, rotate=30))[:, 0, 4:8, 4:8]
    slope_x = (seen[:, :, -1] - seen[:, :, 0]).mean(1)
    slope_y = (seen[:, -1] - seen[:, 0]).mean(1)
    angle = torch.rad2deg(torch.atan2(slope_y, slope_x))
    assert 25 < angle.abs().max() < 30.5
    assert angle.min() < -20
    assert angle.max() > 20


def test_stretching_keeps_one_side_whole():
    seen = views(left_is_dark(400), replace(NONE, aspect=2.0))
    width = seen.amax((1, 2, 3)) - seen.amin((1, 2, 3))
    assert 0.65 < width.min() < 0.8  # √½ of the side
    assert (width > 0.95).float().mean() > 0.4


# --- colour ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["grey", "documents"])
def test_grey_presets_keep_the_balance_of_channels(name):
    """One image in three proportions stays in these proportions, up to the shift."""
    grey = 0.2 + 0.2 * random_images(channels=1)
    preset = replace(PRESETS[name], contrast=0)
    seen = views(grey * torch.tensor([1.0, 0.5, 1.5])[:, None, None], preset)
    assert torch.allclose(seen[:, 1], 0.5 * seen[:, 0], atol=1e-4)
    assert torch.allclose(seen[:, 2], 1.5 * seen[:, 0], atol=1e-4)
    equal = views(grey.expand(-1, 3, -1, -1), PRESETS[name])
    assert torch.allclose(equal[:, 0], equal[:, 1], atol=1e-5)
    assert torch.allclose(equal[:, 0], equal[:, 2], atol=1e-5)


def test_natural_changes_the_balance_of_channels():
    seen = views(random_images(), PRESETS["natural"])
    ratio = seen.mean((2, 3))
    assert (ratio / ratio.sum(1, keepdim=True)).std(0).min() > 0.01


@pytest.mark.parametrize("level", [0.0, 0.5, 1.0])
def test_grey_stays_grey_under_saturation_and_hue(level):
    images = torch.full((50, 3, 2, 2), level)
    preset = replace(NONE, saturation=0.9, hue=0.5, grey_chance=0.2)
    assert torch.allclose(views(images, preset), images, atol=1e-5)


def test_colour_matrix_keeps_white_and_luma():
    images = random_images(100)
    preset = replace(NONE, saturation=0.9, hue=0.5, colour_chance=1)
    with Randomness(0).torch_scope("m", CPU):
        chosen = torch.ones(100, dtype=bool)
        matrix = _colour_matrix(images, preset, chosen, (YIQ, RGB))
    assert torch.allclose(matrix.sum(2), torch.ones(100, 3), atol=1e-5)
    luma = YIQ[0]
    assert torch.allclose(luma @ matrix, luma.expand(100, 3), atol=1e-4)
    assert matrix.std(0).min() > 0.01


def test_greyed_images_have_equal_channels():
    seen = views(random_images(), replace(NONE, grey_chance=1.0))
    assert torch.allclose(seen[:, 0], seen[:, 1], atol=1e-5)
    assert torch.allclose(seen[:, 0], seen[:, 2], atol=1e-5)


def test_greying_happens_as_often_as_stated():
    images = random_images(400, size=2)
    seen = views(images, replace(NONE, grey_chance=0.2))
    grey = (seen[:, 0] - seen[:, 1]).abs().amax((1, 2)) < 1e-4
    assert 0.12 < grey.float().mean() < 0.28


def test_full_saturation_and_no_turn_change_nothing():
    images = random_images()
    seen = views(images, replace(NONE, saturation=1e-9))
    assert torch.allclose(seen, images, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 3])
def test_brightness_scales_by_at_most_its_amount(channels):
    images = torch.full((400, channels, 2, 2), 0.5)
    seen = views(images, replace(NONE, brightness=0.4, colour_chance=1))
    gain = (seen / images).mean((1, 2, 3))
    assert gain.min() == pytest.approx(0.6, abs=0.02)
    assert gain.max() == pytest.approx(1.4, abs=0.02)


@pytest.mark.parametrize("channels", [1, 3])
def test_contrast_keeps_the_mean(channels):
    images = 0.4 + 0.2 * random_images(100, channels)
    seen = views(images, replace(NONE, contrast=0.4, colour_chance=1))
    assert torch.allclose(seen.mean((1, 2, 3)), images.mean((1, 2, 3)), atol=2e-3)
    gain = seen.std((1, 2, 3)) / images.std((1, 2, 3))
    assert 0.59 < gain.min() < 0.7
    assert 1.3 < gain.max() < 1.41


@pytest.mark.parametrize("channels", [1, 3])
def test_contrast_does_not_touch_an_even_grey(channels):
    """Where there is no contrast only the brightness changes."""
    images = torch.full((400, channels, 2, 2), 0.5)
    preset = replace(NONE, brightness=0.3, contrast=0.9, colour_chance=1)
    gain = (views(images, preset) / images).mean((1, 2, 3))
    assert 0.7 - 1e-4 < gain.min() < 0.72
    assert 1.28 < gain.max() < 1.3 + 1e-4


def test_colours_change_as_often_as_stated():
    images = random_images(400, size=2)
    seen = views(images, replace(NONE, brightness=0.4, colour_chance=0.25))
    changed = (seen - images).abs().amax((1, 2, 3)) > 1e-4
    assert 0.17 < changed.float().mean() < 0.33


# --- holes ----------------------------------------------------------------------------


def test_a_hole_covers_about_its_share():
    """Squares that reach over the edge cover less: on average side·(1 - side/4)."""
    images = random_images(2000, 1, 16)
    seen = views(images, replace(NONE, erase=0.5))
    share = (seen != images).float().mean((1, 2, 3))
    assert share.max() == pytest.approx(0.25, abs=0.02)
    assert share.mean().item() == pytest.approx((0.5 * (1 - 0.5 / 4)) ** 2, abs=0.02)
    assert share.min() > 0


def test_a_hole_shows_the_mean_of_each_channel():
    images = random_images(10)
    seen = views(images, replace(NONE, erase=0.5))
    mean = images.mean((2, 3), keepdim=True).expand_as(images)
    hole = seen != images
    assert torch.allclose(seen[hole], mean[hole])
    assert (hole.all(1) == hole.any(1)).all()


def test_milder_views():
    views_ = ImageAugment(PRESETS["natural"])
    mild = views_.milder(crop=0.5, erase=0.3).preset
    assert mild == replace(PRESETS["natural"], crop=0.5, erase=0.3)
    assert ImageAugment(PRESETS["documents"]).milder(crop=0.5, erase=0).preset.crop == (
        0.6
    )
    assert views_.preset == ImagePreset()
