"""What a class states of itself, once: its parameters and the facts about it.

A parameter is a field with its default, its rules and its meaning::

    class NNPU(DeepPU):
        about = About(key="nnpu", paper="Kiryo et al. 2017, nnPU")
        beta: float = setting(0.0, Number(0), doc="How far the risk may fall below 0.")

The constructor, the section "Parameters" of the docstring and the checks in ``fit``
come from there. Inherited fields are not repeated. What ``fit`` leaves behind is
annotated where it is set, since every field annotated in a class body is a parameter.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Protocol, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator

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
        if number in (self.low, self.high):
            return self.closed in ("both", "left" if number == self.low else "right")
        return self.low < number < self.high

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
        alike = (w for w in self.words if type(value) is type(w))
        return any(value is word or value == word for word in alike)

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


Rules = Mapping[str, tuple[Rule, ...]]


def _interval(low: float, high: float, closed: str) -> str:
    left = "[" if closed in ("both", "left") and low > -math.inf else "("
    right = "]" if closed in ("both", "right") and high < math.inf else ")"
    return f"{left}{low:g}, {high:g}{right}"


def check(argument: str, value: object, *rules: Rule) -> None:
    """Refuse a value that no rule allows."""
    fault = _fault(argument, value, rules)
    if fault:
        raise InvalidParameterError(fault)


def check_parameters(estimator: Any) -> None:
    """Compare an estimator's parameters with their rules.

    Raises
    ------
    InvalidParameterError
        Naming each argument, its value and what is allowed.
    """
    called = f"parameter of {type(estimator).__name__}"
    faults = [
        _fault(f"The {name!r} {called}", getattr(estimator, name), rules)
        for name, rules in estimator._rules.items()
        if rules
    ]
    if any(faults):
        raise InvalidParameterError(" ".join(filter(None, faults)))


def _fault(what: str, value: Any, rules: tuple[Rule, ...]) -> str:
    """Say what a value should be; nothing if a rule allows it."""
    if any(rule.allows(value) for rule in rules):
        return ""
    words = [w for rule in rules if isinstance(rule, OneOf) for w in rule.words]
    names = [word for word in words if isinstance(word, str)]
    hint = did_you_mean(value, names) if isinstance(value, str) else ""
    allowed = " or ".join(str(rule) for rule in rules)
    return f"{what} must be {allowed}. Got {value!r} instead.{hint}"


# --- parameters and facts of a class --------------------------------------------------


def setting(default: Any, *rules: Rule, doc: str = "", positional: bool = False) -> Any:
    """State a parameter: its default, what is allowed (anything, if no rule), why.

    A ``positional`` one may be given without its name. One that restates a parameter of
    the base class with another default, and nothing else, keeps its rules and meaning.
    """
    metadata = {"rules": rules, "doc": doc}
    return dataclasses.field(default=default, metadata=metadata, kw_only=not positional)


@dataclass(frozen=True)
class About:
    """Facts about a class for lists, docs and tests; ``None``: as its base class says.

    The one-line summary is the first line of the class's docstring.
    """

    key: str | None = None
    """Name in ``make(key)``, in specs and docs; without one it is not listed."""
    paper: str | None = None
    """Authors, year, title."""
    reference_licence: str | None = None
    """Licence of the authors' code, where there is any."""
    kind: str | None = None
    """Which room of the walk it belongs to."""
    assumption: Literal["SCAR", "SAR"] | None = None
    """How labels are assumed to be chosen among the positives."""
    scenario: Literal["one-sample", "two-sample", "any"] | None = None
    """How P and U were drawn."""
    needs_prior: bool | None = None
    """Must a class prior be given or estimated?"""
    deep: bool | None = None
    """Does it train a neural network?"""
    inputs: tuple[str, ...] | None = None
    """Kinds of data it takes."""
    uses_known_negatives: bool | None = None
    """Does fitting use ``known_negative`` rows?"""

    def completed(self, base: About) -> About:
        """Return these facts, with those left open taken from a base class."""
        own = ("key", "paper", "reference_licence")
        names = [f.name for f in dataclasses.fields(self) if f.name not in own]
        left_open = [name for name in names if getattr(self, name) is None]
        return dataclasses.replace(
            self, **{name: getattr(base, name) for name in left_open}
        )


@dataclass_transform(kw_only_default=True, eq_default=False)
class Configured(BaseEstimator):
    """An estimator whose constructor is made from its fields, and only remembers."""

    about: ClassVar[About] = About(
        needs_prior=False, deep=False, inputs=("table",), uses_known_negatives=False
    )

    _rules: ClassVar[Rules] = {}
    """What each parameter may be; made from the fields."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        base: About = super(cls, cls).about
        cls.about = cls.__dict__.get("about", About()).completed(base)
        for field in fields_of(cls):  # those of the base classes, so far
            own = vars(cls).get(field.name)
            if isinstance(own, dataclasses.Field) and not any(own.metadata.values()):
                own.metadata = field.metadata
        init: Any = cls.__init__
        made = init is object.__init__ or getattr(init, "made_from_fields", False)
        dataclass(init=made, kw_only=True, eq=False, repr=False)(cls)
        if made:  # a constructor written by hand is kept, also by subclasses
            cls.__init__.made_from_fields = True  # type: ignore[attr-defined]
        rules = {f.name: f.metadata["rules"] for f in fields_of(cls)}
        cls._rules = {**cls._rules, **rules}
        if cls.__doc__ and "\nParameters\n" not in inspect.cleandoc(cls.__doc__):
            cls.__doc__ = _with_parameters(cls)


def fields_of(cls: type) -> tuple[dataclasses.Field[Any], ...]:
    """Return the parameters that a class states as fields."""
    if not dataclasses.is_dataclass(cls):
        return ()
    return tuple(f for f in dataclasses.fields(cls) if "rules" in f.metadata)


def _with_parameters(cls: type) -> str:
    """Return the docstring with its parameters, before the other sections."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    fields = sorted(fields_of(cls), key=lambda f: f.name not in cls.__annotations__)
    if not fields:
        return doc
    lines = ["Parameters", "----------"]
    for field in fields:
        lines.append(f"{field.name} : {field.type}, default={field.default!r}")
        lines += textwrap.wrap(
            field.metadata["doc"], 84, initial_indent="    ", subsequent_indent="    "
        )
    text, mark, sections = doc.partition("\n\nAttributes\n")
    if not mark:
        text, mark, sections = doc.partition("\n\nExamples\n")
    return text + "\n\n" + "\n".join(lines) + mark + sections
