"""From the columns of a committee to one margin: weights, the cut, the slope."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit
from sklearn.metrics import roc_auc_score

from denspu._typing import FloatArray
from denspu.base import RefinerInput
from denspu.priors import PriorEstimate, mixture_share
from denspu.refinement.rows import Rows

PULL = 0.6
"""How far the mixture may move from the ratio, in half-widths of its interval."""

SHARPNESS = 50.0
"""A learner whose held-out AUC is 0.02 lower than the best weighs exp(-1)."""

SLOPES = (-2.0, 2.5)
"""Where the logarithm of the slope of the log-odds is sought."""


@dataclass(frozen=True, eq=False)
class Scale:
    """How the learners' columns become one margin with the cut at 0."""

    mean: FloatArray
    spread: FloatArray
    weight: FloatArray
    cut: float = 0.0
    slope: float = 1.0

    def __call__(self, columns: FloatArray) -> FloatArray:
        """Return the margin."""
        terms = (columns - self.mean) / self.spread * self.weight
        margin = np.zeros(len(columns))
        for term in terms.T:  # in this order whatever rows come together
            margin += term
        return self.slope * (margin - self.cut)


def learn_scale(columns: FloatArray, rows: Rows) -> Scale:
    """Return the weights of the learners, by how they rank held-out P above U.

    That AUC is an affine function of the true one, so no label of U is needed.
    """
    known = rows.positive | rows.free
    spread = np.maximum(columns.std(axis=0), 1e-12)
    auc = np.array([roc_auc_score(rows.positive[known], c[known]) for c in columns.T])
    weight = np.exp(SHARPNESS * (auc - auc.max()))
    return Scale(columns.mean(axis=0), spread, weight / weight.sum())


def combined_share(
    positive: FloatArray, unlabeled: FloatArray, ratios: list[PriorEstimate]
) -> float:
    """Return the mean of three estimates, whose errors have little in common.

    The ratio of round 0 has no bias but is noisy; that of the present round is
    steadier but a little low, since its labels go back to the very positives it
    judges; the mixture is steadiest but presumes a form of the negatives, and may not
    go far from the first.
    """
    first, last = ratios[0], ratios[-1]
    reach = PULL * (first.high - first.low) / 2
    centre = first.prior_in_unlabeled
    mixture = mixture_share(positive, unlabeled, centre)
    mixture = float(np.clip(mixture, centre - reach, centre + reach))
    return (centre + last.prior_in_unlabeled + mixture) / 3


def around(share: float, found: PriorEstimate) -> PriorEstimate:
    """Return the estimate with another centre and the same width."""
    half = (found.high - found.low) / 2
    share = float(np.clip(share, 0, 1))
    return replace(
        found,
        prior_in_unlabeled=share,
        low=max(0.0, share - half),
        high=min(1.0, share + half),
    )


def cut_at(scores: FloatArray, share: float) -> float:
    """Return the score halfway between the last row inside ``share`` and the next."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    outside = len(ordered) - round(share * len(ordered))
    if outside == 0:
        return float(np.nextafter(ordered[0], -np.inf))
    if outside == len(ordered):
        return float(ordered[-1])
    return float((ordered[outside - 1] + ordered[outside]) / 2)


def known_cut(scores: FloatArray, start: RefinerInput) -> float:
    """Return the score that the share of the user's U that is known lies above.

    Held-out positives are free rows of the fit, but none of theirs. Rows that are equal
    lie on one side, whichever is nearer to the share, so long as there are some above.
    """
    mine, held = start.free, 0
    if start.held_out is not None:
        mine, held = start.free & ~start.held_out, int(start.held_out.sum())
    hidden = start.prior_in_unlabeled * start.free.sum() - held
    among = scores[mine]
    count = int(np.clip(round(hidden), 1, len(among)))
    last = np.sort(among)[-count]
    fewer, more = int((among > last).sum()), int((among >= last).sum())
    nearer = fewer if fewer and count - fewer < more - count else more
    return cut_at(among, nearer / len(among))


def log_odds_slope(
    positive: FloatArray, unlabeled: FloatArray, label_frequency: float
) -> float:
    """Return the slope a for which c·σ(a·margin) explains best which rows are in P.

    σ(a·margin) is then P(y = 1), 1/2 at the cut, learned from labels that are true.
    """

    def loss(log_slope: float) -> float:
        slope = np.exp(log_slope)
        labelled = np.log(label_frequency) + log_expit(slope * positive)
        not_labelled = np.log1p(-label_frequency * expit(slope * unlabeled) + 1e-12)
        return -float(labelled.sum() + not_labelled.sum())

    return float(np.exp(minimize_scalar(loss, bounds=SLOPES, method="bounded").x))
