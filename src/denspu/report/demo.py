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
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import roc_auc_score

from denspu._progress import Stages
from denspu._typing import FloatArray, IntArray
from denspu.data import load_dataset, make_pu
from denspu.methods.dens_pu import DensPU
from denspu.metrics import oracle_metrics
from denspu.report.charts import (
    draw_latent_map,
    draw_most_and_least_normal,
    draw_score_histogram,
    latent_map,
    most_and_least_normal,
    roles_of,
    score_histogram,
)
from denspu.report.demo_words import render_demo
from denspu.report.style import new_figure, parts, save, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from denspu.data import PUDataset

__all__ = ["DemoResult", "render_demo", "run_demo"]

SHARE_LABELED = 0.2

MAP_TITLE = "Map of the images"
HISTOGRAM_TITLE = "How normal is each image?"
HELD_OUT = "labelled positives, held out"


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demonstration was given, what it did, and what came out."""

    n_labeled: int
    """Labelled positives it was given."""
    n_unlabeled: int
    """Unlabelled images it was given."""
    n_test: int
    """Images kept for testing, with true classes."""
    test_positive_share: float
    """Share of positives among the test images."""
    stages: Stages
    """What each stage of the fit did."""
    metrics: Mapping[str, float]
    """Figures on the test images; see :func:`denspu.metrics.oracle_metrics`."""
    labels_right: float
    """Share of U whose label came out right. Needs true labels."""
    prior_in_unlabeled: float
    """Share of U that is truly positive. Needs true labels."""
    boundary_auc: float
    """How well normality ranks U, positives first. Needs true labels."""
    pictures: Mapping[str, Path]
    """Where each picture was saved."""
    seconds: float
    """From loading the data to the last picture."""


@dataclass(frozen=True, eq=False)
class _Facts:
    """What the pictures are drawn from."""

    Z: FloatArray
    roles: np.ndarray[tuple[int], np.dtype[np.str_]]
    held_out: FloatArray
    scores: FloatArray
    threshold: float
    images: FloatArray
    captions: list[str]


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
    pictures = _draw(_facts(model, pu, digits.y_train), Path(out))
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
        pictures=pictures,
        seconds=time.perf_counter() - start,
    )


def _facts(model: DensPU, pu: PUDataset, classes: IntArray) -> _Facts:
    Z = model.encoder_.transform(pu.X)
    rows = pu.unlabeled_index
    return _Facts(
        Z=Z,
        roles=roles_of(model, pu.y),
        held_out=model.held_out_scores_,
        scores=model.unlabeled_scores_,
        threshold=float(model.detector_.threshold_),
        images=pu.X[rows],
        captions=[f"{c}, {'odd' if c % 2 else 'even'}" for c in classes[rows]],
    )


def _draw(facts: _Facts, out: Path) -> dict[str, Path]:
    figures = {
        "overview": _overview(facts),
        "latent-map": latent_map(facts.Z, facts.roles, title=MAP_TITLE),
        "score-histogram": score_histogram(
            facts.held_out,
            facts.scores,
            facts.threshold,
            title=HISTOGRAM_TITLE,
            positive_label=HELD_OUT,
        ),
        "most-and-least-normal": most_and_least_normal(
            facts.images, facts.scores, captions=facts.captions
        ),
    }
    return {name: save(figure, out / f"{name}.png") for name, figure in figures.items()}


def _overview(facts: _Facts) -> Figure:
    """Draw the three pictures side by side, 1,600 pixels wide."""
    figure = new_figure(8, 3.5)
    with styled():
        left, middle, right = parts(figure, 1, 3)
        draw_latent_map(left, facts.Z, facts.roles, MAP_TITLE)
        draw_score_histogram(
            middle,
            facts.held_out,
            facts.scores,
            facts.threshold,
            HISTOGRAM_TITLE,
            HELD_OUT,
        )
        draw_most_and_least_normal(
            right, facts.images, facts.scores, 8, facts.captions, columns=4
        )
    return figure
