"""The one registry: facts about every method and part by key, and how one is built.

Each class states its facts in ``about``. ``make catalogue`` writes them into
``catalogue.json``, so that ``denspu list`` starts without torch or scikit-learn.
Classes are imported only when one is built.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from denspu.exceptions import (
    InvalidParameterError,
    UnknownPartError,
    did_you_mean,
    with_article,
)

if TYPE_CHECKING:
    from denspu._random import Randomness

Kind = Literal[
    "method", "encoder", "densifier", "detector", "selector", "classifier", "refiner",
    "prior",
]  # fmt: skip
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the catalogue; ``About`` in ``_parameters.py`` explains the facts."""

    key: str
    kind: Kind
    target: str
    """``module:Class``, imported on first use."""
    summary: str
    paper: str | None
    assumption: Literal["SCAR", "SAR"] | None
    scenario: Literal["one-sample", "two-sample", "any"] | None
    needs_prior: bool
    deep: bool
    inputs: tuple[str, ...]
    uses_known_negatives: bool
    reference_licence: str | None
    defaults: Mapping[str, Any]
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
        nested = {k: parameters.pop(k) for k in list(parameters) if "__" in k}
        part = cls(**{**self.defaults, **parameters})
        return part.set_params(**nested) if nested else part

    def facts(self) -> dict[str, Any]:
        """Return the facts as plain data for JSON and tables."""
        return asdict(self)


class Registry:
    """Entries by ``(kind, key)``; keys are unique within a kind."""

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self._table = {(entry.kind, entry.key): entry for entry in entries}
        if len(self._table) < len(entries):
            raise ValueError("the catalogue names a key twice")

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
        hint = did_you_mean(key, known)
        for other in (e.kind for e in self if e.key == key):
            hint = f" {key!r} is {with_article(other)}, not {with_article(kind)}."
        raise UnknownPartError(
            f"There is no {kind} called {key!r}.{hint} "
            f"Known: {', '.join(sorted(known)) or 'none yet'}."
        )


@cache
def registry() -> Registry:
    """Return the registry of everything denspu ships."""
    text = Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8")
    rows = [{**row, "inputs": tuple(row["inputs"])} for row in json.loads(text)]
    return Registry(tuple(Entry(**row) for row in rows))


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
    found = all(
        any(callable(getattr(value, name, None)) for name in names.split(" or "))
        for names in needed
    )
    if isinstance(value, type) or not found:
        keys = ", ".join(sorted(registry().of_kind(kind)))
        raise InvalidParameterError(
            f"{argument}={value!r} is not {with_article(kind)}: it must be one of "
            f"{keys}, or an object with {' and '.join(needed)}."
        )
    return value


PART_METHODS: Mapping[str, tuple[str, ...]] = {
    "encoder": ("fit", "transform"),
    "densifier": ("densify",),
    "detector": ("fit", "score_samples"),
    "selector": ("select",),
    "classifier": ("fit", "decision_function or predict_proba"),
    "refiner": ("refine", "decision_function"),
    "prior": ("estimate",),
}


def prepare_part(
    part: Any,
    randomness: Randomness,
    name: str,
    *,
    device: str = "auto",
    verbose: int = 0,
) -> Any:
    """Clone a part and hand down what the method resolved: seed, device, verbosity.

    A part that was given its own value keeps it.
    """
    from sklearn.base import clone  # not before it is needed: lists start faster

    part = clone(part, safe=False)  # an object without get_params is copied
    known = settings_of(part)
    passed: dict[str, Any] = {}
    if "random_state" in known and known["random_state"] is None:
        passed["random_state"] = randomness.seed(name)
    if known.get("device") == "auto":
        passed["device"] = device
    ours = type(part).__module__.startswith("denspu.")
    if ours and known.get("verbose") == 0 and verbose:  # others print as they please
        passed["verbose"] = verbose
    return part.set_params(**passed) if passed else part


def settings_of(part: Any) -> dict[str, Any]:
    """Return the settings of a part; none where it does not tell them."""
    return part.get_params(deep=False) if hasattr(part, "get_params") else {}


def give_time(encoder: Any, seconds: float | None) -> None:
    """Let an encoder that can be short take so long, unless it was told otherwise."""
    known = settings_of(encoder)
    if "max_seconds" in known and known["max_seconds"] is None and seconds:
        encoder.set_params(max_seconds=seconds)


def inputs_of(part: Any) -> tuple[str, ...] | None:
    """Return the kinds of data a part takes (a user's own part: its ``inputs``)."""
    about = getattr(part, "about", None)
    inputs = getattr(part, "inputs", None if about is None else about.inputs)
    return (*inputs, "table") if inputs and "embedding" in inputs else inputs


def takes_rows(part: Any, kind: str) -> bool:
    """Tell whether a classifier takes rows as they came, not their embedding."""
    return kind != "table" and kind in (inputs_of(part) or ())


def refuse_kind(part: Any, kind: str, argument: str) -> None:
    """Raise if a part cannot take the kind of input at hand."""
    inputs = inputs_of(part)
    if inputs is not None and kind not in inputs:
        given = {"image": "an image array", "table": "a table", "text": "texts"}[kind]
        raise InvalidParameterError(
            f"{argument}={type(part).__name__} takes {' or '.join(inputs)} input, and "
            f"would be given {given}. Choose another {argument}."
        )
