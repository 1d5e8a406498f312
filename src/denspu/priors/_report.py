"""What :func:`denspu.priors.estimate_prior` answers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from denspu._share import Counts, Share
from denspu._typing import Scenario
from denspu.exceptions import PriorDisagreementWarning

WIDE = 0.15
"""Estimates that lie this far apart disagree."""

FACTOR = 3.0
"""Small estimates disagree when the largest is this many times the least."""

SMALL = 0.1
"""Below this a share is small: a difference of 0.15 cannot arise."""

LEAST = 1e-4
"""Shares below this count as this when their ratio is asked for."""


@dataclass(frozen=True)
class PriorReport:
    """The class prior: over all rows, inside U, with intervals and second opinions."""

    prior_in_unlabeled: float
    """Share of positives inside U."""
    low: float
    """Lower end of the interval of ``prior_in_unlabeled``."""
    high: float
    level: float
    """How often such an interval should hold the truth."""
    method: str
    """What the answer was made from: a key, several, or ``"auto"``."""
    scenario: Scenario
    estimates: Mapping[str, float]
    """Share of positives inside U by estimator."""
    n_positive: int
    n_unlabeled: int

    def overall(self, share: float) -> float:
        """Turn a share of positives inside U into a share of positives overall."""
        return self._share(share).population(self.scenario).value

    def _share(self, value: float) -> Share:
        counts = Counts(self.n_positive, self.n_unlabeled)
        return Share.exactly(value, "unlabeled", counts)

    @property
    def prior(self) -> float:
        """Share of positives in the population that the scenario describes."""
        return self.overall(self.prior_in_unlabeled)

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of ``prior_in_unlabeled``."""
        return self.low, self.high

    @property
    def prior_interval(self) -> tuple[float, float]:
        """Interval of ``prior``."""
        return self.overall(self.low), self.overall(self.high)

    @property
    def label_frequency(self) -> float:
        """Share c of the positives among all these rows that carry a label."""
        return self._share(self.prior_in_unlabeled).label_frequency

    @property
    def disagreement(self) -> float:
        """Largest less least of the estimates."""
        return max(self.estimates.values()) - min(self.estimates.values())

    @property
    def disagrees(self) -> bool:
        """Tell whether the estimates lie too far apart to be trusted."""
        least, largest = min(self.estimates.values()), max(self.estimates.values())
        few = largest < SMALL and largest > FACTOR * max(least, LEAST)
        return few or largest - least > WIDE

    def __str__(self) -> str:
        rows = [
            ("prior, all rows", _with(self.prior, self.prior_interval)),
            ("prior inside U", _with(self.prior_in_unlabeled, self.interval)),
            ("label frequency", _digits(self.label_frequency)),
            ("P, U", f"{self.n_positive:,} rows, {self.n_unlabeled:,} rows"),
            ("scenario", self.scenario),
            ("method", self.method),
        ]
        rows += [(f"  {key}", _digits(share)) for key, share in self.estimates.items()]
        rows += [("disagreement", _digits(self.disagreement))]
        width = max(len(name) for name, _ in rows)
        head = f"Class prior ({self.level:.0%} intervals)"
        return "\n".join([head, *(f"{name:<{width}}  {text}" for name, text in rows)])


def _digits(share: float) -> str:
    return f"{share:.3f}" if share >= SMALL or share == 0 else f"{share:.2g}"


def _with(share: float, interval: tuple[float, float]) -> str:
    return f"{_digits(share)}  [{_digits(interval[0])}, {_digits(interval[1])}]"


def warn_if_disagreeing(report: PriorReport, stacklevel: int) -> None:
    """Warn with the estimates when they lie far apart."""
    if len(report.estimates) > 1 and report.disagrees:
        told = ", ".join(f"{k} {_digits(v)}" for k, v in report.estimates.items())
        warnings.warn(
            f"Estimates of the share of positives inside U disagree: {told}. P and U "
            "may overlap everywhere, P may be a biased sample of the positives, or "
            "there are too few rows. Give more labelled rows or better features, or "
            "set the prior yourself.",
            PriorDisagreementWarning,
            stacklevel=stacklevel,
        )
