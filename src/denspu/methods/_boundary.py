"""Steps 3 to 6: densify, draw the boundary, check it; a first label for all of U.

Eq. 4 weighs two errors of the boundary between embeddings Z_ν (inliers) and encodings
Z_L (the expected outliers): L = C·FN + (1-C)·FP, with FN the share of encodings called
inlier and FP the share of embeddings called outlier. It is reported from encodings that
neither the detector nor the densifier has seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, KFold

from denspu._folds import make_folds
from denspu._machine import Deadline
from denspu._progress import Stages
from denspu._random import Randomness
from denspu._registry import prepare_part
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu._validation import PUInput
from denspu.base import RARE, Detector, RefinerInput
from denspu.exceptions import (
    DegenerateFitWarning,
    FewRowsWarning,
    PriorDisagreementWarning,
    RoughPriorWarning,
    WeakBoundaryWarning,
)
from denspu.priors import PriorEstimate
from denspu.refinement.posterior import posterior

UNDENSIFIED_CONTAMINATION = 0.005
"""The paper's C, rounded, where nothing was densified and |Z_ν| is zero."""

HELD_OUT_QUANTILE = 0.1
"""``contamination="heldout"`` leaves this share of held-out positives outside."""

FOLDS = 5
CHECK_SAMPLE = 10_000
CHANCE_AUC = (0.55, 0.7)
"""Below the first an AUC is chance, above the second it is not, however few rows."""


@dataclass(frozen=True, eq=False)
class BoundaryParts:
    """What a boundary is drawn with; the detector is cloned each time."""

    densifier: Any
    detector: Any
    contamination: str | float
    randomness: Randomness

    def densified(self, Z: FloatArray, name: str) -> FloatArray:
        """Return the new embeddings Z_ν."""
        rng = self.randomness.numpy(name)
        return np.asarray(self.densifier.densify(Z, rng))

    def drawn(self, Z: FloatArray, name: str, unlabeled: FloatArray) -> Any:
        """Return a detector fitted on Z_ν ∪ Z_L."""
        return self.fitted(Z, self.densified(Z, f"{name}/densify"), name, unlabeled)[0]

    def fitted(
        self, Z: FloatArray, dense: FloatArray, name: str, unlabeled: FloatArray
    ) -> tuple[Any, float]:
        """Return a detector fitted on Z_ν ∪ Z_L, and C of section 3.4.

        One that compares positives with everything gets ``unlabeled`` rows too.
        """
        share = UNDENSIFIED_CONTAMINATION
        if not isinstance(self.contamination, str):
            share = float(self.contamination)
        elif len(dense):  # C = |Z_L| / |Z_ν|
            share = min(0.5, len(Z) / len(dense))
        fitted = prepare_part(self.detector, self.randomness, f"{name}/detector")
        own = getattr(fitted, "contamination", None)
        if own == "auto" and self.contamination != "heldout":
            fitted.set_params(contamination=share)
        share = getattr(fitted, "contamination", share)
        share = UNDENSIFIED_CONTAMINATION if isinstance(share, str) else float(share)
        rows = np.concatenate([dense, Z]) if len(dense) else Z
        if getattr(fitted, "needs_unlabeled", False):
            is_positive = np.arange(len(rows) + len(unlabeled)) < len(rows)
            fitted.fit(np.concatenate([rows, unlabeled]), is_positive.astype(np.int64))
        else:
            fitted.fit(rows)
        if not isinstance(fitted, Detector):  # scikit-learn's own, or the user's
            fitted.threshold_ = float(np.quantile(fitted.score_samples(rows), share))
        return fitted, share


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Scores of rows that a fold's boundary has not seen."""

    held: IntArray
    """Positions among P of the rows held out."""
    positive: FloatArray
    dense: FloatArray
    unlabeled: FloatArray
    threshold: float


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
    Z: FloatArray, data: PUInput, parts: BoundaryParts, checks: int, stages: Stages
) -> Bounded:
    """Densify P, draw the boundary around it and judge it on positives held out."""
    positive, unlabeled = Z[data.positive], Z[data.unlabeled]
    with stages.stage("densify") as facts:
        dense = parts.densified(positive, "boundary/densify")
        facts["densifier"] = type(parts.densifier).__name__
        facts["encodings"] = len(positive)
        facts["embeddings"] = len(dense)
    with stages.stage("boundary") as facts:
        fitted, share = parts.fitted(positive, dense, "boundary", unlabeled)
        groups = None if data.groups is None else data.groups[data.positive]
        found = held_out_scores(positive, unlabeled, parts, groups, checks)
        facts["detector"] = type(fitted).__name__
        threshold, source = None, "contamination"
        if parts.contamination == "heldout":
            source = "the detector itself: no positives were held out"
            if found:
                source = "held-out positives"
                threshold = fitted.threshold_ = held_out_threshold(found)
        scores = fitted.score_samples(unlabeled)
        inlier: BoolArray = scores >= fitted.threshold_
        facts["threshold"] = float(fitted.threshold_)
        facts["threshold_from"] = source
        if source == "contamination":
            facts["contamination"] = share
        facts["predicted_inlier"] = int(inlier.sum())
        facts["leftovers"] = int((~inlier).sum())
        if found:
            facts.update(judge(found, share, threshold))
    return Bounded(fitted, scores, inlier, found)


def fair_scores(
    Z: FloatArray, data: PUInput, parts: BoundaryParts, bounded: Bounded
) -> tuple[FloatArray, FloatArray]:
    """Return scores of P and of U that no row, and no group, vouched for itself."""
    if data.groups is not None:
        again = replace(parts, detector=bounded.detector, contamination="heldout")
        scores = scores_without_own_group(Z, data.positive, data.groups, again)
        if scores is not None:
            return scores[data.positive], scores[data.unlabeled]
    positive = scores_of_positives(Z[data.positive], bounded.detector, bounded.checks)
    return positive, bounded.scores


# --- scores by boundaries that have not seen a row -----------------------------------


def held_out_scores(
    Z: FloatArray,
    Z_unlabeled: FloatArray,
    parts: BoundaryParts,
    groups: IntArray | None,
    checks: int,
) -> list[HeldOutScores]:
    """Draw the boundary without one fifth of the positives, ``checks`` times."""
    randomness = parts.randomness
    sample = _sample(Z_unlabeled, randomness.numpy("check/unlabeled"))
    found = []
    for i, (keep, held) in enumerate(positive_folds(len(Z), groups, randomness)):
        if i == checks:
            break
        if len(keep) < 2:
            continue
        name = f"check/{i}"
        detector = parts.drawn(Z[keep], name, Z_unlabeled)
        dense = Z[held][:0]
        if len(held) > 1:
            dense = parts.densified(Z[held], f"{name}/held")
        dense = _sample(dense, randomness.numpy(f"{name}/sample"))
        score = detector.score_samples
        found.append(
            HeldOutScores(
                held=held,
                positive=score(Z[held]),
                dense=score(dense) if len(dense) else np.empty(0),
                unlabeled=score(sample),
                threshold=detector.threshold_,
            )
        )
    return found


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


def scores_without_own_group(
    Z: FloatArray, positive: BoolArray, groups: IntArray, parts: BoundaryParts
) -> FloatArray | None:
    """Return the normality of all rows by boundaries that know nothing of their group.

    Rows of a group resemble each other. A row of U surrounded by its own group looks
    negative, a positive looks positive, whatever they are. ``None`` where positives
    of one group alone leave nothing to draw a boundary from.
    """
    fold = make_folds(positive, groups, FOLDS, parts.randomness.numpy("groups"))
    scores = np.empty(len(Z))
    for part in np.unique(fold):
        rest = fold != part
        if (positive & rest).sum() < 2 or not (~positive & rest).any():
            return None
        detector = parts.drawn(
            Z[positive & rest], f"groups/{part}", Z[~positive & rest]
        )
        scores[~rest] = detector.score_samples(Z[~rest])
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
    return np.asarray(detector.score_samples(Z))


def _sample(Z: FloatArray, rng: np.random.Generator) -> FloatArray:
    if len(Z) <= CHECK_SAMPLE:
        return Z
    return Z[np.sort(rng.choice(len(Z), CHECK_SAMPLE, replace=False))]


# --- how good the boundary is --------------------------------------------------------


def held_out_threshold(checks: list[HeldOutScores]) -> float:
    """Return the score that leaves a tenth of the held-out positives outside."""
    positive = np.concatenate([check.positive for check in checks])
    return float(np.quantile(positive, HELD_OUT_QUANTILE))


def judge(
    checks: list[HeldOutScores], contamination: float, threshold: float | None = None
) -> dict[str, float]:
    """Return the held-out figures of the boundary, warning if it is at chance.

    ``threshold`` replaces the thresholds that the folds' detectors chose themselves.
    """
    cuts = [c.threshold if threshold is None else threshold for c in checks]
    pairs = list(zip(checks, cuts, strict=True))
    positive = np.concatenate([c.positive - cut for c, cut in pairs])
    dense = np.concatenate([c.dense - cut for c, cut in pairs])
    auc = float(np.mean([_auc(c.positive, c.unlabeled) for c in checks]))
    inlier_share = float(np.mean(positive >= 0))
    facts = {
        "held_out_positives": len(positive),
        "held_out_inlier_share": inlier_share,
        "auc_held_out_vs_unlabeled": auc,
    }
    if len(dense):  # eq. 4: C·FN + (1-C)·FP
        outside = float(np.mean(dense < 0))
        loss = contamination * inlier_share + (1 - contamination) * outside
        facts["expected_loss"] = float(loss)
    if auc < np.clip(0.5 + 2 * _auc_error(checks), *CHANCE_AUC):
        warnings.warn(
            f"The boundary ranks held-out positives no better than unlabelled rows "
            f"(AUC {auc:.2f}, chance is 0.5). Unless almost all of them are positive, "
            "its negatives are close to random: try another encoder, or check that the "
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


# --- steps 5 and 6: first labels, and what a refiner makes of them ------------------

EXTREME = (0.0005, 0.97)
"""Shares of positives inside U that are close to none and to all."""

MOST = 0.8
"""Share from which an interval that reaches 1 says that U may hold no negatives."""

FEW_POSITIVES = 10

ROUGH = 0.4
"""How far a known share may be from what the data say, as part of the nearer end."""

WIDE = 0.5
"""Width of an interval from which the share is said to be known only roughly."""


@dataclass(frozen=True, eq=False)
class FirstLabels:
    """What the boundary says of every row."""

    scores: FloatArray
    """Normality, no positive vouching for itself."""
    labels: FloatArray
    """P(y = 1): 1 for P, 0 for known negatives."""
    prior: PriorEstimate
    """The share of positives inside U: estimated, or as the user knows it."""
    estimated: PriorEstimate | None = None
    """What the scores say of a share that is known."""

    @property
    def rare(self) -> bool:
        """Tell whether positives are too rare inside U for hard labels."""
        return self.prior.prior_in_unlabeled < RARE

    def facts(self) -> dict[str, Any]:
        """Return the share and the labels it leads to."""
        found: dict[str, Any] = {
            "prior_in_unlabeled": self.prior.prior_in_unlabeled,
            "low": self.prior.low,
            "high": self.prior.high,
            "path": "ranking" if self.rare else "labels",
        }
        if self.estimated is not None:
            found["prior_known"] = True
            found["estimated"] = self.estimated.prior_in_unlabeled
            found["estimated_interval"] = [self.estimated.low, self.estimated.high]
        return found


def first_labels(
    positive: FloatArray,
    unlabeled: FloatArray,
    data: PUInput,
    rng: np.random.Generator,
    known: float | None = None,
) -> FirstLabels:
    """Return labels by the density of positives along the boundary's score.

    ``known`` is the share of positives among the rows of U that are not known to be
    negative, where the user knows it.
    """
    free = ~data.known_negative[data.unlabeled]
    found = posterior(positive, unlabeled[free], rng=rng, known=known)
    inside = np.zeros(len(unlabeled))
    inside[free] = found.unlabeled
    labels = np.ones(len(data.positive))
    scores = np.empty(len(data.positive))
    labels[data.unlabeled] = inside
    scores[data.positive], scores[data.unlabeled] = positive, unlabeled
    return FirstLabels(scores, labels, found.prior, found.estimated)


def share_of(prior: PriorEstimate, data: PUInput) -> Share:
    """Return an estimate as the share of the open rows that it is about."""
    ends = prior.low, prior.high
    return Share(prior.prior_in_unlabeled, *ends, "open", Counts.seen(data))


def refine(
    refiner: Any,
    encoder: Any,
    Z: FloatArray,
    data: PUInput,
    first: FirstLabels,
    deadline: Deadline,
    stages: Stages,
) -> Share:
    """Let the refiner go on from the first labels; return the share it ends with."""
    with stages.stage("refine") as facts:
        refiner.refine(
            RefinerInput(
                X=data.X,
                Z=Z,
                positive=data.positive,
                known_negative=data.known_negative,
                groups=data.groups,
                scores=first.scores,
                labels=first.labels,
                prior_in_unlabeled=first.prior.prior_in_unlabeled,
                prior_interval=(first.prior.low, first.prior.high),
                encoder=encoder,
                deadline=deadline,
                prior_known=first.estimated is not None,
                held_out=data.held_out,
                wide=wide_form(encoder, data.X),
            )
        )
        if first.estimated is not None:
            share = share_of(first.prior, data)
            own = getattr(refiner, "estimated_", None) or first.estimated
            found = share_of(own, data)
            # In words of the user's U, in which no row was held out.
            mine, theirs = (
                s.to("unlabeled", Counts.given(data)) for s in (share, found)
            )
            warn_if_contradicted(mine.value, theirs.value, theirs.interval)
            found = found.to("unlabeled")
            facts["estimated_prior"] = [found.value, *found.interval]
        else:
            prior = getattr(refiner, "prior_", None) or first.prior
            share = share_of(prior, data)
            warn_if_extreme(prior)
            warn_if_rough(prior)
        unlabeled = refiner.labels_[data.unlabeled]
        facts["refiner"] = type(refiner).__name__
        facts["called_positive"] = float(np.mean(unlabeled > 0.5))
        if hasattr(refiner, "facts"):
            facts.update(refiner.facts())
        inside = share.to("unlabeled")
        facts["prior_in_unlabeled"] = inside.value
        facts["prior_interval"] = list(inside.interval)
    return share


def wide_form(encoder: Any, X: Any) -> Any:
    """Return the sparse form of rows beside their embeddings; None if there is none."""
    return encoder.wide(X) if hasattr(encoder, "wide") else None


def sees_input(refiner: Any) -> bool:
    """Tell whether a refiner sees rows as they came, not their embeddings."""
    return getattr(refiner, "sees", "embedding") == "input"


# --- what the user should know of the share ------------------------------------------


def warn_if_extreme(prior: PriorEstimate) -> None:
    """Warn when the share of positives inside U comes out close to none or all."""
    share = prior.prior_in_unlabeled
    perhaps_all = share > MOST and prior.high > 0.999
    if EXTREME[0] <= share <= EXTREME[1] and not perhaps_all:
        return
    what = "none" if share < EXTREME[0] else "all"
    warnings.warn(
        f"DensPU takes almost {what} of the unlabelled for positive (estimated share "
        f"{share:.4f}, {prior.low:.4f} to {prior.high:.4f}). Either that is so, or the "
        "embedding does not tell the classes apart: look at the ranking before "
        "trusting predict.",
        DegenerateFitWarning,
        stacklevel=2,
    )


def warn_if_rough(prior: PriorEstimate) -> None:
    """Warn when the share of positives inside U is known only roughly.

    Not where they are rare: there the ranking counts, and the interval is always wide.
    """
    share = prior.prior_in_unlabeled
    if share < RARE or prior.high - prior.low <= WIDE:
        return
    warnings.warn(
        "The share of positives among the unlabelled is known only roughly: "
        f"{share:.3f}, perhaps {prior.low:.3f} or {prior.high:.3f}. The cut follows "
        "it, so that predict, and estimates of its quality, may be far off; the "
        "ranking in decision_function less so. Label more positives, or cut the "
        "ranking by what you know of the share.",
        RoughPriorWarning,
        stacklevel=2,
    )


def warn_if_contradicted(
    known: float, found: float, interval: tuple[float, float]
) -> None:
    """Warn when P and U speak for a share inside U far from the one that is known."""
    low, high = interval
    room = min(known, 1 - known, found, 1 - found)
    if low <= known <= high or abs(found - known) <= ROUGH * room:
        return
    if found < known:
        why = "Labels that are not given at random look like this, and so does a prior "
        why += "that is too large."
    else:
        why = "Classes that overlap look like this, and so does a prior that is too "
        why += "small."
    theirs = f"{found:.1%} ({low:.1%} to {high:.1%})"
    if low >= high:  # less than the positives held out, which are no rows of U
        theirs = "hardly any"
    warnings.warn(
        f"The prior you gave means that {known:.1%} of the unlabelled are positive; "
        f"the data themselves speak for {theirs}. {why} Yours is taken; without it "
        "the fit estimates one.",
        PriorDisagreementWarning,
        stacklevel=2,
    )


def warn_if_few(data: PUInput, known: bool = False) -> None:
    """Warn where estimates must rest on very few rows, or P and U look exchanged.

    ``known`` says whether the share of positives is the user's.
    """
    n, m = int(data.positive.sum()), int(data.unlabeled.sum())
    if n < FEW_POSITIVES:
        rough = "the share of positives among the unlabelled, and the cut, are little "
        rough += "more than a guess (see prior_interval_)"
        if known:
            rough = "who is called positive is little more than a guess, though how "
            rough += "many are is what you gave"
        warnings.warn(
            f"Only {n} labelled positives: {rough}. Label some more; from about "
            f"{5 * FEW_POSITIVES} on estimates settle.",
            FewRowsWarning,
            stacklevel=2,
        )
    if m < n:
        warnings.warn(
            f"There are {m} unlabelled rows and {n} labelled. That is unusual: y is 1 "
            "for labelled positives and 0 for unlabelled rows. If it is not a mistake, "
            "mind that what is said of the unlabelled rests on few rows.",
            FewRowsWarning,
            stacklevel=2,
        )
