"""PU data as it travels, with the true labels behind one door.

``dataset.X`` and ``dataset.y`` are what a learner may see. What only an examiner may
see, the true classes, is reached by ``dataset.oracle`` and by nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from denspu._typing import BoolArray, IntArray


class Oracle:
    """The true classes of a PU data set; for metrics and benchmarks only.

    Parameters
    ----------
    positive : array of bool
        Truth of every row of the data set.
    unlabeled : array of bool
        Which of its rows carry no label.
    prior : float
        Share of positives among the rows the data set was made from.
    """

    __slots__ = ("_positive", "_prior", "_unlabeled")

    def __init__(self, positive: BoolArray, unlabeled: BoolArray, prior: float) -> None:
        self._positive = positive
        self._unlabeled = unlabeled
        self._prior = prior

    @property
    def labels(self) -> IntArray:
        """True class, 1 or 0, of every row of the data set."""
        return self._positive.astype(np.int64)

    @property
    def unlabeled_labels(self) -> IntArray:
        """True class of the unlabelled rows, in their order."""
        return self.labels[self._unlabeled]

    @property
    def prior(self) -> float:
        """Share of positives overall, among the original rows."""
        return self._prior

    @property
    def prior_in_unlabeled(self) -> float:
        """Share of positives among the unlabelled rows."""
        return float(self.unlabeled_labels.mean())

    def __repr__(self) -> str:
        return f"<Oracle of {len(self._positive)} rows>"


@dataclass(frozen=True, eq=False, repr=False)
class PUDataset:
    """Positive and unlabelled rows, made by :func:`denspu.make_pu`.

    Give ``dataset.X`` and ``dataset.y`` to ``fit``.
    """

    X: Any
    """The rows: an array, a DataFrame or a list, as given to ``make_pu``."""
    y: IntArray
    """1 for a labelled positive, 0 for an unlabelled row."""
    index: IntArray
    """Row number in the original ``X`` of each row."""
    groups: Any
    """Group of each row, or None."""
    scenario: str
    """``"one-sample"`` or ``"two-sample"``."""
    mechanism: str
    """``"scar"`` or ``"sar"``."""
    oracle: Oracle
    """The true classes; keep away from ``fit``."""

    @property
    def labeled_index(self) -> IntArray:
        """Positions in this data set of the labelled positives."""
        return np.flatnonzero(self.y == 1)

    @property
    def unlabeled_index(self) -> IntArray:
        """Positions in this data set of the unlabelled rows."""
        return np.flatnonzero(self.y == 0)

    @property
    def n_labeled(self) -> int:
        """Number of labelled positives."""
        return len(self.labeled_index)

    def __repr__(self) -> str:
        return (
            f"PUDataset({len(self.y)} rows, n_labeled={self.n_labeled}, "
            f"scenario={self.scenario!r}, mechanism={self.mechanism!r})"
        )
