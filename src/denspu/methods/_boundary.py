"""Steps 3 and 4 together: densify, fit the detector, and check it on held-out rows.

Eq. 4 weighs two errors of the boundary between embeddings Z_ν (inliers) and encodings
Z_L (the expected outliers): L = C·FN + (1-C)·FP, with FN the share of encodings called
inlier and FP the share of embeddings called outlier. It is reported from encodings that
neither the detector nor the densifier has seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, KFold

from denspu._folds import make_folds
from denspu._random import Randomness
from denspu._registry import prepare_part
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.base import Detector
from denspu.exceptions import WeakBoundaryWarning

UNDENSIFIED_CONTAMINATION = 0.005
"""The paper's C, rounded, where nothing was densified and |Z_ν| is zero."""

HELD_OUT_QUANTILE = 0.1
"""``contamination="heldout"`` leaves this share of held-out positives outside."""

FOLDS = 5
CHECK_SAMPLE = 10_000
CHANCE_AUC = (0.55, 0.7)
"""Below the first an AUC is chance, above the second it is not, however few rows."""


@dataclass(frozen=True, eq=False)
class Boundary:
    """A fitted detector and what it was fitted on."""

    detector: Any
    contamination: float
    """C of section 3.4: |Z_L| / |Z_ν|, or the share asked for."""
    n_dense: int
    """|Z_ν|."""


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Scores of rows that a fold's boundary has not seen, over its threshold."""

    held: IntArray
    """Positions among P of the rows held out."""
    positive: FloatArray
    dense: FloatArray
    unlabeled: FloatArray
    threshold: float


def densified(
    Z: FloatArray, densifier: Any, randomness: Randomness, name: str = "boundary"
) -> FloatArray:
    """Return the new embeddings Z_ν."""
    return densifier.densify(Z, randomness.numpy(f"{name}/densify"))


def fit_boundary(
    Z: FloatArray,
    dense: FloatArray,
    detector: Any,
    contamination: str | float,
    randomness: Randomness,
    name: str = "boundary",
    unlabeled: FloatArray | None = None,
) -> Boundary:
    """Fit a clone of ``detector`` on Z_ν ∪ Z_L.

    A detector that compares positives with everything gets ``unlabeled`` rows too.
    """
    share = _contamination(contamination, len(Z), len(dense))
    fitted = prepare_part(detector, randomness, f"{name}/detector")
    if getattr(fitted, "contamination", None) == "auto" and contamination != "heldout":
        fitted.set_params(contamination=share)
    share = getattr(fitted, "contamination", share)
    share = UNDENSIFIED_CONTAMINATION if isinstance(share, str) else float(share)
    rows = np.concatenate([dense, Z]) if len(dense) else Z
    if getattr(fitted, "needs_unlabeled", False) and unlabeled is not None:
        is_positive = np.arange(len(rows) + len(unlabeled)) < len(rows)
        fitted.fit(np.concatenate([rows, unlabeled]), is_positive.astype(np.int64))
    else:
        fitted.fit(rows)
    if not isinstance(fitted, Detector):  # scikit-learn's own, or the user's
        fitted.threshold_ = float(np.quantile(fitted.score_samples(rows), share))
    return Boundary(fitted, share, len(dense))


def draw_boundary(
    Z: FloatArray,
    densifier: Any,
    detector: Any,
    contamination: str | float,
    randomness: Randomness,
    name: str = "boundary",
    unlabeled: FloatArray | None = None,
) -> Boundary:
    """Densify Z_L and fit a clone of ``detector`` on Z_ν ∪ Z_L."""
    dense = densified(Z, densifier, randomness, name)
    return fit_boundary(Z, dense, detector, contamination, randomness, name, unlabeled)


def _contamination(asked: str | float, n_positive: int, n_dense: int) -> float:
    if not isinstance(asked, str):
        return float(asked)
    if n_dense == 0:
        return UNDENSIFIED_CONTAMINATION
    return min(0.5, n_positive / n_dense)


def held_out_scores(
    Z: FloatArray,
    Z_unlabeled: FloatArray,
    densifier: Any,
    detector: Any,
    contamination: str | float,
    groups: IntArray | None,
    checks: int,
    randomness: Randomness,
) -> list[HeldOutScores]:
    """Draw the boundary without one fifth of the positives, ``checks`` times."""
    sample = _sample(Z_unlabeled, randomness.numpy("check/unlabeled"))
    found = []
    for i, (keep, held) in enumerate(positive_folds(len(Z), groups, randomness)):
        if i == checks:
            break
        if len(keep) < 2:
            continue
        name = f"check/{i}"
        fold = draw_boundary(
            Z[keep], densifier, detector, contamination, randomness, name, Z_unlabeled
        )
        dense = Z[held][:0]
        if len(held) > 1:
            dense = densifier.densify(Z[held], randomness.numpy(f"{name}/held"))
        dense = _sample(dense, randomness.numpy(f"{name}/sample"))
        score = fold.detector.score_samples
        found.append(
            HeldOutScores(
                held=held,
                positive=score(Z[held]),
                dense=score(dense) if len(dense) else np.empty(0),
                unlabeled=score(sample),
                threshold=fold.detector.threshold_,
            )
        )
    return found


def scores_without_own_group(
    Z: FloatArray,
    positive: BoolArray,
    groups: IntArray,
    densifier: Any,
    detector: Any,
    contamination: str | float,
    randomness: Randomness,
) -> FloatArray | None:
    """Return the normality of all rows by boundaries that know nothing of their group.

    Rows of a group resemble each other. A row of U surrounded by its own group looks
    negative, a positive looks positive, whatever they are. ``None`` where positives
    of one group alone leave nothing to draw a boundary from.
    """
    fold = make_folds(positive, groups, FOLDS, randomness.numpy("groups"))
    scores = np.empty(len(Z))
    for part in np.unique(fold):
        rest = fold != part
        if (positive & rest).sum() < 2 or not (~positive & rest).any():
            return None
        drawn = draw_boundary(
            Z[positive & rest],
            densifier,
            detector,
            contamination,
            randomness,
            f"groups/{part}",
            Z[~positive & rest],
        )
        scores[~rest] = drawn.detector.score_samples(Z[~rest])
    return scores


def leaves_itself_out(detector: Any) -> bool:
    """Tell whether a detector can score training rows without their own help."""
    own = getattr(type(detector), "_scores_by_others", None)
    return own not in (None, Detector._scores_by_others)


def scores_of_positives(
    Z: FloatArray, detector: Any, checks: list[HeldOutScores]
) -> FloatArray:
    """Return the normality of P, each row judged without its own help if possible.

    A detector that can leave a row out of its own score does so: its scores then lie on
    the scale of U's. Others are judged by the folds that held them out.
    """
    if leaves_itself_out(detector):
        return np.asarray(detector._scores_by_others(Z))
    if sum(len(check.held) for check in checks) == len(Z):
        scores = np.empty(len(Z))
        for check in checks:
            scores[check.held] = check.positive
        return scores
    if isinstance(detector, Detector):
        return detector._scores_by_others(Z)
    return np.asarray(detector.score_samples(Z))


def _sample(Z: FloatArray, rng: np.random.Generator) -> FloatArray:
    if len(Z) <= CHECK_SAMPLE:
        return Z
    return Z[np.sort(rng.choice(len(Z), CHECK_SAMPLE, replace=False))]


def positive_folds(
    n: int, groups: IntArray | None, randomness: Randomness
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (kept, held-out) positions among the positives; no group is split."""
    n_units = n if groups is None else len(np.unique(groups))
    folds = min(FOLDS, n_units)
    if folds < 2:
        return
    splitter = KFold if groups is None else GroupKFold
    split = splitter(folds, shuffle=True, random_state=randomness.seed("folds"))
    yield from split.split(np.empty((n, 1)), groups=groups)


def held_out_threshold(checks: list[HeldOutScores]) -> float:
    """Return the score that leaves a tenth of the held-out positives outside."""
    positive = np.concatenate([check.positive for check in checks])
    return float(np.quantile(positive, HELD_OUT_QUANTILE))


def judge(
    checks: list[HeldOutScores], boundary: Boundary, threshold: float | None = None
) -> dict[str, float]:
    """Return the held-out figures of the boundary, warning if it is at chance.

    ``threshold`` replaces the thresholds that the folds' detectors chose themselves.
    """
    cuts = [c.threshold if threshold is None else threshold for c in checks]
    pairs = list(zip(checks, cuts, strict=True))
    positive = np.concatenate([c.positive - cut for c, cut in pairs])
    dense = np.concatenate([c.dense - cut for c, cut in pairs])
    auc = float(np.mean([_auc(c.positive, c.unlabeled) for c in checks]))
    facts = {
        "held_out_positives": len(positive),
        "held_out_inlier_share": float(np.mean(positive >= 0)),
        "auc_held_out_vs_unlabeled": auc,
    }
    if len(dense):
        facts["expected_loss"] = expected_loss(
            boundary.contamination,
            fn=float(np.mean(positive >= 0)),
            fp=float(np.mean(dense < 0)),
        )
    if auc < np.clip(0.5 + 2 * _auc_error(checks), *CHANCE_AUC):
        warnings.warn(
            f"The boundary ranks held-out positives no better than unlabelled rows "
            f"(AUC {auc:.2f}, chance is 0.5). Unless almost all of U is positive, its "
            "negatives are close to random: try another encoder, or check that the "
            "features tell the classes apart.",
            WeakBoundaryWarning,
            stacklevel=2,
        )
    return facts


def _auc(positive: FloatArray, unlabeled: FloatArray) -> float:
    is_positive = np.r_[np.ones(len(positive)), np.zeros(len(unlabeled))]
    return float(roc_auc_score(is_positive, np.r_[positive, unlabeled]))


def _auc_error(checks: list[HeldOutScores]) -> float:
    """Return the standard error of the AUC of scores that mean nothing."""
    n = sum(len(c.positive) for c in checks)
    m = len(checks[0].unlabeled)
    return float(np.sqrt((n + m + 1) / (12 * n * m)))


def expected_loss(contamination: float, fn: float, fp: float) -> float:
    """Return eq. 4: C·FN + (1-C)·FP."""
    return float(contamination * fn + (1 - contamination) * fp)
