"""From scores to P(y = 1), by the density of held-out positives along the score.

Under SCAR labelled positives lie where all positives lie. Along any score s that no
row vouched for itself, the ratio of labelled to unlabelled rows is

    r(s) = n_P p(s | y=1) / (n_U p_U(s)),  and  P(y=1 | s, in U) = r(s) · N / n_P

with N the number of positives in U. N follows from the purest top of the score, where
P(y=1 | s) = 1 (Garg et al. 2021, best bin estimation). Nothing here needs a prior or a
true label; r is kept increasing, since a higher score never means less positive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import IsotonicRegression

from denspu._typing import FloatArray

CONFIDENCE = np.log(4 / 0.1) / 2
"""Both counts of a top bin lie within the root of this over their size nine times out of
ten (Dvoretzky, Kiefer and Wolfowitz)."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the scores say: P(y = 1) of rows of U, how many there are, where to cut."""

    unlabeled: FloatArray
    """P(y = 1) of each row of U."""
    n_positive: float
    """Estimated number of positives in U."""
    cut: float
    """The score above which P(y = 1) exceeds one half."""


def positives_in_unlabeled(positive: FloatArray, unlabeled: FloatArray) -> float:
    """Return the number of positives in U, from scores higher for more positive.

    For each score t of a held-out positive, (rows of U above t) / (share of P above t)
    bounds the number from above; the smallest bound wins, after each has paid for the
    uncertainty of its counts.
    """
    ordered = np.sort(unlabeled)
    cuts = np.sort(positive)[::-1]
    above = len(ordered) - np.searchsorted(ordered, cuts, side="left")
    count = np.arange(1, len(cuts) + 1)
    share = count / len(cuts)
    bound = above / share
    doubt = np.sqrt(CONFIDENCE / len(ordered)) + np.sqrt(CONFIDENCE / len(cuts))
    worst = bound / len(ordered) + doubt / share
    best = int(np.argmin(worst))
    return float(min(bound[best], len(ordered)))


def posterior(positive: FloatArray, unlabeled: FloatArray) -> Posterior:
    """Return P(y = 1) of unlabelled rows from scores no row vouched for itself."""
    number = positives_in_unlabeled(positive, unlabeled)
    scores = np.concatenate([positive, unlabeled])
    labelled = np.r_[np.ones(len(positive)), np.zeros(len(unlabeled))]
    rising = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    share = rising.fit(scores, labelled).predict(unlabeled)
    odds = share / np.maximum(1 - share, 1e-12)
    probability = np.minimum(odds * number / len(positive), 1.0)
    return Posterior(probability, number, _cut(unlabeled, probability))


def _cut(scores: FloatArray, probability: FloatArray) -> float:
    inside, outside = scores[probability > 0.5], scores[probability <= 0.5]
    if not len(inside):
        return float(scores.max())
    if not len(outside):
        return float(np.nextafter(scores.min(), -np.inf))
    return float((inside.min() + outside.max()) / 2)
