"""Pictures show what they were given, leave no traces, and are files one can open."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from denspu.report.gallery import shorten
from denspu.report.maps import project
from matplotlib.image import imread

from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    MissingDependencyError,
)
from denspu.report import (
    gallery,
    lambda_distributions,
    latent_map,
    most_and_least_normal,
    new_figure,
    roles_of,
    save,
    score_histogram,
    styled,
)
from denspu.report.style import ROLES

COUNTS = {"positive": 3, "inlier": 5, "unlabeled": 7, "negative": 4}


@pytest.fixture
def cloud():
    rng = np.random.default_rng(0)
    roles = np.repeat(list(COUNTS), list(COUNTS.values()))
    return rng.normal(size=(len(roles), 6)), roles


def captions_of(figure):
    return [axes.get_xlabel() for axes in figure.axes]


# --- the map ------------------------------------------------------------------------


def test_map_draws_every_row_once_under_its_role(cloud):
    Z, roles = cloud
    points, _ = project(Z)
    layers = latent_map(Z, roles).axes[0].collections
    drawn = {layer.get_label(): np.asarray(layer.get_offsets()) for layer in layers}
    for name, count in COUNTS.items():
        found = drawn.pop(f"{ROLES[name].label} ({count})")
        np.testing.assert_allclose(found, points[roles == name])
    assert not drawn


def test_map_legend_begins_with_the_positives(cloud):
    legend = latent_map(*cloud).axes[0].get_legend()
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts[0] == "labelled positives (3)"
    assert len(texts) == len(COUNTS)


def test_map_shows_all_points_on_one_scale():
    Z = np.array([[-50.0, 0], [50, 0], [0, 20], [0, -20]])
    axes = latent_map(Z, ["positive", "inlier", "negative", "unlabeled"]).axes[0]
    (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    assert left < -50 < 50 < right
    assert low < -20 < 20 < high
    assert axes.get_aspect() == 1


@pytest.mark.parametrize("height", [1, 10, 100])
def test_map_fills_the_width_with_its_words_inside(height):
    Z = np.array([[-10.0, 0], [10, 0], [0, height], [0, -height]])
    figure = latent_map(Z, ["positive", "inlier", "negative", "unlabeled"])
    figure.draw_without_rendering()
    axes = figure.axes[0]
    legend = axes.get_legend().get_window_extent()
    assert legend.y0 >= 0
    assert legend.x1 <= figure.bbox.x1
    assert axes.get_window_extent().width > 0.9 * figure.bbox.width


def test_projection_keeps_distances_and_shares():
    rng = np.random.default_rng(1)
    flat = rng.normal(size=(30, 2)) * (5, 1)
    turned = flat @ np.linalg.qr(rng.normal(size=(7, 2)))[0].T
    points, shares = project(turned)
    np.testing.assert_allclose(
        np.linalg.norm(points[0] - points[1:], axis=1),
        np.linalg.norm(flat[0] - flat[1:], axis=1),
    )
    assert shares.sum() == pytest.approx(1)
    assert shares[0] > 0.9


@pytest.mark.parametrize("Z", [np.ones((3, 4)), np.arange(3.0)[:, None]])
def test_map_of_flat_or_one_dimensional_data(Z, tmp_path):
    figure = latent_map(Z, ["positive", "inlier", "negative"])
    assert save(figure, tmp_path / "map.png").stat().st_size > 0


def test_map_refuses_roles_it_does_not_know():
    with pytest.raises(InvalidInputError, match="Did you mean 'negative'"):
        latent_map(np.eye(2), ["positive", "negativ"])
    with pytest.raises(InvalidInputError, match="one role a row"):
        latent_map(np.eye(2), ["positive"])


def fitted(inlier, negative):
    return SimpleNamespace(
        unlabeled_index_=np.array([2, 3, 4, 5]),
        unlabeled_inlier_=np.array(inlier),
        negative_index_=np.array(negative),
    )


def test_roles_of_a_fit():
    model = fitted([True, False, False, True], negative=[5, 3])
    roles = roles_of(model, [1, 1, 0, 0, 0, 0])
    assert roles[:2].tolist() == ["positive", "positive"]
    assert roles[2:].tolist() == ["inlier", "negative", "unlabeled", "negative"]


def test_roles_of_refined_labels():
    model = fitted([True, False, False, True], negative=[5, 3])
    del model.negative_index_
    model.labels_ = np.array([1.0, 1.0, 0.9, 0.5, 0.1, 0.51])
    roles = roles_of(model, [1, 1, 0, 0, 0, 0])
    assert roles[:2].tolist() == ["positive", "positive"]
    assert roles[2:].tolist() == ["called", "rejected", "rejected", "called"]


def test_roles_want_the_labels_of_the_fit():
    with pytest.raises(InvalidInputError, match="the y that was given to fit"):
        roles_of(fitted([True] * 4, negative=[2]), [0, 1, 1, 0, 0, 0])


# --- distributions ------------------------------------------------------------------


def test_histogram_has_its_line_at_the_threshold():
    axes = score_histogram([2.0, 3.0], [0.0, 1.0, 2.0], 1.25).axes[0]
    (line,) = axes.lines
    assert list(line.get_xdata()) == [1.25, 1.25]


def test_histogram_counts_the_unlabelled_on_both_sides():
    axes = score_histogram([2.0, 3.0], [0.0, 0.5, 1.25, 2.0, 3.0], 1.25).axes[0]
    assert [text.get_text() for text in axes.texts] == [
        "outside\n2 of U",
        "inside\n3 of U",
    ]


def test_histogram_shows_shares_and_never_straddles_the_threshold():
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.normal(1, 1, 80), rng.normal(0, 1, 500)
    axes = score_histogram(positive, unlabeled, 0.3).axes[0]
    for patch, scores in zip(axes.patches[::2], (unlabeled, positive), strict=True):
        heights, edges, _ = patch.get_data()
        area = heights * np.diff(edges)
        assert area.sum() == pytest.approx(1, abs=0.02)
        below = edges[1:] <= 0.3 + 1e-9
        assert area[below].sum() == pytest.approx(np.mean(scores < 0.3), abs=0.02)


def test_histogram_is_not_squeezed_by_one_wild_score():
    rng = np.random.default_rng(0)
    unlabeled = np.r_[rng.normal(size=999), -1e6]
    axes = score_histogram(rng.normal(size=100), unlabeled, 0.0).axes[0]
    assert axes.get_xlim()[0] > -10


def test_histogram_of_equal_scores_can_be_drawn(tmp_path):
    path = save(score_histogram([1.0], [1.0, 1.0], 1.0), tmp_path / "h.png")
    assert imread(path).std() > 0


@pytest.mark.parametrize("bad", [[], [np.nan], [[1.0, 2.0]]])
def test_histogram_refuses_what_is_not_a_list_of_numbers(bad):
    with pytest.raises(InvalidInputError, match="scores_positive"):
        score_histogram(bad, [1.0], 0.0)


def test_lambda_panels_hold_their_distributions():
    rng = np.random.default_rng(0)
    narrow, wide = rng.normal(0.5, 0.02, 5_000), rng.uniform(0, 1, 5_000)
    figure = lambda_distributions({"left": {"wide": wide}, "right": {"narrow": narrow}})
    assert [axes.get_title("left") for axes in figure.axes] == ["left", "right"]
    for axes, values in zip(figure.axes, (wide, narrow), strict=True):
        heights, edges, _ = axes.patches[0].get_data()
        assert (heights * np.diff(edges)).sum() == pytest.approx(1)
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] > heights.max()
        middle = (edges[:-1] + edges[1:]) / 2
        spread = np.sqrt(np.average((middle - 0.5) ** 2, weights=heights))
        assert spread == pytest.approx(values.std(), rel=0.1)


@pytest.mark.parametrize("empty", [{}, {"panel": {}}])
def test_lambda_needs_samples(empty):
    with pytest.raises(InvalidInputError, match="at least one panel"):
        lambda_distributions(empty)


# --- thumbnails ---------------------------------------------------------------------


def test_gallery_shows_images_in_order_on_one_scale():
    images = np.stack([np.full((3, 4), v, dtype=np.uint8) for v in (0, 51, 255)])
    figure = gallery(images, "Three", columns=2)
    shown = [axes.images[0] for axes in figure.axes[:3]]
    assert [np.asarray(i.get_array()).mean() for i in shown] == pytest.approx(
        [0, 0.2, 1]
    )
    assert all(image.get_clim() == (0, 1) for image in shown)
    assert not figure.axes[3].images


def test_gallery_scales_floats_of_any_range_together():
    images = np.array([[[-4.0, 0]], [[12, 4]]])
    pixels = [np.asarray(a.images[0].get_array()) for a in gallery(images, "t").axes]
    np.testing.assert_allclose(pixels, [[[0, 0.25]], [[1, 0.5]]])


@pytest.mark.parametrize(
    ("channels", "shape"), [(1, (5, 5)), (2, (5, 5)), (3, (5, 5, 3))]
)
def test_gallery_takes_grey_and_colour(channels, shape):
    images = np.zeros((2, 5, 5, channels), dtype=np.uint8)
    assert gallery(images, "t").axes[0].images[0].get_array().shape == shape


def test_captions_are_shown_as_they_are():
    captions = ["$x^2$", "a_b\\frac", 7]
    figure = gallery(np.zeros((3, 4, 4)), "50 $ and 60 $", captions)
    assert captions_of(figure) == ["$x^2$", "a_b\\frac", "7"]
    labels = [axes.xaxis.label for axes in figure.axes]
    texts = [*labels, figure._suptitle]
    assert not any(text.get_parse_math() for text in texts)


def test_long_captions_are_cut_in_the_middle():
    assert shorten("scan-2023-11-04-left.png") == "scan-20…ft.png"
    assert shorten("two\nlines") == "two lines"
    assert shorten("exactly14chars") == "exactly14chars"


def test_gallery_wants_a_caption_for_every_image():
    with pytest.raises(InvalidInputError, match="3 images and 2 captions"):
        gallery(np.zeros((3, 4, 4)), "t", ["a", "b"])
    with pytest.raises(InvalidParameterError, match="columns=0"):
        gallery(np.zeros((3, 4, 4)), "t", columns=0)


def test_most_and_least_normal_falls_in_reading_order():
    scores = np.array([0.5, 3.0, -2.0, 1.0, 0.0, 2.0, -1.0])
    images = np.ones((7, 2, 2)) * scores[:, None, None]
    figure = most_and_least_normal(images, scores, 3)
    assert captions_of(figure) == ["3.00", "2.00", "1.00", "0.00", "-1.00", "-2.00"]
    light = [np.asarray(a.images[0].get_array()).mean() for a in figure.axes]
    assert light == sorted(light, reverse=True)
    assert light[0] == 1
    assert light[-1] == 0


def test_most_and_least_normal_takes_at_most_half():
    figure = most_and_least_normal(np.zeros((5, 2, 2)), np.arange(5.0), 8)
    assert captions_of(figure) == ["4.00", "3.00", "1.00", "0.00"]


def test_most_and_least_normal_moves_captions_with_their_images():
    figure = most_and_least_normal(
        np.zeros((4, 2, 2)), [1.0, 4.0, 3.0, 2.0], 2, captions=list("abcd")
    )
    assert captions_of(figure) == ["b", "c", "d", "a"]


def test_most_and_least_normal_refuses_bad_scores():
    with pytest.raises(InvalidInputError, match="one number an image"):
        most_and_least_normal(np.zeros((4, 2, 2)), [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="without NaN"):
        most_and_least_normal(np.zeros((2, 2, 2)), [1.0, np.nan])
    with pytest.raises(InvalidParameterError, match="n=0"):
        most_and_least_normal(np.zeros((2, 2, 2)), [1.0, 2.0], 0)


# --- files and footprints -----------------------------------------------------------


def test_png_has_the_size_asked_for_and_is_not_blank(tmp_path):
    figure = new_figure(8, 2)
    with styled():
        figure.subplots().plot([0, 1], [0, 1])
    path = save(figure, tmp_path / "new" / "folder" / "line.png")
    pixels = imread(path)
    assert pixels.shape[:2] == (400, 1600)
    assert pixels.std() > 0


def test_svg_is_the_same_bytes_every_time(tmp_path, cloud):
    first = save(latent_map(*cloud), tmp_path / "a.svg").read_bytes()
    second = save(latent_map(*cloud), tmp_path / "b.svg").read_bytes()
    assert first == second
    assert first.startswith(b"<?xml")
    assert b"<dc:date>" not in first


def test_a_crowd_does_not_swell_the_svg(tmp_path):
    Z = np.random.default_rng(0).normal(size=(20_000, 2))
    path = save(latent_map(Z, ["inlier"] * len(Z)), tmp_path / "crowd.svg")
    assert path.stat().st_size < 500_000


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_description_goes_into_the_file(tmp_path, kind):
    plain = save(new_figure(1, 1), tmp_path / f"plain.{kind}").read_bytes()
    told = save(new_figure(1, 1), tmp_path / f"told.{kind}", "made from 12ab")
    assert b"made from 12ab" in told.read_bytes()
    assert b"made from" not in plain


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"\.png or \.svg"):
        save(new_figure(1, 1), tmp_path / "figure.jpg")


def test_matplotlib_settings_are_left_as_they_were(tmp_path, cloud, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 23)
    save(latent_map(*cloud), tmp_path / "map.png")
    assert matplotlib.rcParams["font.size"] == 23


def test_pyplot_is_never_imported():
    code = (
        "import sys, denspu.report as r; "
        "r.score_histogram([1.0], [0.0], 0.5); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_matplotlib_the_line_to_type_is_given(monkeypatch):
    for name in list(sys.modules):
        if name == "denspu.report" or name.startswith("denspu.report."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError) as caught:
        importlib.import_module("denspu.report")
    assert "pip install 'denspu[report]'" in str(caught.value)
