"""Numbers, times and names as people read them."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from denspu._progress import span

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


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


# --- numbers ------------------------------------------------------------------------


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


def percent(share: Any) -> str:
    """Return a percentage, never rounded to 0 or 100 if it is neither."""
    return "–" if not is_number(share) else f"{digits(share)}{SPACE}%"


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
    if 0.99 < share < 1:
        return f">99{SPACE}%"
    return f"{100 * share:.0f}{SPACE}%"


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


# --- times --------------------------------------------------------------------------


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
    words = f"{found.day} {found:%b %Y, %H:%M}{zone}"
    return words.replace(" ", SPACE)


# --- words --------------------------------------------------------------------------


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
