"""Two steps: rows of U that are surely negative, then an ordinary classifier.

What the methods of that family share: known negatives always belong to the reliable
ones, and there is at least one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from denspu._typing import BoolArray, FloatArray, IntArray
from denspu.exceptions import FewRowsWarning, SelectionWarning
from denspu.methods._estimator import EstimatorTask


def reliable(task: EstimatorTask, chosen: BoolArray, scores: FloatArray) -> IntArray:
    """Return the chosen free rows and the known negatives.

    Where nothing was chosen, the rows of U with the lowest scores are taken, as many as
    there are in P, and a warning says so.
    """
    mask = chosen & task.free
    if not (mask | task.data.known_negative).any():
        free = np.flatnonzero(task.free)
        count = max(1, min(int(task.positive.sum()), len(free) // 2))
        mask[free[np.argsort(scores[free], kind="stable")[:count]]] = True
        warnings.warn(
            f"No unlabelled row looks reliably negative; the {count} that look least "
            "like P are taken. The features may not tell the classes apart.",
            SelectionWarning,
            stacklevel=2,
        )
    return np.flatnonzero(mask | task.data.known_negative)


@contextmanager
def copies_expected() -> Iterator[None]:
    """Keep scikit-learn from telling about clusters in copies of a few rows.

    The caller says it in the user's own words: see :func:`warn_of_copies`.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Number of distinct clusters", ConvergenceWarning
        )
        yield


def warn_of_copies(rows: FloatArray, what: str, wanted: int, outcome: str) -> None:
    """Warn where there are fewer distinct rows than parts to make of them."""
    distinct = len(np.unique(rows, axis=0))
    if distinct < wanted:
        warnings.warn(
            f"The {len(rows)} {what} are copies of {distinct} row(s); {outcome}. Leave "
            "copies out, or give features that tell rows apart.",
            FewRowsWarning,
            stacklevel=2,
        )


def positives_against(task: EstimatorTask, negative: IntArray, name: str) -> Any:
    """Return a classifier of P against some rows."""
    positive = np.flatnonzero(task.positive)
    index = np.concatenate([positive, negative])
    return task.fit(index, np.arange(len(index)) < len(positive), name)
