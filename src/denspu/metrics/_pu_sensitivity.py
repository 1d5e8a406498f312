"""What the figures would be, were the share of positives another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from denspu._random import Randomness
from denspu._typing import RandomState
from denspu.exceptions import InvalidParameterError
from denspu.metrics._pu import PUReport, pu_metrics


@dataclass(frozen=True)
class Sensitivity:
    """The same figures over a range of priors inside U."""

    priors: tuple[float, ...]
    reports: tuple[PUReport, ...]

    def values(self, name: str) -> tuple[float, ...]:
        """Return one figure's estimates, prior by prior."""
        return tuple(report[name].value for report in self.reports)

    def band(self, name: str) -> tuple[float, float]:
        """Return the least low and the largest high end over all priors."""
        lows = [report[name].low for report in self.reports]
        return min(lows), max(report[name].high for report in self.reports)

    def __str__(self) -> str:
        names = list(self.reports[0].figures)
        head = "prior inside U  " + "  ".join(f"{name:>17}" for name in names)
        lines = [
            f"{prior:<14.3g}  "
            + "  ".join(f"{report[name].value:>17.3f}" for name in names)
            for prior, report in zip(self.priors, self.reports, strict=True)
        ]
        return "\n".join([head, *lines])


def prior_sensitivity(
    positive_scores: Any,
    unlabeled_scores: Any,
    *,
    priors: Sequence[float],
    random_state: RandomState = None,
    **options: Any,
) -> Sensitivity:
    """Return :func:`pu_metrics` for each of several priors inside U.

    Parameters
    ----------
    positive_scores, unlabeled_scores : arrays
    priors : list of float
        Shares of positives inside U, for example from the low to the high end of
        ``PriorReport.interval``.
    random_state : int, generator or None, default=None
        The same draws serve all priors.
    **options
        Further arguments of :func:`pu_metrics`.

    Examples
    --------
    >>> import numpy as np
    >>> from denspu.metrics import prior_sensitivity
    >>> P, U = np.arange(10) - 2.5, np.arange(40) - 30.5
    >>> found = prior_sensitivity(P, U, priors=[0.1, 0.2], random_state=0)
    >>> [round(v, 2) for v in found.values("precision")]
    [0.31, 0.62]
    """
    given = tuple(float(p) for p in priors)
    if not given:
        raise InvalidParameterError(
            "priors is empty; give at least one share of positives inside U."
        )
    seed = Randomness(random_state).seed("prior_sensitivity")
    reports = tuple(
        pu_metrics(
            positive_scores,
            unlabeled_scores,
            prior_in_unlabeled=prior,
            random_state=seed,
            **options,
        )
        for prior in given
    )
    return Sensitivity(given, reports)
