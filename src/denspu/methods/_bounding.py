"""Steps 3 and 4 as the walk takes them: the boundary, its threshold, its account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from denspu._progress import Stages
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray
from denspu._validation import PUInput
from denspu.methods._boundary import (
    HeldOutScores,
    densified,
    fit_boundary,
    held_out_scores,
    held_out_threshold,
    judge,
    scores_of_positives,
    scores_without_own_group,
)


@dataclass(frozen=True, eq=False)
class Bounded:
    """The fitted detector, what it says of U, and how it was checked."""

    detector: Any
    scores: FloatArray
    """Normality of each row of U."""
    inlier: BoolArray
    """Whether it lies inside the boundary."""
    checks: list[HeldOutScores]


def bound(
    Z: FloatArray,
    data: PUInput,
    densifier: Any,
    detector: Any,
    settings: dict[str, Any],
    randomness: Randomness,
    stages: Stages,
) -> Bounded:
    """Densify P, draw the boundary around it and judge it on positives held out."""
    positive, unlabeled = Z[data.positive], Z[data.unlabeled]
    contamination = settings["contamination"]
    with stages.stage("densify") as facts:
        dense = densified(positive, densifier, randomness)
        facts["densifier"] = type(densifier).__name__
        facts["encodings"] = len(positive)
        facts["embeddings"] = len(dense)
    with stages.stage("boundary") as facts:
        boundary = fit_boundary(
            positive,
            dense,
            detector,
            contamination,
            randomness,
            unlabeled=unlabeled,
        )
        checks = held_out_scores(
            positive,
            unlabeled,
            densifier,
            detector,
            contamination,
            None if data.groups is None else data.groups[data.positive],
            settings["checks"],
            randomness,
        )
        fitted = boundary.detector
        facts["detector"] = type(fitted).__name__
        threshold = None
        if contamination == "heldout" and checks:
            threshold = fitted.threshold_ = held_out_threshold(checks)
        scores = fitted.score_samples(unlabeled)
        inlier: BoolArray = scores >= fitted.threshold_
        facts["threshold"] = float(fitted.threshold_)
        facts["threshold_from"] = _threshold_source(contamination, threshold)
        if facts["threshold_from"] == "contamination":
            facts["contamination"] = boundary.contamination
        facts["predicted_inlier"] = int(inlier.sum())
        facts["leftovers"] = int((~inlier).sum())
        if checks:
            facts.update(judge(checks, boundary, threshold))
    return Bounded(fitted, scores, inlier, checks)


def _threshold_source(contamination: str | float, threshold: float | None) -> str:
    if threshold is not None:
        return "held-out positives"
    if contamination == "heldout":
        return "the detector itself: no positives were held out"
    return "contamination"


def fair_scores(
    Z: FloatArray,
    data: PUInput,
    densifier: Any,
    bounded: Bounded,
    randomness: Randomness,
) -> tuple[FloatArray, FloatArray]:
    """Return scores of P and of U that no row, and no group, vouched for itself."""
    if data.groups is not None:
        scores = scores_without_own_group(
            Z,
            data.positive,
            data.groups,
            densifier,
            bounded.detector,
            "heldout",
            randomness,
        )
        if scores is not None:
            return scores[data.positive], scores[data.unlabeled]
    positive = scores_of_positives(Z[data.positive], bounded.detector, bounded.checks)
    return positive, bounded.scores
