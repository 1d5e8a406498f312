"""The ending by a refiner: first labels of U, and what its rounds make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from denspu._deadline import Deadline
from denspu._evidence import share_without_held
from denspu._random import Randomness
from denspu._stages import Stages
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


@dataclass(frozen=True)
class Shares:
    """Shares of positives, estimated or as the user gave them."""

    in_unlabeled: float
    interval: tuple[float, float]
    """Where the share inside U lies."""
    in_all: float
    """The share in all rows."""


def shares_of(prior: PriorEstimate, data: PUInput) -> Shares:
    """Return both shares; a ``prior`` is of U without the known negatives."""
    n_positive, n_unlabeled = data.positive.sum(), data.unlabeled.sum()
    open_share = float(1 - data.known_negative.sum() / n_unlabeled)
    inside = prior.prior_in_unlabeled * open_share
    hidden = inside * n_unlabeled
    return Shares(
        in_unlabeled=inside,
        interval=(prior.low * open_share, prior.high * open_share),
        in_all=float((n_positive + hidden) / (n_positive + n_unlabeled)),
    )


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
) -> Shares:
    """Let the refiner go on from the first labels; return the shares it ends with."""
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
            shares = shares_of(first.prior, data)
            own = getattr(refiner, "estimated_", None) or first.estimated
            found = shares_of(own, data)
            _compare(shares, found, data)
            facts["estimated_prior"] = [found.in_unlabeled, *found.interval]
        else:
            prior = getattr(refiner, "prior_", None) or first.prior
            shares = shares_of(prior, data)
            warn_if_extreme(prior)
            warn_if_rough(prior)
        unlabeled = refiner.labels_[data.unlabeled]
        facts["refiner"] = type(refiner).__name__
        facts["called_positive"] = float(np.mean(unlabeled > 0.5))
        if hasattr(refiner, "facts"):
            facts.update(refiner.facts())
        facts["prior_in_unlabeled"] = shares.in_unlabeled
        facts["prior_interval"] = list(shares.interval)
    return shares


def _compare(known: Shares, found: Shares, data: PUInput) -> None:
    """Warn if a share that is known and the one that is found are far apart.

    In words of the user's U, in which no row was held out.
    """
    mine, share, low, high = (
        share_without_held(one, data)
        for one in (known.in_unlabeled, found.in_unlabeled, *found.interval)
    )
    warn_if_contradicted(mine, share, (low, high))


def sees_input(refiner: Any) -> bool:
    """Tell whether a refiner sees rows as they came, not their embeddings."""
    return getattr(refiner, "sees", "embedding") == "input"
