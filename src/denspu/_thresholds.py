"""Where to cut a list of scores: pure functions, no label needed."""

from __future__ import annotations

import numpy as np

from denspu._typing import FloatArray


def quantile_cut(scores: FloatArray, below: float) -> float:
    """Return the score that leaves the share ``below`` of the rows under it."""
    return float(np.quantile(scores, below))


def prior_cut(scores: FloatArray, prior: float) -> float:
    """Return the score that the share ``prior`` of the rows reaches."""
    count = min(len(scores), max(1, round(prior * len(scores))))
    return float(np.partition(scores, len(scores) - count)[len(scores) - count])


def otsu_cut(scores: FloatArray) -> float:
    """Return the cut that separates two groups best (Otsu 1979).

    Every cut between two neighbouring values is tried; the one with the largest
    variance between the groups lies halfway between its neighbours. It presumes two
    sizeable groups: do not use it where one class is rare.
    """
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    n = len(ordered)
    if ordered[0] == ordered[-1]:
        return float(ordered[0])
    left = np.arange(1, n)
    total = np.cumsum(ordered)
    mean_left = total[:-1] / left
    mean_right = (total[-1] - total[:-1]) / (n - left)
    between = left * (n - left) * (mean_right - mean_left) ** 2
    between[ordered[1:] == ordered[:-1]] = -1.0  # not a cut: the two are equal
    best = int(np.argmax(between))
    return float((ordered[best] + ordered[best + 1]) / 2)
