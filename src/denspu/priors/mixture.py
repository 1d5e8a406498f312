"""The share of positives inside U when the negatives make one bell along the score.

U is a mixture π f_P + (1-π) f_N. The density f_P comes from held-out positives; f_N is
taken for a normal density, and EM finds its place, its width and π. It looks at all of
U, so it varies less than a ratio read off the top, but it is wrong where the bell is.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import gaussian_kde, norm

from denspu._typing import FloatArray

GRID = 512
STEPS = 300
STILL = 1e-6
"""EM ends when π moves less."""

LEFT = 2.0
"""So many widths below the bell's centre nothing counts as positive."""


def mixture_share(
    scores_positive: FloatArray, scores_unlabeled: FloatArray, start: float
) -> float:
    """Return the share of positives inside U, refined from the guess ``start``.

    Scores that do not vary say nothing: then the guess is returned.
    """
    x = np.asarray(scores_unlabeled, dtype=np.float64)
    density = _density(np.asarray(scores_positive, dtype=np.float64), x)
    if density is None:
        return start
    share = float(np.clip(start, 0.01, 0.99))
    positive = (x > np.quantile(x, 1 - share)).astype(np.float64)
    for _ in range(STEPS):
        weight = 1 - positive
        if weight.sum() < 1:
            return 1.0
        centre = np.average(x, weights=weight)
        width = np.sqrt(np.average((x - centre) ** 2, weights=weight)) + 1e-3 * x.std()
        ours = share * density
        theirs = (1 - share) * norm.pdf(x, centre, width)
        positive = ours / np.maximum(ours + theirs, np.finfo(np.float64).tiny)
        positive[x < centre - LEFT * width] = 0
        last, share = share, float(positive.mean())
        if abs(share - last) < STILL:
            break
    return share


def _density(positive: FloatArray, x: FloatArray) -> FloatArray | None:
    """Return a smooth density of the positives at ``x``."""
    if len(positive) < 2 or np.ptp(positive) <= 1e-9 * np.ptp(x) or np.ptp(x) == 0:
        return None
    grid = np.linspace(min(x.min(), positive.min()), max(x.max(), positive.max()), GRID)
    return np.interp(x, grid, gaussian_kde(positive)(grid))
