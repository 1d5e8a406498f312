"""The benchmark sets by name."""

from __future__ import annotations

from denspu.data import cifar10, digits, fashion_mnist
from denspu.data._spec import Spec
from denspu.exceptions import UnknownPartError, did_you_mean

SETS: dict[str, Spec] = {
    spec.name: spec for spec in (digits.SPEC, fashion_mnist.SPEC, cifar10.SPEC)
}


def find_set(name: str) -> Spec:
    """Return the facts of one set, or raise with the nearest name."""
    if name in SETS:
        return SETS[name]
    raise UnknownPartError(
        f"There is no data set called {name!r}.{did_you_mean(name, SETS)} "
        f"Known: {', '.join(SETS)}."
    )
