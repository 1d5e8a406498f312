"""P against U by networks that have not seen the row, and whether they are believed.

With few positives the copies of a network know theirs by heart, and held-out ones stand
out clearly less than by the boundary (``LEAD``). Then nothing of them is used. The same
where no positive can be held out to find that out.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import roc_auc_score

from denspu._folds import make_folds
from denspu._typing import BoolArray, FloatArray
from denspu.base import RefinerInput
from denspu.exceptions import FewRowsWarning
from denspu.priors import PriorEstimate
from denspu.refinement.network_copies import Copies
from denspu.refinement.network_training import train_ratio
from denspu.refinement.posterior import cut_between, posterior
from denspu.refinement.smoothing import Smoother

if TYPE_CHECKING:
    from denspu.refinement.network import NetworkRefiner

LEAD = 0.9
"""Part of the boundary's lead over chance that networks must reach to be believed.

Leads are AUC - 1/2 of held-out positives against U.
"""


@dataclass(frozen=True, eq=False)
class Ratio:
    """What networks that tell P from U came to."""

    auc: dict[str, float]
    """How well the boundary and the networks rank held-out positives over U."""
    labels: FloatArray | None
    """P(y = 1) of every row; None where the networks are not believed."""
    prior: PriorEstimate | None
    """The share of positives inside U; None where they are not believed."""
    recall: float
    """Share of held-out positives above the cut of what is used."""
    called: float
    """Share of U above it."""
    estimated: PriorEstimate | None = None
    """What they say of the share, also where it was known."""


def learn_ratio(
    refiner: NetworkRefiner, start: RefinerInput, copies: Copies, epochs: int
) -> Ratio | None:
    """Return what cross-fitted networks that tell P from U say.

    Not believed where held-out positives stand out clearly less than by the boundary;
    None where nothing can be held out to find that out.
    """
    scores = cross_fitted(refiner, start, copies, epochs)
    if scores is None:
        return None
    free = start.free
    judged = start.positive | free
    auc = {
        name: _auc(start.positive[judged], found[judged])
        for name, found in (("boundary", start.scores), ("networks", scores))
    }
    needed = min(auc["boundary"], 0.5 + LEAD * (auc["boundary"] - 0.5))
    believed = auc["networks"] >= needed
    if not believed:
        cut = cut_between(start.scores[free], start.labels[free])
        return Ratio(auc, None, None, *_above(start.scores, cut, start))
    result = posterior(
        scores[start.positive],
        scores[free],
        rng=copies.randomness.numpy("prior"),
        earlier=(start.prior_in_unlabeled, start.prior_interval),
        known=start.prior_in_unlabeled if start.prior_known else None,
    )
    labels = np.ones(len(scores))
    labels[free] = result.unlabeled
    above = _above(scores, result.cut, start)
    said = result.estimated or result.prior
    return Ratio(auc, start.pinned(labels), result.prior, *above, said)


def cross_fitted(
    refiner: NetworkRefiner, start: RefinerInput, copies: Copies, epochs: int
) -> FloatArray | None:
    """Return scores by networks that have not seen the row.

    None where nothing can be held out.
    """
    rng = copies.randomness.numpy("folds")
    fold = make_folds(start.positive, start.groups, refiner.folds, rng)
    others = [fold != part for part in range(refiner.folds)]
    if not all(
        start.positive[rest].any() and start.unlabeled[rest].sum() > 1
        for rest in others
    ):
        warnings.warn(
            "P or U is too small, or lies in one group, so that nothing can be "
            "held out to judge networks of P against U. Neither they nor the PU "
            "risk are used: training begins with the boundary's labels.",
            FewRowsWarning,
            stacklevel=3,
        )
        return None
    scores = np.empty(len(fold))
    for part in range(refiner.folds):
        rows = fold == part
        name = f"ratio/{part}"
        module = train_ratio(refiner, ~rows, start, copies, name, epochs)
        found = copies.score(module, rows)
        if refiner.smooth:  # among rows that this network has not seen
            near = min(refiner.smooth // 2, int(rows.sum()) - 1)
            found = Smoother(start.Z[rows], max(1, near), copies.device)(found)
        scores[rows] = found
    return scores


def _above(scores: FloatArray, cut: float, start: RefinerInput) -> tuple[float, float]:
    """Return how many held-out positives, and how many of U, lie above a cut."""
    recall = float(np.mean(scores[start.positive] > cut))
    return recall, float(np.mean(scores[start.free] > cut))


def _auc(positive: BoolArray, scores: FloatArray) -> float:
    """Return the AUC; a network that has diverged is at chance."""
    if not np.isfinite(scores).all():
        return 0.5
    return float(roc_auc_score(positive, scores))
