"""Pictures show what they were given, leave no traces, and are files one can open."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from denspu.exceptions import InvalidInputError, InvalidParameterError
from denspu.report import (
    lambda_distributions,
    latent_map,
    new_figure,
    roles_of,
    save,
)
from denspu.report.demo import draw_most_and_least_normal, draw_score_histogram
from denspu.report.style import ROLES
from denspu.runs.fit import project

COUNTS = {"positive": 3, "inlier": 5, "unlabeled": 7, "negative": 4}


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(0)
    roles = np.repeat(list(COUNTS), list(COUNTS.values()))
    return rng.normal(size=(len(roles), 6)), roles


# --- the map ------------------------------------------------------------------------


def test_map_draws_every_row_once_under_its_role(cloud):
    Z, roles = cloud
    points, _ = project(Z)
    axes = latent_map(Z, roles).axes[0]
    drawn = {one.get_label(): np.asarray(one.get_offsets()) for one in axes.collections}
    for name, count in COUNTS.items():
        found = drawn.pop(f"{ROLES[name].label} ({count})")
        np.testing.assert_allclose(found, points[roles == name])
    assert not drawn
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts[0] == "labelled positives (3)"


@pytest.mark.parametrize("height", [1, 100])
def test_map_fills_the_width_on_one_scale_with_its_words_inside(height):
    Z = np.array([[-10.0, 0], [10, 0], [0, height], [0, -height]])
    figure = latent_map(Z, ["positive", "inlier", "negative", "unlabeled"])
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert axes.get_aspect() == 1
    legend = axes.get_legend().get_window_extent()
    assert legend.y0 >= 0
    assert legend.x1 <= figure.bbox.x1
    assert axes.get_window_extent().width > 0.9 * figure.bbox.width


def test_projection_keeps_distances_and_shares():
    rng = np.random.default_rng(1)
    flat = rng.normal(size=(30, 2)) * (5, 1)
    points, shares = project(flat @ np.linalg.qr(rng.normal(size=(7, 2)))[0].T)
    np.testing.assert_allclose(
        np.linalg.norm(points[0] - points[1:], axis=1),
        np.linalg.norm(flat[0] - flat[1:], axis=1),
    )
    assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("Z", [np.ones((3, 4)), np.arange(3.0)[:, None]])
def test_map_of_flat_or_one_dimensional_data(Z):
    latent_map(Z, ["positive", "inlier", "negative"]).draw_without_rendering()


def test_map_refuses_roles_it_does_not_know():
    with pytest.raises(InvalidInputError, match="Did you mean 'negative'"):
        latent_map(np.eye(2), ["positive", "negativ"])
    with pytest.raises(InvalidInputError, match="one role a row"):
        latent_map(np.eye(2), ["positive"])


def test_roles_of_a_fit_and_of_refined_labels():
    model = SimpleNamespace(
        unlabeled_index_=np.array([2, 3, 4, 5]),
        unlabeled_inlier_=np.array([True, False, False, True]),
        negative_index_=np.array([5, 3]),
    )
    y = [1, 1, 0, 0, 0, 0]
    assert roles_of(model, y).tolist() == [
        *["positive"] * 2,
        *["inlier", "negative", "unlabeled", "negative"],
    ]
    with pytest.raises(InvalidInputError, match="the y that was given to fit"):
        roles_of(model, [0, 1, 1, 0, 0, 0])
    model.labels_ = np.array([1.0, 1.0, 0.9, 0.5, 0.1, 0.51])
    assert roles_of(model, y)[2:].tolist() == ["called", *["rejected"] * 2, "called"]


# --- distributions ------------------------------------------------------------------


def test_histogram_shows_shares_on_both_sides_of_its_line():
    rng = np.random.default_rng(0)
    positive = rng.normal(1, 1, 80)
    unlabeled = np.r_[rng.normal(0, 1, 999), -1e6]
    figure = new_figure()
    draw_score_histogram(figure, positive, unlabeled, 0.3)
    (axes,) = figure.axes
    (line,) = axes.lines
    assert list(line.get_xdata()) == [0.3, 0.3]
    n = int((unlabeled < 0.3).sum())
    told = [text.get_text() for text in axes.texts]
    assert told == [f"outside\n{n} of U", f"inside\n{1000 - n} of U"]
    assert axes.get_xlim()[0] > -10, "whatever one wild score"
    for patch, scores in zip(axes.patches[::2], (unlabeled, positive), strict=True):
        heights, edges, _ = patch.get_data()
        area = heights * np.diff(edges)
        assert area.sum() == pytest.approx(1, abs=0.02)
        below = edges[1:] <= 0.3 + 1e-9
        assert area[below].sum() == pytest.approx(np.mean(scores < 0.3), abs=0.02)


def test_lambda_panels_hold_their_distributions():
    rng = np.random.default_rng(0)
    narrow, wide = rng.normal(0.5, 0.02, 5_000), rng.uniform(0, 1, 5_000)
    figure = lambda_distributions({"left": {"wide": wide}, "right": {"narrow": narrow}})
    assert [axes.get_title("left") for axes in figure.axes] == ["left", "right"]
    for axes, values in zip(figure.axes, (wide, narrow), strict=True):
        heights, edges, _ = axes.patches[0].get_data()
        assert (heights * np.diff(edges)).sum() == pytest.approx(1)
        middle = (edges[:-1] + edges[1:]) / 2
        spread = np.sqrt(np.average((middle - 0.5) ** 2, weights=heights))
        assert spread == pytest.approx(values.std(), rel=0.1)
    with pytest.raises(InvalidInputError, match="at least one panel"):
        lambda_distributions({"panel": {}})


# --- thumbnails ---------------------------------------------------------------------


def test_most_and_least_normal_falls_in_reading_order():
    scores = np.random.default_rng(0).permutation(20).astype(float)
    images = np.ones((20, 2, 2)) * scores[:, None, None]
    figure = new_figure()
    draw_most_and_least_normal(figure, images, scores, [f"{s:g}" for s in scores])
    captions = [axes.get_xlabel() for axes in figure.axes]
    assert captions == [*map(str, range(19, 11, -1)), *map(str, range(7, -1, -1))]
    light = [np.asarray(a.images[0].get_array()).mean() for a in figure.axes]
    assert light == sorted(light, reverse=True)
    assert light[0] == 1


# --- files and footprints -----------------------------------------------------------


def test_files_have_the_size_asked_for_the_same_bytes_and_leave_no_traces(
    tmp_path, cloud, monkeypatch
):
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 23)
    figure = latent_map(*cloud)
    path = save(figure, tmp_path / "new" / "folder" / "map.png")
    pixels = imread(path)
    assert pixels.shape[1] == 920
    assert pixels.std() > 0
    first = save(latent_map(*cloud), tmp_path / "a.svg").read_bytes()
    second = save(latent_map(*cloud), tmp_path / "b.svg").read_bytes()
    assert first == second
    assert b"<dc:date>" not in first
    assert matplotlib.rcParams["font.size"] == 23
    assert "matplotlib.pyplot" not in sys.modules
    with pytest.raises(InvalidParameterError, match=r"\.png or \.svg"):
        save(new_figure(1, 1), tmp_path / "figure.jpg")


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
