"""The share of positives inside U, as real tables have taught to read the estimates.

Where classes overlap everywhere, scores of P and U allow many shares, and estimators
name one of the largest. On real tables with known truth one can see by how much, given
how well P and U are told apart and how far the estimators lie from each other. That
experience is learned by ``benchmarks/learn_shares.py`` from development tables and kept
in ``experience.json``; it holds for labels that are a random sample of the positives.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm, rankdata

from denspu._typing import FloatArray
from denspu.priors.by_scores import PriorEstimate

LEVEL = 0.9
SMALLEST = 5e-4
"""Shares are kept inside (SMALLEST, 1 - SMALLEST) before they become log-odds."""

NODES = 9
"""Shares that stand for all that are likely."""


@dataclass(frozen=True)
class Experienced:
    """A share of positives inside U, and how far off such a reading may be."""

    estimate: PriorEstimate
    spread: float
    """Standard deviation of the log-odds of the share."""
    seen: dict[str, float]
    """What it was read from."""

    def likely(self) -> FloatArray:
        """Return shares that are equally likely."""
        centre = logit(self.estimate.prior_in_unlabeled)
        places = norm.ppf((np.arange(NODES) + 0.5) / NODES)
        return np.asarray(expit(centre + self.spread * places))


@cache
def learned() -> dict[str, Any]:
    """Return what the development tables taught."""
    text = Path(__file__).with_name("experience.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def evidence_of(
    positive: FloatArray,
    unlabeled: FloatArray,
    estimates: dict[str, float],
    votes: tuple[FloatArray, FloatArray],
) -> dict[str, float]:
    """Return what is seen of the share; shares as differences of log-odds.

    ``area`` is twice the area above the ROC curve of P against U: the share can be no
    larger if scores are to rank positives above negatives at least as well as chance.
    ``votes`` are those of trees for P and for U. Where the classes lie apart, hardly a
    row of U is in the ``middle`` between the votes of P and the lowest ones.
    """
    n = len(positive)
    ranks = rankdata(np.concatenate([positive, unlabeled]))[:n]
    auc = (ranks.sum() - n * (n + 1) / 2) / (n * len(unlabeled))
    area = 2 * (1 - float(auc))
    bottom, top = float(np.quantile(votes[1], 0.1)), float(np.median(votes[0]))
    height = (votes[1] - bottom) / max(top - bottom, 1e-9)
    of = {name: log_odds(value) for name, value in estimates.items()}
    centre = float(np.median(list(of.values())))
    seen = {name: value - centre for name, value in of.items()}
    return {
        "centre": centre,
        "area": area,
        "area_squared": area**2,
        "area_from_centre": log_odds(min(area, 0.98)) - centre,
        "between": float(np.mean((height > 0.25) & (height < 0.75))),
        "above_from_centre": log_odds(float(np.mean(height > 0.5))) - centre,
        **seen,
    }


def log_odds(share: float) -> float:
    """Return the log-odds of a share that is neither 0 nor 1."""
    return float(logit(np.clip(share, SMALLEST, 1 - SMALLEST)))


def by_experience(
    positive: FloatArray,
    unlabeled: FloatArray,
    estimates: dict[str, float],
    votes: tuple[FloatArray, FloatArray],
) -> Experienced:
    """Return the share that such estimates have meant on real tables."""
    known = learned()
    seen = evidence_of(positive, unlabeled, estimates, votes)
    values = np.array([seen[name] for name in known["features"]])
    off = float(known["intercept"] + values @ np.array(known["weights"]))
    centre = seen["centre"] + off
    spread = [1.0, *(seen[name] for name in known["scale_features"])]
    scale = max(known["least_scale"], float(np.dot(known["scale"], spread)))
    low, high = (float(expit(centre + end * scale)) for end in known["ends"])
    share = float(expit(centre))
    estimate = PriorEstimate(
        share, low, high, LEVEL, 0.0, len(positive), len(unlabeled)
    )
    width = (known["ends"][1] - known["ends"][0]) / (2 * norm.ppf((1 + LEVEL) / 2))
    return Experienced(estimate, scale * width, seen)
