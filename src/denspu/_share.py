"""A share of positives: its value, its interval, and of which rows it is.

Three shares speak of the same positives: that of all rows, P and U together; that
inside U; and that of the open rows, whose label is not known (U less the known
negatives). To a fit, positives that are held out are rows of U: its U is larger than
the user's, and holds more positives. All of this is converted here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Literal, Self

import numpy as np

from denspu._typing import Scenario
from denspu._validation import PUInput
from denspu.exceptions import InvalidParameterError

Of = Literal["unlabeled", "all", "open"]

HALF_A_ROW = 0.5
"""A share that leaves fewer positives, or fewer negatives, speaks of no row."""

PRECISE, NEAR = 10**9, 1e-3
"""Ends of a range are told in steps of 1/PRECISE. NEAR of a step, or of a row, is
none."""


@dataclass(frozen=True)
class Counts:
    """How many rows there are, by what is known of their label."""

    labeled: int
    """Labelled positives that are not in U."""
    unlabeled: int
    """Rows of U, the known ones among them."""
    known_negative: int = 0
    """Rows of U known to be negative."""
    known_positive: int = 0
    """Rows of U known to be positive, such as copies of labelled ones."""

    @classmethod
    def given(cls, data: PUInput) -> Self:
        """Count the rows as the user gave them: held-out positives carry a label."""
        held = 0 if data.held_out is None else int(data.held_out.sum())
        seen = cls.seen(data)
        return replace(
            seen, labeled=seen.labeled + held, unlabeled=seen.unlabeled - held
        )

    @classmethod
    def seen(cls, data: PUInput) -> Self:
        """Count the rows as the fit sees them: held-out positives are open ones."""
        return cls(
            int(data.positive.sum()),
            int(data.unlabeled.sum()),
            int(data.known_negative.sum()),
        )

    @property
    def all(self) -> int:
        """P and U together."""
        return self.labeled + self.unlabeled

    @property
    def open(self) -> int:
        """Rows of U whose label is not known."""
        return self.unlabeled - self.known_negative - self.known_positive


@dataclass(frozen=True)
class Share:
    """How many of some rows are positive, and between which ends that lies."""

    value: float
    low: float
    high: float
    of: Of
    """Which rows."""
    counts: Counts

    @classmethod
    def exactly(cls, value: float, of: Of, counts: Counts) -> Self:
        """Return a share that is known, or of whose interval nothing is said."""
        return cls(float(value), float(value), float(value), of, counts)

    @classmethod
    def of_prior(
        cls, prior: float, counts: Counts, scenario: Scenario, *, asks: bool = True
    ) -> Self:
        """Return the share inside U that ``prior=`` of a method means, or raise.

        ``asks`` says whether the method has a ``scenario`` that the user could change.
        """
        if scenario == "two-sample":  # U is the population
            return cls.exactly(prior, "unlabeled", counts)
        n, labeled = counts.all, counts.labeled
        if prior <= labeled / n:
            apart = "scenario='two-sample' if U was drawn apart from P"
            other = f"prior='estimate', or {apart}" if asks else "or prior='estimate'"
            raise InvalidParameterError(
                f"prior={prior!r} is the share of positives among all {n} rows, and "
                f"{labeled} of them ({labeled / n:.4g}) carry a label already. Pass a "
                f"larger share, {other}."
            )
        inside = cls(prior, prior, prior, "all", counts)._inside(prior)
        return cls.exactly(inside, "unlabeled", counts)

    @classmethod
    def of_label_frequency(cls, c: float, counts: Counts) -> Self:
        """Return the share inside U when the part ``c`` of all positives is in P."""
        share = 1.0
        if c > 0:
            share = min(1.0, counts.labeled * (1 - c) / (c * counts.unlabeled))
        return cls.exactly(share, "unlabeled", counts)

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    @property
    def positives(self) -> float:
        """How many rows of U are positive."""
        return self._inside(self.value) * self.counts.unlabeled

    @property
    def label_frequency(self) -> float:
        """Share c of all positives that carry a label."""
        return self.counts.labeled / (self.counts.labeled + self.positives)

    def to(self, of: Of, counts: Counts | None = None) -> Share:
        """Return the share of other rows that the same positives make.

        ``counts`` are given where labels are held out or put back: rows that are
        labelled on one side alone are positives inside U on the other.
        """
        value, low, high = (
            self._converted(end, of, counts)
            for end in (self.value, self.low, self.high)
        )
        return Share(value, low, high, of, counts or self.counts)

    def population(self, scenario: Scenario) -> Share:
        """Return what the scenario calls the prior."""
        return self.to("all" if scenario == "one-sample" else "unlabeled")

    def _inside(self, share: float) -> float:
        """Return a share of these rows as one inside U."""
        c = self.counts
        if self.of == "all":
            return (share * c.all - c.labeled) / c.unlabeled
        if self.of == "open":
            known = c.known_negative + c.known_positive
            return c.known_positive / c.unlabeled + share * (1 - known / c.unlabeled)
        return share

    def _converted(self, share: float, of: Of, counts: Counts | None) -> float:
        inside = self._inside(share)
        positives = inside * self.counts.unlabeled
        new = counts or self.counts
        positives += self.counts.labeled - new.labeled
        if of == "all":
            found = (new.labeled + positives) / new.all
        elif of == "open":
            found = (positives - new.known_positive) / new.open
        else:
            found = inside if counts is None else positives / new.unlabeled
        return float(np.clip(found, 0.0, 1.0))


def known_share(prior: float, data: PUInput) -> float:
    """Return what a share in all rows means among the open rows the fit sees, or raise.

    A share is refused that leaves no row of the user's U positive, or none negative.
    """
    given = Counts.given(data)
    share = Share.of_prior(prior, given, "one-sample", asks=False)
    hidden = share.positives
    if not HALF_A_ROW - NEAR <= hidden <= given.open - HALF_A_ROW + NEAR:
        ends = (
            (given.labeled + HALF_A_ROW) / given.all,
            (given.labeled + given.open - HALF_A_ROW) / given.all,
        )
        raise InvalidParameterError(
            f"prior={prior!r} means {hidden:,.4g} positives among the {given.open:,} "
            f"rows of U that are not known to be negative. Pass {between(*ends)}, or "
            "prior='estimate'."
        )
    return share.to("open", Counts.seen(data)).value


def between(low: float, high: float) -> str:
    """Say which shares are allowed, in digits that are allowed themselves.

    Examples
    --------
    >>> between(0.151_25, 0.998_75), between(7 / 88, 7 / 88)
    ('a share between 0.15125 and 0.99875', '0.07954545454545454')
    >>> between(1 / 3, 2 / 3)
    'a share between 0.333333334 and 0.666666666'
    """
    ends = ceil(low * PRECISE - NEAR) / PRECISE, floor(high * PRECISE + NEAR) / PRECISE
    if ends[0] >= ends[1]:  # one row is open
        return repr(low)
    return f"a share between {ends[0]:.9g} and {ends[1]:.9g}"
