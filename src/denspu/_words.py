"""Numbers in words: with their nouns, and as times."""

from __future__ import annotations


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
