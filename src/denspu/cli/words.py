"""Errors in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_ARGUMENT = re.compile(
    r"""\b([a-z_]+)                                # a name
    (?:\['([^']*)'\])?=                            # perhaps a key of it
    (?:'([^']*)'|"([^"]*)"|(-?\w+(?:[.+-]\w+)*))?  # perhaps a value""",
    re.VERBOSE,
)


def as_options(text: str, options: Mapping[str, str]) -> str:
    """Write ``label_column='x'`` as ``--label-column x`` where there is that option.

    Errors of the library name the arguments of its functions; options are called alike.
    """

    def told(found: re.Match[str]) -> str:
        name, key, *values = found.groups()
        if name not in options:
            return found[0]
        value = next((v for v in values if v is not None), None)
        if value is None:
            return options[name]
        pair = value if key is None else f"{key}={value}"
        return f"{options[name]} {pair if pair and ' ' not in pair else repr(pair)}"

    return _ARGUMENT.sub(told, text)


def options_of(command: Any, words: Sequence[str]) -> dict[str, str]:
    """Return the options of the verb that was typed, by the name of the argument."""
    for word in words:
        verbs = getattr(command, "commands", {})
        if word not in verbs:
            break
        command = verbs[word]
    return {
        param.name: max(param.opts, key=len)
        for param in command.params
        if param.opts[0].startswith("--")
    }
