"""What a method hands to its parts: a seed, the device, time; and what they take."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from denspu._random import Randomness
from denspu.exceptions import InvalidParameterError


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


def refuse_kind(part: Any, kind: str, argument: str) -> None:
    """Raise if a part cannot take the kind of input at hand."""
    inputs = getattr(part, "inputs", None)
    if inputs is not None and kind not in inputs:
        given = {"image": "an image array", "table": "a table", "text": "texts"}[kind]
        raise InvalidParameterError(
            f"{argument}={type(part).__name__} takes {' or '.join(inputs)} input, and "
            f"would be given {given}. Choose another {argument}."
        )
