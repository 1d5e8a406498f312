"""The one place that shows progress: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[str], None]
"""Call once a unit of work, with a short note such as ``"loss 0.12"``."""

_LINES = 10


@contextmanager
def progress(name: str, total: int, verbose: int = 0) -> Iterator[Advance]:
    """Show the progress of ``total`` units of work.

    Nothing is shown with ``verbose=0``. Otherwise a rich bar on a terminal, and at
    most ten plain lines where the output goes to a file.
    """
    if not verbose or total <= 0:
        yield lambda note: None
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
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(f"{name:<12}", total=total, note="")
        yield lambda note: bar.update(task, advance=1, note=note)


def _lines(name: str, total: int) -> Advance:
    done = 0
    every = max(1, total // _LINES)

    def advance(note: str) -> None:
        nonlocal done
        done += 1
        if done % every == 0 or done == total:
            print(f"{name:<12} {done}/{total} {note}", file=sys.stderr, flush=True)

    return advance
