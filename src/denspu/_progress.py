"""What a person sees of a fit: progress while it runs, stages, numbers in words."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, overload

# --- numbers in words ---------------------------------------------------------------


def many(n: int, noun: str) -> str:
    """Return ``1 image`` or ``1,240 images``.

    Examples
    --------
    >>> many(1, "group"), many(1240, "row")
    ('1 group', '1,240 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def does(n: int, one: str, more: str) -> str:
    """Return the verb for a number of things.

    Examples
    --------
    >>> does(1, "is", "are"), does(0, "is", "are")
    ('is', 'are')
    """
    return one if n == 1 else more


def span(seconds: float) -> str:
    """Return a time in whole seconds, by its two largest units.

    Examples
    --------
    >>> span(0.4), span(75), span(7500)
    ('0 s', '1 min 15 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


# --- progress -----------------------------------------------------------------------

_LINES = 10


class Advance(Protocol):
    """Call after some units of work, from any thread."""

    def __call__(self, note: str, n: int = 1) -> None:
        """Count ``n`` units, with a short note such as ``"loss 0.12"``."""
        ...


@contextmanager
def progress(
    name: str, total: int, verbose: int = 0, *, least: int = 1
) -> Iterator[Advance]:
    """Show the progress of ``total`` units of work.

    Nothing is shown with ``verbose=0``, nor of fewer than ``least`` units. Otherwise a
    rich bar on a terminal, and at most ten plain lines where the output goes to a file.
    """
    if not verbose or total < least:
        yield lambda note, n=1: None
    elif sys.stderr.isatty():
        with _bar(name, total) as advance:
            yield advance
    else:
        yield _lines(name, total)


@contextmanager
def _bar(name: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(f"{name:<12}", total=total, note="")
        yield lambda note, n=1: bar.update(task, advance=n, note=note)


def _lines(name: str, total: int) -> Advance:
    done = 0
    every = max(1, total // _LINES)
    start = time.monotonic()
    alone = threading.Lock()

    def advance(note: str, n: int = 1) -> None:
        nonlocal done
        with alone:
            before, done = done, done + n
            if done // every > before // every or done == total:
                spent = _times(time.monotonic() - start, done, total)
                line = f"{name:<12} {done}/{total} {note} · {spent}"
                print(line, file=sys.stderr, flush=True)

    return advance


def _times(seconds: float, done: int, total: int) -> str:
    """Return the time spent and, if work is left, the time it takes at this pace."""
    if done >= total:
        return span(seconds)
    return f"{span(seconds)}, about {span(seconds / done * (total - done))} left"


# --- what each stage did ------------------------------------------------------------


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
