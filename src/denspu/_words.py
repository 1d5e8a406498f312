"""Numbers that agree with their words."""

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
