"""The one clock: ``max_seconds`` is turned into epochs early, and recorded."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

MOMENT = 1e-3
"""Seconds that a part of a deadline lasts in any case."""


@dataclass(frozen=True)
class Deadline:
    """How many seconds a fit may still take; ``None`` means any number.

    Examples
    --------
    >>> Deadline(None).left()
    inf
    >>> Deadline(10.0).part(0.5).seconds <= 5
    True
    """

    seconds: float | None
    began: float = field(default_factory=time.perf_counter)

    def left(self) -> float:
        """Return the seconds that remain, at least 0."""
        if self.seconds is None:
            return float("inf")
        return max(0.0, self.seconds - (time.perf_counter() - self.began))

    def part(self, share: float) -> Deadline:
        """Return a deadline for a share of what remains, if only a moment.

        A moment, since 0 is no number of seconds that ``max_seconds`` takes.
        """
        if self.seconds is None:
            return self
        return Deadline(max(MOMENT, share * self.left()))
