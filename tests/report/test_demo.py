"""The demonstration learns, tells it in words, and draws it."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console

from denspu import load_dataset
from denspu._progress import Stage
from denspu.report import demo
from denspu.report.demo_words import METRICS, words

NAMES = ["overview", "latent-map", "score-histogram", "most-and-least-normal"]


@pytest.fixture(scope="module")
def drawn():
    """What the pictures of the run below were drawn from."""
    return []


@pytest.fixture(scope="module")
def result(tmp_path_factory, drawn):
    draw = demo._draw

    def watch(facts, out):
        drawn.append(facts)
        return draw(facts, out)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "_draw", watch)
        return demo.run_demo(tmp_path_factory.mktemp("demo") / "new", random_state=0)


@pytest.fixture(scope="module")
def printed(result):
    console = Console(file=io.StringIO(), width=100)
    demo.render_demo(result, console)
    return " ".join(console.file.getvalue().split())


def test_it_was_given_a_fifth_of_the_even_digits(result):
    assert result.n_labeled == 125
    assert result.n_unlabeled == 1257 - 125
    assert result.n_test == 540
    assert result.test_positive_share == pytest.approx(267 / 540)


def test_it_learns_without_a_single_negative(result):
    assert result.metrics["accuracy"] > 0.85
    assert result.labels_right > 0.9
    assert result.boundary_auc > 0.8


def test_the_true_share_is_that_of_even_digits_left(result):
    n_odd = np.sum(load_dataset("digits").y_train % 2)
    assert result.prior_in_unlabeled == pytest.approx(1 - n_odd / 1132)


def test_the_labels_are_those_of_unlabelled_images(result):
    """The 125 that were given are right by definition, and do not count."""
    right = result.labels_right * result.n_unlabeled
    assert right == pytest.approx(round(right))


def test_every_picture_is_there_and_not_blank(result):
    assert list(result.pictures) == NAMES
    for name, path in result.pictures.items():
        assert path.name == f"{name}.png"
        assert imread(path)[..., :3].std() > 0.05


def test_the_overview_fits_a_readme(result):
    path = result.pictures["overview"]
    height, width = imread(path).shape[:2]
    assert width == 1600
    assert 500 < height < 1000
    assert path.stat().st_size < 400_000


def test_the_histogram_shows_positives_that_the_boundary_has_not_seen(result, drawn):
    (facts,) = drawn
    assert len(facts.held_out) == result.n_labeled
    assert np.quantile(facts.held_out, 0.1) == pytest.approx(facts.threshold)


def test_captions_tell_the_true_digit(drawn):
    (facts,) = drawn
    assert len(facts.captions) == len(facts.images)
    assert set(facts.captions) == {
        f"{d}, {'odd' if d % 2 else 'even'}" for d in range(10)
    }
    surest = np.argsort(facts.scores)
    assert "even" in facts.captions[surest[-1]]
    assert "odd" in facts.captions[surest[0]]


def test_the_same_seed_gives_the_same_figures(result, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_facts", lambda *args: None)
    monkeypatch.setattr(demo, "_draw", lambda *args: {})
    again = demo.run_demo(tmp_path, random_state=0)
    assert again.metrics == result.metrics
    assert again.boundary_auc == result.boundary_auc
    assert again.labels_right == result.labels_right


# --- in words -----------------------------------------------------------------------


def test_the_table_tells_of_every_stage(result, printed):
    for stage in result.stages:
        assert f" {stage.name} {stage.seconds:.2f} {words(stage)}" in printed


def test_the_words_hold_the_stage_s_own_numbers(result):
    boundary = result.stages["boundary"]
    assert f"{boundary.facts['predicted_inlier']:,} unlabelled" in words(boundary)
    assert f"{boundary.facts['leftovers']:,} outside" in words(boundary)
    label = result.stages["label"]
    assert f"says {label.facts['prior_in_unlabeled']:.0%} of the" in words(label)
    refine = result.stages["refine"]
    assert f"{refine.facts['rounds']} times" in words(refine)
    assert f"{refine.facts['called_positive']:.0%} of the unlabelled" in words(refine)


def test_the_words_of_the_papers_ending():
    select = Stage("select", 0.1, {"negatives": 1200})
    assert words(select).startswith("The 1,200 least normal")
    facts = {"classifier": "SVC", "positives": 125, "negatives": 1200}
    assert "125 positives from the 1,200" in words(Stage("classify", 0.1, facts))


def test_a_stage_without_a_sentence_shows_its_facts():
    assert words(Stage("rest", 1.0, {"rounds": 3})) == "rounds 3"


def test_it_says_what_was_given(printed):
    assert "125 images known to be even and 1,132 without a label" in printed


def test_every_metric_is_printed_with_its_value(result, printed):
    assert set(METRICS) == set(result.metrics)
    for key, (name, _) in METRICS.items():
        assert f"{name} {result.metrics[key]:.3f}" in printed
    assert "positives 0.494 for scale: always giving one answer is right 51%" in printed


def test_what_needs_true_labels_says_so(result, printed):
    warning = printed.index("needs true labels, shown because this is a demonstration")
    right = printed.index(f"{result.labels_right:.1%} of the unlabelled images got")
    auc = printed.index(f"{result.boundary_auc:.1%} of the time")
    assert warning < right < auc


def test_paths_are_printed_whole(result):
    long = replace(
        result,
        pictures={
            n: p.parent / ("x" * 90) / p.name for n, p in result.pictures.items()
        },
    )
    console = Console(file=io.StringIO(), width=60)
    demo.render_demo(long, console)
    for path in long.pictures.values():
        assert str(path) in console.file.getvalue()
