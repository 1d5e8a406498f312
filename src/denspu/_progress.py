"""What a person sees of a fit: numbers and names in words, progress, stages."""

from __future__ import annotations

import datetime as dt
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol, overload

UNSEEN = dict.fromkeys(
    [
        *(c for c in range(0x20) if c not in (0x09, 0x0A)),
        *range(0x7F, 0xA0),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    ],
    "\N{REPLACEMENT CHARACTER}",
)
LONGEST_WORD = 20
"""A longer word is cut where a text must end."""
LONGEST_NAME = 200
SPACE = "\u00a0"
"""Keeps a number and its unit on one line."""

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


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and math.isfinite(value)


def whole(value: float) -> str:
    """Return a count: ``1,240``."""
    return f"{round(value):,}"


def number(value: Any, digits: int = 3) -> str:
    """Return a number with a few digits that count: ``0.0123``, ``12,346``."""
    if not is_number(value):
        return "–"
    if isinstance(value, int) or abs(value) >= 10**digits:
        return f"{round(value):,}"
    return f"{float(value):.{digits}g}"


def digits(share: float) -> str:
    """Return the digits of a percentage: ``93``, ``2.1``, ``over 99.9``."""
    value = 100 * share
    if 0 < value < 0.01:
        return "under 0.01"
    if 99.9 < value < 100:
        return "over 99.9"
    places = 2 if value < 1 else 1 if value < 10 or value > 99 else 0
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: Any) -> str:
    """Return a percentage, never rounded to 0 or 100 if it is neither."""
    return "–" if not is_number(share) else f"{digits(share)}{SPACE}%"


def estimate(share: Any) -> str:
    """Return an estimated share as a percentage; nobody knows it to a thousandth."""
    near_all = is_number(share) and share >= 0.999
    return percent(1) if near_all else percent(share)


def chance(share: Any) -> str:
    """Return a chance as a whole percentage; finer steps would be made up."""
    if not is_number(share):
        return "–"
    if 0 < share < 0.01:
        return f"<1{SPACE}%"
    return f">99{SPACE}%" if 0.99 < share < 1 else f"{100 * share:.0f}{SPACE}%"


def percent_range(low: Any, high: Any) -> str:
    """Return two shares: ``89 to 96 %``."""
    if not (is_number(low) and is_number(high)):
        return "–"
    ends = [digits(v) if v < 0.985 else f"{100 * v:.0f}" for v in (low, high)]
    return f"{ends[0]} to {ends[1]}{SPACE}%"


def count_range(value: float, low: float, high: float) -> tuple[str, str]:
    """Return a count and its interval, rounded as far as the interval allows."""
    width = high - low
    unit = 10 ** max(0, math.floor(math.log10(width / 5))) if width > 0 else 1
    near = [unit * round(v / unit) for v in (value, low, high)]
    return f"{near[0]:,}", f"{near[1]:,} to {near[2]:,}"


def seconds(value: Any) -> str:
    """Return a time: ``0.4 s``, ``12 s``, ``3 min 12 s``, ``2 h 5 min``."""
    if not is_number(value):
        return "–"
    if value < 10:
        return f"{value:.1f} s" if value >= 0.05 else "under 0.1 s"
    return span(value)


def moment(text: str) -> str:
    """Return an ISO time for people: ``31 Jan 2026, 12:00 UTC``."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return plain(text, 60)
    zone = " UTC" if found.tzinfo is None or not found.utcoffset() else ""
    return f"{found.day} {found:%b %Y, %H:%M}{zone}".replace(" ", SPACE)


# --- names and texts ----------------------------------------------------------------


def plain(value: Any, length: int = 300) -> str:
    """Return any value as one short text without control characters."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if is_number(value):
        return number(value)
    if isinstance(value, Mapping):
        value = ", ".join(f"{k} {plain(v)}" for k, v in value.items())
    elif isinstance(value, list | tuple):
        value = ", ".join(plain(v) for v in value)
    return shorten(clean(str(value)), length)


def clean(text: str) -> str:
    """Replace by a visible mark what cannot be seen and could mislead.

    These are control characters, those that turn the direction of writing, and halves
    of characters.
    """
    kept = text.replace("\r\n", "\n").translate(UNSEEN)
    return kept.encode("utf-8", "replace").decode("utf-8")


def shorten(text: str, length: int) -> str:
    """Return one line of at most ``length`` characters, cut between words."""
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    cut = text[:length].rfind(" ")
    kept = text[:cut] if cut >= length - LONGEST_WORD else text[: length - 1]
    return kept.rstrip(" .,;:-") + "…"


def short_name(name: Any) -> str:
    """Return a name on one line, cut in the middle if it is very long."""
    text = " ".join(clean(str(name)).split())
    half = LONGEST_NAME // 2
    return text if len(text) <= 2 * half else f"{text[:half]}…{text[1 - half :]}"


def marked(sentence: str) -> str:
    """Return a sentence as HTML; words between backticks become code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(clean(sentence)))


def readable(name: Any) -> str:
    """Return a key as words: ``predicted_inlier`` → ``predicted inlier``."""
    return str(name).replace("_", " ").strip()


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
    line that renews itself on a terminal, and at most ten lines where the output goes
    to a file.
    """
    if not verbose or total < least:
        yield lambda note, n=1: None
        return
    terminal = sys.stderr.isatty()
    every = 1 if terminal else max(1, total // _LINES)
    done, start, alone = 0, time.monotonic(), threading.Lock()

    def advance(note: str, n: int = 1) -> None:
        nonlocal done
        with alone:
            before, done = done, done + n
            if done // every > before // every or done == total:
                spent = _times(time.monotonic() - start, done, total)
                line = f"{name:<12} {done}/{total} {note} · {spent}"
                show_line = f"\r{line}\033[K" if terminal else f"{line}\n"
                print(show_line, end="", file=sys.stderr, flush=True)

    try:
        yield advance
    finally:
        if terminal and done:
            print(file=sys.stderr)


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
