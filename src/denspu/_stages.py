"""What each stage of a fit did, in words and numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, overload


@dataclass(frozen=True)
class Stage:
    """One step of the walk: its name, its seconds, and its facts."""

    name: str
    seconds: float
    facts: dict[str, Any]

    def __str__(self) -> str:
        facts = " · ".join(f"{k} {show(v)}" for k, v in self.facts.items())
        return f"{self.name:<10} {self.seconds:7.2f} s  {facts}"


Hear = Callable[[Stage], None]

_heard: ContextVar[Hear | None] = ContextVar("heard", default=None)


@contextmanager
def hearing(hear: Hear) -> Iterator[None]:
    """Call ``hear`` with every stage that ends inside the block, as it ends."""
    token = _heard.set(hear)
    try:
        yield
    finally:
        _heard.reset(token)


class Stages(Sequence[Stage]):
    """The stages of one fit, by position or by name.

    Examples
    --------
    >>> stages = Stages()
    >>> with stages.stage("encode") as facts:
    ...     facts["dimension"] = 64
    >>> stages["encode"].facts
    {'dimension': 64}
    """

    def __init__(self) -> None:
        self._stages: list[Stage] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, Any]]:
        """Time the block and keep the facts it writes down."""
        facts: dict[str, Any] = {}
        start = time.perf_counter()
        yield facts
        stage = Stage(name, time.perf_counter() - start, facts)
        self._stages.append(stage)
        if (hear := _heard.get()) is not None:
            hear(stage)

    @overload
    def __getitem__(self, key: int | str) -> Stage: ...
    @overload
    def __getitem__(self, key: slice) -> list[Stage]: ...
    def __getitem__(self, key: int | str | slice) -> Stage | list[Stage]:
        if isinstance(key, str):
            for stage in self._stages:
                if stage.name == key:
                    return stage
            raise KeyError(f"no stage {key!r}; there are {', '.join(self.names)}")
        return self._stages[key]

    def __len__(self) -> int:
        return len(self._stages)

    @property
    def names(self) -> list[str]:
        """Return the stages' names in order."""
        return [stage.name for stage in self._stages]

    @property
    def seconds(self) -> dict[str, float]:
        """Return the seconds of each stage and their total."""
        seconds = {stage.name: stage.seconds for stage in self._stages}
        return {**seconds, "total": sum(seconds.values())}

    def __repr__(self) -> str:
        return "\n".join(str(stage) for stage in self._stages)


def show(value: Any) -> str:
    """Return a fact as a short text."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
