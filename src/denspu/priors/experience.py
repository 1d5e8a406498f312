"""The share of positives inside U, as real tables have taught to read the estimates.

Where classes overlap everywhere, scores of P and U allow many shares, and estimators
name one of the largest. On real tables with known truth one can see by how much. So a
share is read off the tables that looked most like the one at hand: how well P and U are
told apart, and how many rows lie between the two. ``benchmarks/learn_shares.py`` writes
``experience.json`` from development tables with labels given at random; for labels that
favour some positives it says nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from scipy.stats import rankdata

from denspu._typing import FloatArray
from denspu.priors.by_scores import PriorEstimate

FEATURES = ("area", "between", "above")
"""What makes two tables look alike; see :func:`evidence_of`."""

REACH = 0.6
"""Standard deviation of a feature to which alike reaches. Of .4, .6 and .9 this had the
best interval score on development tables, each judged by the other sources."""

ENOUGH, FURTHER, STEPS = 8, 1.3, 40
"""So many labellings, counted by their weights, must speak: one alone is no experience.
Until then the reach grows, step by step, to all there are."""

LEVEL = 0.9
OUTSIDE = 0.04
"""Part of the experience beyond each end of the interval. A little under a twentieth:
sources that were not seen miss by more."""

TOWARDS = 0.7
"""So much of the experience lies below the share that is named. To call a few rows too
many costs less than to lose positives."""

NODES = 9
"""Shares that stand for all that are likely."""

SMALLEST = 5e-4
"""Shares are kept inside (SMALLEST, 1 - SMALLEST) before they become log-odds."""


@dataclass(frozen=True)
class Experience:
    """Labellings with known truth: what was seen, and how far off the centre was."""

    seen: FloatArray
    """One row a labelling, one column a feature."""
    off: FloatArray
    """Log-odds of the true share, less those of the middle estimate."""
    weight: FloatArray
    """A source counts once, however many labellings it has."""

    def quantiles(self, seen: FloatArray, at: FloatArray) -> FloatArray:
        """Return quantiles of ``off`` among the tables that look alike."""
        spread = self.seen.std(axis=0)
        far = (((self.seen - seen) / (spread * REACH)) ** 2).sum(axis=1) / 2
        weight = self.weight * np.exp(far.min() - far)
        for _ in range(STEPS):
            if weight.sum() ** 2 >= ENOUGH * (weight**2).sum():
                break
            far = far / FURTHER  # too few are alike
            weight = self.weight * np.exp(far.min() - far)
        order = np.argsort(self.off)
        weight = weight[order]
        below = (np.cumsum(weight) - weight / 2) / weight.sum()
        return np.asarray(np.interp(at, below, self.off[order]))


@cache
def learned() -> Experience:
    """Return what the development tables taught."""
    text = Path(__file__).with_name("experience.json").read_text(encoding="utf-8")
    columns = json.loads(text)
    seen = np.column_stack([columns[name] for name in FEATURES])
    return Experience(seen, np.array(columns["off"]), np.array(columns["weight"]))


@dataclass(frozen=True)
class Experienced:
    """A share of positives inside U, and others that are as likely."""

    estimate: PriorEstimate
    likely: FloatArray
    """Shares that are equally likely, in rising order."""
    seen: dict[str, float]
    """What they were read from."""


def evidence_of(
    positive: FloatArray,
    unlabeled: FloatArray,
    estimates: dict[str, float],
    votes: tuple[FloatArray, FloatArray],
) -> dict[str, float]:
    """Return what is seen of the share; ``centre`` and ``above`` are log-odds.

    ``centre`` is the middle estimate. ``area`` is twice the area above the ROC curve of
    P against U: the share can be no larger if scores are to rank positives above
    negatives at least as well as chance. ``votes`` are those of trees, for P and for U.
    Where the classes lie apart, hardly a row of U is ``between`` the votes of P and the
    lowest ones, and as many are ``above`` the middle (here less the centre) as the
    estimates say.
    """
    n = len(positive)
    ranks = rankdata(np.concatenate([positive, unlabeled]))[:n]
    auc = (ranks.sum() - n * (n + 1) / 2) / (n * len(unlabeled))
    bottom, top = float(np.quantile(votes[1], 0.1)), float(np.median(votes[0]))
    height = (votes[1] - bottom) / max(top - bottom, 1e-9)
    centre = float(np.median([log_odds(value) for value in estimates.values()]))
    return {
        "centre": centre,
        "area": 2 * (1 - float(auc)),
        "between": float(np.mean((height > 0.25) & (height < 0.75))),
        "above": log_odds(float(np.mean(height > 0.5))) - centre,
    }


def log_odds(share: float) -> float:
    """Return the log-odds of a share, kept away from 0 and 1."""
    return float(logit(np.clip(share, SMALLEST, 1 - SMALLEST)))


def by_experience(
    positive: FloatArray,
    unlabeled: FloatArray,
    estimates: dict[str, float],
    votes: tuple[FloatArray, FloatArray],
) -> Experienced:
    """Return the share that such evidence has meant on real tables."""
    seen = evidence_of(positive, unlabeled, estimates, votes)
    nodes = (np.arange(NODES) + 0.5) / NODES
    at = np.append(nodes, [OUTSIDE, TOWARDS, 1 - OUTSIDE])
    off = learned().quantiles(np.array([seen[name] for name in FEATURES]), at)
    shares = expit(seen["centre"] + off)
    low, share, high = (float(one) for one in shares[NODES:])
    if seen["area"] >= 1:  # P ranks no higher than U: any share can be
        low, high = 0.0, 1.0
    n, m = len(positive), len(unlabeled)
    estimate = PriorEstimate(share, low, high, LEVEL, 0.0, n, m)
    return Experienced(estimate, shares[:NODES], seen)
