"""The demonstration: Dens-PU on handwritten digits, in seconds, with pictures.

A tenth of the digits are known to be even; which of the others are? Figures that need
true labels are kept apart from those that do not, and are there only because this is a
demonstration.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from sklearn.metrics import roc_auc_score

from denspu._progress import SPACE, Stages
from denspu.data import load_dataset, make_pu
from denspu.methods.dens_pu import DensPU
from denspu.metrics import oracle_metrics
from denspu.report.charts import (
    draw_latent_map,
    draw_most_and_least_normal,
    draw_score_histogram,
    latent_map,
    roles_of,
)
from denspu.report.style import new_figure, save, styled
from denspu.report.words import figure_words, stage_sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

SHARE_LABELED = 0.2


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
    pictures: Mapping[str, Path]
    """Where each was saved."""
    seconds: float
    """From loading the data to the last picture."""


def run_demo(out: Path, random_state: int = 0) -> DemoResult:
    """Fit Dens-PU on digits (even = positive, 20 % of those labelled) and draw it.

    Parameters
    ----------
    out : Path
        Folder for the pictures; made if it is not there.
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
    figures = draw_demo(model, pu.X, pu.y, captions)
    is_positive = np.isin(digits.y_test, digits.positive)
    return DemoResult(
        n_labeled=pu.n_labeled,
        n_unlabeled=len(pu.unlabeled_index),
        n_test=len(is_positive),
        test_positive_share=float(is_positive.mean()),
        stages=model.stages_,
        metrics=oracle_metrics(is_positive, model.decision_function(digits.X_test)),
        labels_right=float(
            np.mean((model.labels_ > 0.5) == pu.oracle.labels, where=pu.y == 0)
        ),
        prior_in_unlabeled=pu.oracle.prior_in_unlabeled,
        boundary_auc=float(
            roc_auc_score(pu.oracle.unlabeled_labels, model.unlabeled_scores_)
        ),
        pictures={
            name: save(figure, Path(out) / f"{name}.png")
            for name, figure in figures.items()
        },
        seconds=time.perf_counter() - start,
    )


def draw_demo(model: DensPU, X: Any, y: Any, captions: list[str]) -> dict[str, Figure]:
    """Draw each picture by itself, and all side by side, 1,600 pixels wide."""
    cloud = model.encoder_.transform(X), roles_of(model, y)
    of_u = model.unlabeled_scores_
    scores = model.held_out_scores_, of_u, float(model.detector_.threshold_)
    images = X[model.unlabeled_index_], of_u, captions
    title = "Map of the images"
    overview, alone = new_figure(8, 3.5), new_figure(4.6, 3.4)
    rows = new_figure(6.8, 2.3)
    with styled():
        left, middle, right = overview.subfigures(1, 3, squeeze=False)[0]
        draw_latent_map(left, *cloud, title)
        for figure in (middle, alone):
            draw_score_histogram(figure, *scores)
        draw_most_and_least_normal(right, *images, 4)
        draw_most_and_least_normal(rows, *images, 8)
    return {
        "overview": overview,
        "latent-map": latent_map(*cloud, title=title),
        "score-histogram": alone,
        "most-and-least-normal": rows,
    }


# --- in the terminal ----------------------------------------------------------------


def render_demo(result: DemoResult, console: Console) -> None:
    """Print what was given, what each stage did, and what came out."""
    console.print(
        "[bold]Which digits are even?[/bold] "
        f"Given: {result.n_labeled:,} images known to be even and "
        f"{result.n_unlabeled:,} without a label. No example of an odd digit.\n"
    )
    look: dict[str, Any] = {"box": box.SIMPLE_HEAD, "pad_edge": False}
    look |= {"title_justify": "left", "title_style": "bold"}
    stages = Table(title="What each stage did", **look)
    stages.add_column("stage", no_wrap=True)
    stages.add_column("seconds", justify="right", no_wrap=True)
    stages.add_column("what happened")
    for stage in result.stages:
        told = stage_sentence(stage, "image").replace(SPACE, " ")
        stages.add_row(stage.name, f"{stage.seconds:.2f}", Text(told))
    title = f"What came out, on {result.n_test:,} new images"
    figures = Table(title=title, **look)
    figures.add_column("figure", no_wrap=True)
    figures.add_column("value", justify="right", no_wrap=True)
    figures.add_column("in words")
    for key, value in result.metrics.items():
        name, meaning = figure_words(key)
        figures.add_row(name, f"{value:.3f}", meaning)
    figures.add_section()
    share = result.test_positive_share
    scale = f"for scale: always giving one answer is right {max(share, 1 - share):.0%}"
    figures.add_row("positives", f"{share:.3f}", scale, style="dim")
    console.print(stages, "", figures, "", sep="\n")
    console.print(
        "[bold]Behind the scenes[/bold] "
        "(needs true labels, shown because this is a demonstration)"
    )
    for line in (
        f"{result.labels_right:.1%} of the unlabelled images got the right label; "
        f"{result.prior_in_unlabeled:.0%} of them are even.",
        "The boundary ranks an unlabelled even digit above an odd one "
        f"{result.boundary_auc:.1%} of the time (AUC); chance is 50%.",
    ):
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    console.print("\n[bold]Pictures[/bold]")
    for path in result.pictures.values():
        console.print(Text(f"  {path}"), soft_wrap=True)
    console.print(f"Done in {result.seconds:.1f} s.")
