"""The ending by a refiner: first labels of U, and what its rounds make of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from denspu._machine import Deadline
from denspu._progress import Stages
from denspu._random import Randomness
from denspu._share import Counts, Share
from denspu._typing import FloatArray
from denspu._validation import PUInput
from denspu.base import RefinerInput
from denspu.methods._bounding import Bounded, fair_scores
from denspu.methods._labelling import (
    FirstLabels,
    first_labels,
    warn_if_contradicted,
    warn_if_extreme,
    warn_if_few,
    warn_if_rough,
)
from denspu.priors import PriorEstimate


def share_of(prior: PriorEstimate, data: PUInput) -> Share:
    """Return an estimate as the share of the open rows that it is about."""
    ends = prior.low, prior.high
    return Share(prior.prior_in_unlabeled, *ends, "open", Counts.seen(data))


def label(
    Z: FloatArray,
    data: PUInput,
    densifier: Any,
    bounded: Bounded,
    randomness: Randomness,
    stages: Stages,
    known: float | None = None,
) -> FirstLabels:
    """Return a first label of every row by the boundary.

    ``known`` is the share of positives among the open rows of U, if the user gave it.
    """
    warn_if_few(data, known is not None)
    with stages.stage("label") as facts:
        positive, unlabeled = fair_scores(Z, data, densifier, bounded, randomness)
        rng = randomness.numpy("label")
        first = first_labels(positive, unlabeled, data, rng, known)
        facts.update(first.facts())
    return first


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
                prior_known=first.prior_known,
                held_out=data.held_out,
            )
        )
        if first.estimated is not None:
            share = share_of(first.prior, data)
            own = getattr(refiner, "estimated_", None) or first.estimated
            found = share_of(own, data)
            _compare(share, found, data)
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


def _compare(known: Share, found: Share, data: PUInput) -> None:
    """Warn if a share that is known and the one that is found are far apart.

    In words of the user's U, in which no row was held out.
    """
    known, found = (
        share.to("unlabeled", Counts.given(data)) for share in (known, found)
    )
    warn_if_contradicted(known.value, found.value, found.interval)


def sees_input(refiner: Any) -> bool:
    """Tell whether a refiner sees rows as they came, not their embeddings."""
    return getattr(refiner, "sees", "embedding") == "input"
