"""The one place that shows progress: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from denspu._words import span

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
