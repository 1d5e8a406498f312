"""The one registry: frozen facts about every method and part, by key.

Facts live here as plain data and classes are imported only when one is built, so
``denspu list`` starts without torch or scikit-learn. The facts themselves are in
:mod:`denspu._catalogue`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from denspu.exceptions import (
    InvalidParameterError,
    UnknownPartError,
    did_you_mean,
    with_article,
)

Kind = Literal[
    "method",
    "encoder",
    "densifier",
    "detector",
    "selector",
    "classifier",
    "refiner",
    "prior",
]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known about one registered thing, before importing it."""

    key: str
    """Name in ``make(key)``, in file names, tests and docs."""
    kind: Kind
    """Which room of the walk it belongs to."""
    target: str
    """``module:Class``, imported on first use."""
    summary: str
    """One line for lists and help."""
    paper: str | None = None
    """Where it comes from: authors, year, title."""
    assumption: Literal["SCAR", "SAR"] | None = None
    """How labels are assumed to be chosen among the positives."""
    scenario: Literal["one-sample", "two-sample", "any"] | None = None
    """How P and U were drawn."""
    needs_prior: bool = False
    """Must a class prior be given or estimated?"""
    deep: bool = False
    """Does it train a neural network?"""
    inputs: tuple[str, ...] = ("table",)
    """Input kinds it takes."""
    uses_known_negatives: bool = False
    """Does fitting use ``known_negative`` rows?"""
    reference_licence: str | None = None
    """Licence of the authors' code, where there is any."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that differ from the class's own defaults."""

    def load(self) -> type:
        """Import and return the class."""
        module, _, name = self.target.partition(":")
        return getattr(importlib.import_module(module), name)

    def takes(self) -> frozenset[str]:
        """Return the names of the class's parameters."""
        return frozenset(inspect.signature(self.load()).parameters)

    def build(self, **parameters: Any) -> Any:
        """Return an instance; unknown parameters are refused with a suggestion."""
        cls, allowed = self.load(), self.takes()
        for name in parameters:
            if name.split("__")[0] not in allowed:
                raise InvalidParameterError(
                    f"{self.key!r} has no parameter {name!r}."
                    f"{did_you_mean(name, allowed)} It takes: "
                    f"{', '.join(sorted(allowed)) or 'none'}."
                )
        nested = {k: v for k, v in parameters.items() if "__" in k}
        flat = {k: v for k, v in parameters.items() if "__" not in k}
        part = cls(**{**self.defaults, **flat})
        return part.set_params(**nested) if nested else part

    def facts(self) -> dict[str, Any]:
        """Return the facts as plain data for JSON and tables."""
        facts = asdict(self)
        facts["inputs"] = list(self.inputs)
        facts["defaults"] = dict(self.defaults)
        return facts


class Registry:
    """Entries by ``(kind, key)``; keys are unique within a kind."""

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        table: dict[tuple[str, str], Entry] = {}
        for entry in entries:
            if (entry.kind, entry.key) in table:
                raise ValueError(f"{entry.kind} {entry.key!r} is registered twice")
            table[entry.kind, entry.key] = entry
        self._table = MappingProxyType(table)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._table.values())

    def of_kind(self, kind: str) -> dict[str, Entry]:
        """Return the entries of one kind by key."""
        return {key: entry for (k, key), entry in self._table.items() if k == kind}

    def get(self, key: str, kind: str = "method") -> Entry:
        """Return one entry, or raise with the nearest name.

        Raises
        ------
        UnknownPartError
            If nothing of that kind carries the key.
        """
        known = self.of_kind(kind)
        if key in known:
            return known[key]
        elsewhere = [e.kind for e in self if e.key == key]
        hint = did_you_mean(key, known)
        if elsewhere:
            hint = (
                f" {key!r} is {with_article(elsewhere[0])}, not {with_article(kind)}."
            )
        raise UnknownPartError(
            f"There is no {kind} called {key!r}.{hint} "
            f"Known: {', '.join(sorted(known)) or 'none yet'}."
        )


def registry() -> Registry:
    """Return the registry of everything denspu ships."""
    from denspu._catalogue import REGISTRY

    return REGISTRY


def make(key: str, **parameters: Any) -> Any:
    """Build a registered method by its key.

    Parameters
    ----------
    key : str
        A method key, as shown by ``denspu list``.
    **parameters
        Passed to the constructor.

    Examples
    --------
    >>> from denspu import make
    >>> make("dens_pu", random_state=0)
    DensPU(random_state=0)
    """
    return registry().get(key, "method").build(**parameters)


def resolve_part(value: Any, kind: Kind, *, argument: str) -> Any:
    """Turn a key into a fresh part; pass an object with the right methods through."""
    if isinstance(value, str):
        return registry().get(value, kind).build()
    needed = PART_METHODS[kind]
    found = [
        any(callable(getattr(value, name, None)) for name in names.split(" or "))
        for names in needed
    ]
    if isinstance(value, type) or not all(found):
        keys = ", ".join(sorted(registry().of_kind(kind)))
        raise InvalidParameterError(
            f"{argument}={value!r} is not {with_article(kind)}: it must be one of "
            f"{keys}, or an object with {' and '.join(needed)}."
        )
    return value


PART_METHODS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "encoder": ("fit", "transform"),
        "densifier": ("densify",),
        "detector": ("fit", "score_samples"),
        "selector": ("select",),
        "classifier": ("fit", "decision_function or predict_proba"),
        "refiner": ("refine", "decision_function"),
        "prior": ("estimate",),
    }
)
