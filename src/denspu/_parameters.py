"""What a constructor argument may be, written as a table beside the class.

An estimator lists its rules in ``_rules``; :func:`check_parameters` reads the table
in ``fit`` and reports every fault in one error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from denspu.exceptions import InvalidParameterError, did_you_mean, with_article


class Rule(Protocol):
    """One allowed form of an argument."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value has this form."""
        ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Number:
    """A real number in a range; ``closed`` names the ends that belong to it."""

    low: float = -math.inf
    high: float = math.inf
    closed: str = "both"

    def allows(self, value: Any) -> bool:
        """Tell whether the value is a number inside the range."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            return False
        number = float(value)
        above = number > self.low or (
            number == self.low and self.closed in ("both", "left")
        )
        below = number < self.high or (
            number == self.high and self.closed in ("both", "right")
        )
        return above and below

    def __str__(self) -> str:
        return f"a number in {_interval(self.low, self.high, self.closed)}"


@dataclass(frozen=True)
class Whole:
    """A whole number in a closed range, perhaps a multiple of some number."""

    low: float = -math.inf
    high: float = math.inf
    multiple_of: int = 1

    def allows(self, value: Any) -> bool:
        """Tell whether the value is an integer inside the range."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
            return False
        inside = self.low <= int(value) <= self.high
        return inside and int(value) % self.multiple_of == 0

    def __str__(self) -> str:
        step = self.multiple_of
        what = "an integer" if step == 1 else f"a multiple of {step}"
        return f"{what} in {_interval(self.low, self.high, 'both')}"


@dataclass(frozen=True)
class OneOf:
    """One of a few words (or ``None``, ``True``, ``False``)."""

    words: tuple[Any, ...]

    def __init__(self, *words: Any) -> None:
        object.__setattr__(self, "words", words)

    def allows(self, value: Any) -> bool:
        """Tell whether the value is one of the words."""
        return any(value is w or (type(value) is type(w) and value == w)
                   for w in self.words)  # fmt: skip

    def __str__(self) -> str:
        return " or ".join(repr(w) for w in self.words)


@dataclass(frozen=True)
class InstanceOf:
    """An object of a class."""

    kind: type

    def allows(self, value: Any) -> bool:
        """Tell whether the value is such an object."""
        return isinstance(value, self.kind)

    def __str__(self) -> str:
        return with_article(self.kind.__name__)


@dataclass(frozen=True)
class Part:
    """A registered name or an object; names are resolved when the part is built."""

    kind: str

    def allows(self, value: Any) -> bool:
        """Leave the closer look to the registry, which knows all names."""
        return value is not None

    def __str__(self) -> str:
        return f"the name of {with_article(self.kind)} or such an object"


def _interval(low: float, high: float, closed: str) -> str:
    left = "[" if closed in ("both", "left") and low > -math.inf else "("
    right = "]" if closed in ("both", "right") and high < math.inf else ")"
    return f"{left}{low:g}, {high:g}{right}"


def check(argument: str, value: object, *rules: Rule) -> None:
    """Refuse a value that no rule allows."""
    if not any(rule.allows(value) for rule in rules):
        allowed = " or ".join(str(rule) for rule in rules)
        raise InvalidParameterError(
            f"{argument} must be {allowed}. Got {value!r} instead."
        )


def check_parameters(estimator: Any) -> None:
    """Compare an estimator's arguments with its ``_rules`` table.

    Raises
    ------
    InvalidParameterError
        Naming each argument, its value and what is allowed.
    """
    rules: Mapping[str, tuple[Rule, ...]] = estimator._rules
    faults = []
    for name, allowed in rules.items():
        value = getattr(estimator, name)
        if any(rule.allows(value) for rule in allowed):
            continue
        words = [w for r in allowed if isinstance(r, OneOf) for w in r.words]
        hint = (
            did_you_mean(value, [w for w in words if isinstance(w, str)])
            if isinstance(value, str)
            else ""
        )
        faults.append(
            f"The {name!r} parameter of {type(estimator).__name__} must be "
            f"{' or '.join(str(r) for r in allowed)}. Got {value!r} instead.{hint}"
        )
    if faults:
        raise InvalidParameterError(" ".join(faults))
