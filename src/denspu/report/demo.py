"""The demonstration: Dens-PU on handwritten digits, in seconds, with a picture.

A tenth of the digits are known to be even; which of the others are? Figures that need
true labels are kept apart from those that do not, and are there only because this is a
demonstration.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score

from denspu._progress import SPACE, Stages
from denspu._typing import FloatArray
from denspu.data import load_dataset, make_pu
from denspu.methods.dens_pu import DensPU
from denspu.metrics import oracle_metrics
from denspu.report.charts import draw_density, draw_latent_map, roles_of
from denspu.report.parts import bin_edges
from denspu.report.style import (
    BLUE,
    GREY,
    INK,
    bare,
    legend_below,
    new_figure,
    save,
    styled,
)
from denspu.report.words import figure_words, stage_sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

SHARE_LABELED = 0.2
SHOWN = 8
"""Images at either end of the ranking, in two rows."""


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demonstration was given, what it did, and what came out."""

    n_labeled: int
    n_unlabeled: int
    n_test: int
    test_positive_share: float
    stages: Stages
    metrics: Mapping[str, float]
    """Figures on the test images; see :func:`denspu.metrics.oracle_metrics`."""
    labels_right: float
    """Share of U whose label came out right; like the next two it needs true labels."""
    prior_in_unlabeled: float
    boundary_auc: float
    """How well normality ranks U, positives first."""
    picture: Path
    seconds: float
    """From loading the data to the picture."""


def run_demo(out: Path, random_state: int = 0) -> DemoResult:
    """Fit Dens-PU on digits (even = positive, 20 % of those labelled) and draw it.

    Parameters
    ----------
    out : Path
        Folder for the picture; made if it is not there.
    random_state : int, default=0
        Seed of the labels' choice and of the fit.
    """
    start = time.perf_counter()
    digits = load_dataset("digits")
    pu = make_pu(
        digits.X_train,
        digits.y_train,
        positive=digits.positive,
        n_labeled=SHARE_LABELED,
        random_state=random_state,
    )
    model = DensPU(random_state=random_state).fit(pu.X, pu.y)
    classes = digits.y_train[pu.unlabeled_index]
    captions = [f"{c}, {'odd' if c % 2 else 'even'}" for c in classes]
    is_positive = np.isin(digits.y_test, digits.positive)
    right = (model.labels_ > 0.5) == pu.oracle.labels
    hidden = pu.oracle.unlabeled_labels
    return DemoResult(
        n_labeled=pu.n_labeled,
        n_unlabeled=len(pu.unlabeled_index),
        n_test=len(is_positive),
        test_positive_share=float(is_positive.mean()),
        stages=model.stages_,
        metrics=oracle_metrics(is_positive, model.decision_function(digits.X_test)),
        labels_right=float(np.mean(right, where=pu.y == 0)),
        prior_in_unlabeled=pu.oracle.prior_in_unlabeled,
        boundary_auc=float(roc_auc_score(hidden, model.unlabeled_scores_)),
        picture=save(draw_demo(model, pu.X, pu.y, captions), out / "overview.png"),
        seconds=time.perf_counter() - start,
    )


# --- the picture --------------------------------------------------------------------


def draw_demo(model: DensPU, X: Any, y: Any, captions: list[str]) -> Figure:
    """Draw map, scores and images side by side, 1,600 pixels wide."""
    Z, scores = model.encoder_.transform(X), model.unlabeled_scores_
    cut, images = float(model.detector_.threshold_), X[model.unlabeled_index_]
    overview = new_figure(8, 3.5)
    with styled():
        left, middle, right = overview.subfigures(1, 3, squeeze=False)[0]
        draw_latent_map(left, Z, roles_of(model, y), "Map of the images")
        draw_score_histogram(middle, model.held_out_scores_, scores, cut)
        draw_most_and_least_normal(right, images, scores, captions)
    return overview


def draw_score_histogram(
    figure: FigureBase, positive: FloatArray, unlabeled: FloatArray, threshold: float
) -> None:
    """Draw how normal held-out positives and images of U are, and the threshold."""
    axes: Axes = figure.subplots()
    axes.set_title("How normal is each image?")
    edges = bin_edges([positive, unlabeled], threshold)
    held = f"labelled positives, held out ({len(positive):,})"
    draw_density(axes, unlabeled, edges, GREY, f"unlabelled ({len(unlabeled):,})")
    draw_density(axes, positive, edges, BLUE, held)
    axes.axvline(threshold, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.set(xlim=(edges[0], edges[-1]), yticks=[])
    axes.set_xlabel("normality (higher = more like positives)")
    axes.spines["left"].set_visible(False)
    axes.margins(y=0.3)
    outside = int((unlabeled < threshold).sum())
    for side, shift, text in (
        ("right", -4, f"outside\n{outside:,} of U"),
        ("left", 4, f"inside\n{len(unlabeled) - outside:,} of U"),
    ):
        axes.annotate(
            text,
            (threshold, 1),
            xytext=(shift, -1),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha=side,
            va="top",
            color=INK,
            fontsize=7.5,
        )
    legend_below(axes, 36, handlelength=1.2)


def draw_most_and_least_normal(
    figure: FigureBase, images: Any, scores: FloatArray, captions: Sequence[str]
) -> None:
    """Draw the 8 most normal images above the 8 least normal ones.

    In reading order normality falls: the first is the most normal of all, the last the
    least.
    """
    pixels = images / images.max()
    order = np.argsort(-scores, kind="stable")
    halves: Any = figure.subfigures(2, 1)
    titles = ("Most normal", "Least normal")
    for half, title, rows in zip(
        halves, titles, (order[:SHOWN], order[-SHOWN:]), strict=True
    ):
        half.suptitle(title, x=0.01, ha="left")
        grid = half.subplots(2, SHOWN // 2).ravel()
        for axes, row in zip(grid, rows, strict=True):
            bare(axes)
            # tiny images are easier to read smoothed
            axes.imshow(pixels[row], vmin=0, vmax=1, interpolation="bicubic")
            axes.set_xlabel(captions[row], labelpad=2, fontsize=7)


# --- in the terminal ----------------------------------------------------------------


def lines_of(result: DemoResult) -> Iterator[str]:
    """Yield what was given, what each stage did, and what came out."""
    yield (
        f"Which digits are even? Given: {result.n_labeled:,} images known to be even "
        f"and {result.n_unlabeled:,} without a label. No example of an odd digit."
    )
    yield "\nWhat each stage did, in seconds"
    for stage in result.stages:
        told = stage_sentence(stage, "image").replace(SPACE, " ")
        start = f"  {stage.name:<9} {stage.seconds:5.2f}  "
        yield from wrap(
            told, 88, initial_indent=start, subsequent_indent=" " * len(start)
        )
    yield f"\nWhat came out, on {result.n_test:,} new images"
    for key, value in result.metrics.items():
        name, meaning = figure_words(key)
        yield f"  {name:<31} {value:.3f}  {meaning}"
    share = result.test_positive_share
    yield f"For scale: always giving one answer is right {max(share, 1 - share):.0%}."
    why = "needs true labels, shown because this is a demonstration"
    yield f"\nBehind the scenes ({why})"
    yield (
        f"  {result.labels_right:.1%} of the unlabelled images got the right label; "
        f"{result.prior_in_unlabeled:.0%} of them are even."
    )
    yield (
        "  The boundary ranks an unlabelled even digit above an odd one "
        f"{result.boundary_auc:.1%} of the time (AUC); chance is 50%."
    )
    yield f"\nThe picture is {result.picture}\nDone in {result.seconds:.1f} s."
