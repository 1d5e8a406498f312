"""Steps 5 and 6: a first label for every row of U, and what a refiner makes of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from denspu._machine import Deadline
from denspu._progress import Stages
from denspu._share import Counts, Share
from denspu._typing import FloatArray
from denspu._validation import PUInput
from denspu.base import RARE, RefinerInput
from denspu.exceptions import (
    DegenerateFitWarning,
    FewRowsWarning,
    PriorDisagreementWarning,
    RoughPriorWarning,
)
from denspu.priors import PriorEstimate
from denspu.refinement.posterior import posterior

EXTREME = (0.0005, 0.97)
"""Shares of positives inside U that are close to none and to all."""

MOST = 0.8
"""Share from which an interval that reaches 1 says that U may hold no negatives."""

FEW_POSITIVES = 10

ROUGH = 0.4
"""Half-width of the interval, as part of the share, from which it is told."""


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
    if share < RARE or prior.high - prior.low <= 2 * ROUGH * share:
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
