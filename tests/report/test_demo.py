"""The demonstration learns, tells it in words, and draws it."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.image import imread

from denspu import load_dataset
from denspu._progress import SPACE
from denspu.report import demo
from denspu.report.words import figure_words, stage_sentence


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return demo.run_demo(tmp_path_factory.mktemp("demo") / "new", random_state=0)


@pytest.fixture(scope="module")
def printed(result):
    return " ".join(" ".join(demo.lines_of(result)).split())


def test_it_learns_without_a_single_negative(result):
    assert (result.n_labeled, result.n_unlabeled, result.n_test) == (125, 1132, 540)
    n_odd = np.sum(load_dataset("digits").y_train % 2)
    assert result.prior_in_unlabeled == pytest.approx(1 - n_odd / 1132)
    assert result.metrics["accuracy"] > 0.85
    assert result.labels_right > 0.9
    assert result.boundary_auc > 0.8
    right = result.labels_right * result.n_unlabeled
    assert right == pytest.approx(round(right)), "the 125 given do not count"


def test_the_picture_is_there_and_not_blank(result):
    pixels = imread(result.picture)
    assert pixels[..., :3].std() > 0.05
    height, width = pixels.shape[:2]
    assert width == 1600
    assert 500 < height < 1000
    assert result.picture.stat().st_size < 400_000, "it is for a README"


def test_it_says_what_was_given_what_happened_and_what_came_out(result, printed):
    assert "125 images known to be even and 1,132 without a label" in printed
    for stage in result.stages:
        told = stage_sentence(stage, "image").replace(SPACE, " ")
        assert f" {stage.name} {stage.seconds:.2f} {told}" in printed
    assert len(result.metrics) == 7
    for key, value in result.metrics.items():
        assert f"{figure_words(key)[0]} {value:.3f}" in printed
    assert "always giving one answer is right 51%" in printed
    warning = printed.index("needs true labels, shown because this is a demonstration")
    assert warning < printed.index(f"{result.labels_right:.1%} of the unlabelled")
    assert warning < printed.index(f"{result.boundary_auc:.1%} of the time")
    assert str(result.picture) in printed
