"""Groups, times, and which labelled positives are held out."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu._words import does
from denspu.data import Items, find_duplicates, holdout
from denspu.exceptions import InvalidInputError, InvalidParameterError

FEWEST = 10
"""Labelled positives from which some can be spared for the hold-out."""

MARK = "{group}"
DATE_FORMATS = ("%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y")


# --- groups --------------------------------------------------------------------------


def is_pattern(text: str) -> bool:
    """Tell a pattern over paths from the name of a column."""
    return MARK in text or "(" in text


def path_pattern(text: str) -> re.Pattern[str]:
    r"""Return the regular expression of a pattern.

    In ``"{group}/*"`` a star stands for anything but a slash, and for anything at the
    end; a text without ``{group}`` is a regular expression with a group of its own.

    Examples
    --------
    >>> path_pattern("*/{group}/*").search("2024/anna/left/1.png")["group"]
    'anna'
    >>> path_pattern(r"patient(\d+)").search("a/patient07_2.png")[1]
    '07'
    """
    if text.count(MARK) == 1:
        parts = re.split(r"(\{group\}|\*)", text)
        while parts and not parts[-1]:
            parts.pop()
        words = {MARK: "(?P<group>[^/]+)", "*": "[^/]*"}
        made = [words.get(part, re.escape(part)) for part in parts]
        if parts[-1] == "*":
            made[-1] = ".*"
        return re.compile(f"^{''.join(made)}$")
    try:
        found = re.compile(text)
    except re.error as error:
        raise InvalidParameterError(
            f"groups={text!r} is no regular expression: {error}. Write {MARK} where "
            f"the group stands in the path, as in '{MARK}/*'."
        ) from None
    if found.groups == 0:
        raise InvalidParameterError(
            f"groups={text!r} says nowhere what the group is. Write {MARK} there, as "
            f"in '{MARK}/*', or put brackets around that part of a regular expression."
        )
    return found


def groups_of(items: Sequence[Items], wanted: str) -> tuple[list[NDArray[Any]], str]:
    """Return the group of every item, and a sentence on those without (or nothing)."""
    if wanted in items[0].aside:
        named = [[_word(v) for v in one.aside[wanted]] for one in items]
    else:
        named = [_from_paths(one.ids, path_pattern(wanted)) for one in items]
    lonely = [i for one in named for i, name in enumerate(one) if name is None]
    total = sum(map(len, named))
    if len(lonely) == total:
        raise InvalidInputError(
            f"groups={wanted!r} names no item a group; the first item is "
            f"{items[0].ids[0]!r}. Correct the pattern or the column."
        )
    told = ""
    if lonely:
        told = (
            f"{len(lonely):,} of {total:,} items {does(len(lonely), 'has', 'have')} no "
            f"group by {wanted!r}: each counts as a group of its own."
        )
    found = []
    for number, one in enumerate(named):
        words = [
            f"group {name}" if name is not None else f"alone {number} {i}"
            for i, name in enumerate(one)
        ]
        found.append(np.array(words, dtype=np.str_))
    return found, told


def _from_paths(ids: Sequence[str], pattern: re.Pattern[str]) -> list[str | None]:
    which = "group" if "group" in pattern.groupindex else 1
    matches = [pattern.search(name.replace("\\", "/")) for name in ids]
    return [None if match is None else match[which] for match in matches]


def _word(value: Any) -> str | None:
    return None if value is None or value != value else str(value)


# --- times ---------------------------------------------------------------------------


def times_of(items: Items, column: str) -> FloatArray:
    """Return the times of items as numbers that can be ordered; NaN where missing."""
    values = [None if _word(v) is None else v for v in items.aside[column]]
    present = [v for v in values if v is not None]
    if not present:
        raise InvalidInputError(f"time={column!r}: the column is empty in P.")
    for read in (_number, _iso, *(_in_form(form) for form in DATE_FORMATS)):
        found = [None if v is None else read(v) for v in values]
        if sum(v is not None for v in found) == len(present):
            return np.array([np.nan if v is None else v for v in found])
    odd = next(v for v in present if _iso(v) is None)
    raise InvalidInputError(
        f"time={column!r} holds {odd!r}, and not all its values are numbers or dates "
        "of one form. Write dates as 2024-05-31."
    )


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _iso(value: Any) -> float | None:
    try:
        return _seconds(dt.datetime.fromisoformat(str(value).strip()))
    except ValueError:
        return None


def _in_form(form: str) -> Any:
    def read(value: Any) -> float | None:
        try:
            return _seconds(dt.datetime.strptime(str(value).strip(), form))
        except ValueError:
            return None

    return read


def _seconds(moment: dt.datetime) -> float:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return moment.timestamp()


# --- hold-out ------------------------------------------------------------------------


def hold_out(
    P: Items,
    share: float,
    *,
    groups: NDArray[Any] | None = None,
    times: FloatArray | None = None,
    seed: int = 0,
) -> tuple[BoolArray, str]:
    """Choose which labelled positives are kept from the fit.

    Whole groups are held out; with times, the latest of those that have one. A
    positive that has a copy among those that stay labelled would be recognised, not
    judged: it stays too, with its group.

    Returns
    -------
    mask, sentence
        The sentence says how it was done, or why nothing is held out.
    """
    n = len(P)
    none = np.zeros(n, dtype=bool)
    if share == 0:
        return none, "Nothing is held out, so how good the answers are is not known."
    if n < FEWEST:
        return none, (
            f"With {n} labelled positives none can be spared: nothing is held out, and "
            f"how good the answers are is not known. {FEWEST} are needed."
        )
    units = (
        np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    )
    if len(np.unique(units)) < 2:
        return none, (
            "All labelled positives belong to one group: nothing is held out, and how "
            "good the answers are is not known."
        )
    rng = Randomness(seed).numpy("hold-out")
    if times is None:
        _, rows = holdout(n, share, groups=units, rng=rng)
        held = none.copy()
        held[rows] = True
    else:
        held = _latest(units, times, share, rng)
    back = _known_again(P, units, held)
    held &= ~back
    if not held.any():
        return none, (
            "Labelled positives are copies of each other, so that none can be held out "
            "fairly. Remove the copies."
        )
    return held, _told(held, back, groups, times)


def _told(held: BoolArray, back: BoolArray, groups: Any, times: Any) -> str:
    which = "the latest " if times is not None else ""
    whole = " in whole groups" if groups is not None else ""
    told = (
        f"{which.capitalize()}{int(held.sum()):,} of {len(held):,} labelled positives "
        f"{does(int(held.sum()), 'is', 'are')} held out{whole} to judge the answers."
    )
    if back.any():
        n = int(back.sum())
        how = does(n, "stays in the fit, as a copy", "stay in the fit, as copies")
        told += f" {n:,} {how} of others there."
    return told


def _latest(
    units: IntArray, times: FloatArray, share: float, rng: np.random.Generator
) -> BoolArray:
    """Hold out the units whose last time is latest; ties are broken by lot.

    A unit without any time is never called late.
    """
    known = np.where(np.isnan(times), -np.inf, times)
    names = rng.permutation(np.unique(units))
    last = np.array([known[units == unit].max() for unit in names])
    order = np.argsort(-last, kind="stable")
    target = share * len(units)
    held = np.zeros(len(units), dtype=bool)
    for unit in names[order[np.isfinite(last[order])]][: len(names) - 1]:
        rows = units == unit
        after = held.sum() + rows.sum()
        if held.any() and abs(after - target) >= abs(held.sum() - target):
            break
        held |= rows
    return held


def _known_again(P: Items, units: IntArray, held: BoolArray) -> BoolArray:
    """Return held-out rows that must stay: their unit has a copy among the others."""
    back = np.zeros(len(held), dtype=bool)
    while (held & ~back).any():
        still = np.flatnonzero(held & ~back)
        twins = find_duplicates(P.take(~(held & ~back)), P.take(still)).copies
        if not twins.any():
            break
        back |= held & np.isin(units, units[still[twins]])
    return back
