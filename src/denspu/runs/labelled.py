"""Figures from true labels, each with an interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from denspu._typing import FloatArray, IntArray
from denspu.metrics import oracle_metrics

CELLS = 4_000_000
"""Rows times draws held in memory at once."""

WILSON = "Wilson"
DRAWN = "drawn"


class Counted(NamedTuple):
    """A figure with its interval."""

    value: float
    low: float
    high: float
    how: str
    """``"Wilson"`` for a share of independent items; ``"drawn"``: items weighted anew
    many times (a Bayesian bootstrap), with half a positive and half a negative imagined
    above all scores and as much below."""


def confusion(truth: IntArray, scores: FloatArray, threshold: float) -> dict[str, int]:
    """Return true and false positives and negatives."""
    called, positive = scores > threshold, truth == 1
    return {
        "tp": int((called & positive).sum()),
        "fp": int((called & ~positive).sum()),
        "fn": int((~called & positive).sum()),
        "tn": int((~called & ~positive).sum()),
    }


def figures_of(
    truth: IntArray,
    scores: FloatArray,
    threshold: float,
    *,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> dict[str, Counted]:
    """Return the figures that these labels can give.

    With one class alone, only the share of right answers in it: ``recall`` of
    positives, ``accuracy`` of negatives.
    """
    n = confusion(truth, scores, threshold)
    shares = {
        "accuracy": (n["tp"] + n["tn"], len(truth)),
        "recall": (n["tp"], n["tp"] + n["fn"]),
        "precision": (n["tp"], n["tp"] + n["fp"]),
    }
    if truth.all():
        return {"recall": wilson(*shares["recall"], level)}
    if not truth.any():
        return {"accuracy": wilson(*shares["accuracy"], level)}
    values = oracle_metrics(truth, _steps(scores, threshold))
    found = {}
    for name, (hits, of) in shares.items():
        if of:
            found[name] = wilson(hits, of, level)
    values["lift"] = values["precision"] / float(truth.mean())
    draws = _draws(truth, scores, threshold, n_resamples, rng)
    tail = (1 - level) / 2
    for name, value in values.items():
        if name in shares or (name == "lift" and "precision" not in found):
            continue
        low, high = np.quantile(draws[name], [tail, 1 - tail])
        found[name] = Counted(
            value, min(float(low), value), max(float(high), value), DRAWN
        )
    return {name: found[name] for name in values if name in found}


def _steps(scores: FloatArray, threshold: float) -> FloatArray:
    """Return scores in the same order, with the threshold at 0 and no tie made."""
    different, place = np.unique(scores, return_inverse=True)
    cut = np.searchsorted(different, threshold, side="right")
    return np.asarray(place.reshape(-1) - cut + 0.5, dtype=np.float64)


def wilson(hits: int, n: int, level: float) -> Counted:
    """Return a share with Wilson's interval."""
    z = float(ndtri((1 + level) / 2))
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n)
    half *= float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Counted(share, min(low, share), max(high, share), WILSON)


def _draws(
    truth: IntArray,
    scores: FloatArray,
    threshold: float,
    times: int,
    rng: np.random.Generator,
) -> dict[str, FloatArray]:
    """Return each figure as it may be, in many draws."""
    far = np.array([-np.inf, -np.inf, np.inf, np.inf])
    scores = np.concatenate([scores, far])
    truth = np.concatenate([truth, [0, 1, 0, 1]])
    weight = np.concatenate([np.ones(len(truth) - 4), np.full(4, 0.5)])
    order = np.argsort(-scores, kind="stable")
    scores, truth, weight = scores[order], truth[order], weight[order]
    ends = np.flatnonzero(np.append(scores[1:] < scores[:-1], True))
    parts = [
        _figures(
            part * truth, part * (1 - truth), ends, int((scores > threshold).sum())
        )
        for part in _weights(weight, times, rng)
    ]
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def _weights(
    weight: FloatArray, times: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    step = max(1, CELLS // len(weight))
    for start in range(0, times, step):
        yield rng.gamma(weight, size=(min(step, times - start), len(weight)))


def _figures(
    P: FloatArray, N: FloatArray, ends: IntArray, called: int
) -> dict[str, FloatArray]:
    """Return the figures of weighted rows, highest score first, one draw a row.

    ``ends`` are the last rows of each run of equal scores.
    """
    n_pos, n_neg = P.sum(axis=1), N.sum(axis=1)
    tp, fp = P[:, :called].sum(axis=1), N[:, :called].sum(axis=1)
    precision = tp / np.maximum(tp + fp, 1e-300)
    above_P = np.cumsum(P, axis=1)[:, ends]
    above_N = np.cumsum(N, axis=1)[:, ends]
    gained_P = np.diff(above_P, axis=1, prepend=0.0)
    gained_N = np.diff(above_N, axis=1, prepend=0.0)
    below_N = n_neg[:, None] - above_N + gained_N / 2
    return {
        "balanced_accuracy": (tp / n_pos + 1 - fp / n_neg) / 2,
        "f1": 2 * tp / (n_pos + tp + fp),
        "roc_auc": (gained_P * below_N).sum(axis=1) / (n_pos * n_neg),
        "average_precision": (gained_P * above_P / (above_P + above_N)).sum(axis=1)
        / n_pos,
        "lift": precision * (n_pos + n_neg) / n_pos,
    }
