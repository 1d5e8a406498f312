"""From scores to P(y = 1), by the density of held-out positives along the score.

Under SCAR labelled positives lie where all positives lie. Along any score s that no
row vouched for itself, the ratio of labelled to unlabelled rows is

    r(s) = n_P p(s | y=1) / (n_U p_U(s)),  and  P(y=1 | s, in U) = r(s) · N / n_P

with N the number of positives in U. N follows from the purest top of the score, where
P(y=1 | s) = 1 (Garg et al. 2021, best bin estimation). Nothing here needs a prior or a
true label; r is kept increasing, since a higher score never means less positive.

Where the share of positives inside U is known, N is, and P(y=1 | s) rises with r as far
as it must for the probabilities to sum to N (:func:`adding_up`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from denspu._share import Isotonic
from denspu._typing import FloatArray
from denspu.priors import PriorEstimate, estimate_prior_from_scores

Earlier: TypeAlias = tuple[float, tuple[float, float]]
"""A share of positives inside U that other scores gave, and its interval."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the scores say: P(y = 1) of rows of U, how many there are, where to cut."""

    unlabeled: FloatArray
    """P(y = 1) of each row of U."""
    n_positive: float
    """Estimated number of positives in U."""
    prior: PriorEstimate
    cut: float
    """The score above which P(y = 1) exceeds one half."""
    estimated: PriorEstimate | None = None
    """What the scores say of the share, where it was known already."""


def posterior(
    positive: FloatArray,
    unlabeled: FloatArray,
    *,
    rng: np.random.Generator,
    earlier: Earlier | None = None,
    known: float | None = None,
) -> Posterior:
    """Return P(y = 1) of unlabelled rows from scores no row vouched for itself.

    A ``known`` share of positives inside U stands. An ``earlier`` share that is larger
    and contradicts what these scores say is taken in its place (see :func:`joined`).
    """
    found = prior = estimate_prior_from_scores(positive, unlabeled, rng=rng)
    if known is not None:
        prior = found.with_share(known)
    elif earlier and contradict(prior, earlier):
        other, (low, high) = earlier
        if other > prior.prior_in_unlabeled:
            prior = replace(prior, prior_in_unlabeled=other, low=low, high=high)
    number = prior.prior_in_unlabeled * len(unlabeled)
    scores = np.concatenate([positive, unlabeled])
    labelled = np.r_[np.ones(len(positive)), np.zeros(len(unlabeled))]
    share = Isotonic(scores, labelled)(unlabeled)
    odds = share / np.maximum(1 - share, 1e-12)
    if known is None:
        probability = np.minimum(odds * number / len(positive), 1.0)
    else:
        probability = adding_up(odds, number)
    return Posterior(
        probability,
        number,
        prior,
        cut_between(unlabeled, probability),
        None if known is None else found,
    )


def adding_up(odds: FloatArray, total: float) -> FloatArray:
    """Return probabilities in proportion to the odds, at most 1, with a given sum.

    What is more than rows with any odds can hold is shared alike by the others.
    """
    some = odds > 0
    most = int(some.sum())
    if total >= most:
        left = (total - most) / max(1, len(odds) - most)
        return np.where(some, 1.0, left)
    ordered = np.sort(odds)[::-1][:most]
    from_here_on = np.cumsum(ordered[::-1])[::-1]
    factor = (total - np.arange(most)) / from_here_on  # with so many at 1 before it
    first = int(np.argmax(factor * ordered <= 1))
    return np.asarray(np.minimum(factor[first] * odds, 1.0))


def contradict(found: PriorEstimate, earlier: Earlier) -> bool:
    """Tell whether each of two estimates lies outside the other's interval."""
    share, (low, high) = earlier
    return not (
        low <= found.prior_in_unlabeled <= high or found.low <= share <= found.high
    )


def joined(found: PriorEstimate, earlier: Earlier) -> float:
    """Return the mean of two shares, or the larger one if they contradict each other.

    What goes wrong with the best bin makes a share smaller: it is the least of many
    ratios, and labelled positives that an encoder has seen crowd the top of a score.
    """
    both = found.prior_in_unlabeled, earlier[0]
    return max(both) if contradict(found, earlier) else sum(both) / 2


def cut_between(scores: FloatArray, probability: FloatArray) -> float:
    """Return the score above which the probability, rising with it, exceeds 1/2."""
    inside, outside = scores[probability > 0.5], scores[probability <= 0.5]
    if not len(inside):
        return float(scores.max())
    if not len(outside):
        return float(np.nextafter(scores.min(), -np.inf))
    return float((inside.min() + outside.max()) / 2)
