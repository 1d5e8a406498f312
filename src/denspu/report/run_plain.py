"""Sentences of the library in the words of the page: no letters, few digits.

The library speaks of P, U and rows. A reader of the page has labelled positives and
unlabelled images, texts or rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from denspu.report.run_text import SPACE, number, plain, readable, whole
from denspu.report.run_words import noun
from denspu.runs.facts import RunFacts, RunRows

ALONE = r"(?<![\w/\\.'\"-]){}(?![\w/\\'\"-]|\.\w)"
"""A letter that stands alone, and is no part of a name or path."""
POWER = re.compile(r"\b\d(?:\.\d+)?e\+\d+\b")
SHARE = re.compile(r"\b(\d+(?:\.\d+)?)%")
AT_ONCE = 230
"""Characters of a check that are shown before the rest folds away."""
LETTERS = {"P", "U"}


class Speaker:
    """Turns sentences of the library into those of one page."""

    def __init__(self, kind: str, *, spell: bool = True) -> None:
        self.kind = kind
        self.spell = spell

    @classmethod
    def of(cls, facts: RunFacts, rows: RunRows) -> Speaker:
        """Return the speaker of a run; a column named P or U keeps its letter."""
        columns = set(getattr(rows.positive.X, "columns", ()))
        return cls(facts.kind, spell=not columns & LETTERS)

    def say(self, text: Any, length: int = 1_000) -> str:
        """Return one sentence of the library.

        Examples
        --------
        >>> Speaker("image").say("The median is 4.44e+03 in P and 12 in U.")
        'The median is 4,440 among the labelled positives and 12 among the unlabelled images.'
        """  # noqa: E501
        told = plain(text, length)
        told = POWER.sub(lambda m: number(float(m[0])), told)
        told = SHARE.sub(lambda m: _share(m[1]), told)
        return self._spelled(told) if self.spell else told

    def _spelled(self, text: str) -> str:
        words = {"P": "the labelled positives", "U": f"the unlabelled {self.things}"}
        for letter, meaning in words.items():
            among = ALONE.format(f"in {letter}")
            text = re.sub(among, f"among {meaning}", text)
            first = meaning[:1].upper() + meaning[1:]
            text = re.sub(r"(?:^|(?<=[.!?] ))" + ALONE.format(letter), first, text)
            text = re.sub(ALONE.format(letter), meaning, text)
        if self.kind != "table":
            text = re.sub(r"\brows\b", self.things, text)
        return text

    @property
    def things(self) -> str:
        """What the items are called."""
        return noun(self.kind)


def _share(digits: str) -> str:
    """Return a percentage with two digits that count, and a space."""
    value = float(digits)
    text = f"{value:.0f}" if value >= 10 or "." not in digits else f"{value:.2g}"
    return f"{text}{SPACE}%"


# --- checks -------------------------------------------------------------------------

CHECKS = {
    "scar": "Are the labelled positives typical?",
    "labels at random": "Are the labelled positives typical?",
    "trivial": "Does the model tell anything apart?",
    "trivial model": "Does the model tell anything apart?",
    "shortcut": "Could the model cheat?",
    "shortcuts": "Could the model cheat?",
    "copies": "Copies",
    "prior": "Do the estimates of the share agree?",
}
"""What the checks ask, by their names in lower case."""

PLAIN = {
    "scar": "Nothing speaks against it: those held out look like the {things} that "
    "score highest. This cannot be seen for positives that score low.",
    "trivial": "Yes: the labelled positives held out score higher than the rest.",
}
"""What a good outcome means, by the first word of the check."""

SAME = {"labels at random": "scar", "trivial model": "trivial"}
ORDER = ("bad", "open", "good")


@dataclass(frozen=True)
class CheckWords:
    """One check: what was looked at, what was found."""

    name: str
    state: str
    """``good``, ``bad`` or ``open``."""
    sentence: str
    rest: str
    """Numbers and reservations that fold out."""


def check_words(check: Mapping[str, Any], speaker: Speaker) -> CheckWords:
    """Return a check for people; one that could not be made is open, not good."""
    name, told = readable(check.get("name", "")), str(check.get("sentence", ""))
    state = {True: "good", False: "bad"}.get(check.get("ok"), "open")  # type: ignore
    key = SAME.get(name.lower(), name.lower())
    title = CHECKS.get(name.lower(), name[:1].upper() + name[1:])
    said = speaker.say(told)
    if state == "good" and key in PLAIN:
        short = PLAIN[key].format(things=f"unlabelled {speaker.things}")
        return CheckWords(title, state, short, said if len(said) > 60 else "")
    shown = AT_ONCE if state == "good" else 2 * AT_ONCE
    return CheckWords(title, state, *first_sentences(said, shown))


def checks_in_order(facts: RunFacts, speaker: Speaker) -> list[CheckWords]:
    """Return the checks, the failed ones first."""
    made = [check_words(c, speaker) for c in facts.checks]
    return sorted(made, key=lambda c: ORDER.index(c.state))


def first_sentences(text: str, length: int = AT_ONCE) -> tuple[str, str]:
    """Return the sentences that fit into a length, at least one, and the rest.

    Examples
    --------
    >>> first_sentences("One is here. Two is here.", 15)
    ('One is here.', 'Two is here.')
    """
    parts = re.split(r"(?<=[.!?]) (?=[A-Z])", text)
    n = 1
    while n < len(parts) and len(" ".join(parts[: n + 1])) <= length:
        n += 1
    return " ".join(parts[:n]), " ".join(parts[n:])


# --- lists --------------------------------------------------------------------------

LISTS = {
    "sure negatives": (
        "{n} {things} to set aside",
        "On average at most {level} of them are positive, if the labelled positives "
        "held out are like the hidden ones. This controls the list of declared "
        "negatives; the other {things} carry no promise.",
    ),
    "negatives that lose few positives": (
        "{n} {things} to set aside, if you can spare some positives",
        "On average at most {level} of the hidden positives are lost with them, if "
        "the labelled positives held out are like the hidden ones. This controls the "
        "list of declared negatives, too.",
    ),
    "positives that let few negatives in": (
        "{n} {things} to take as positive",
        "Of all negatives, on average at most {level} are on this list, if positives "
        "tend to score higher. This controls the list of declared positives; the "
        "unlabelled {things} stand in for the negatives, which makes it cautious.",
    ),
}
"""Title and promise of a list, by its name."""

NONE = "No list of them can keep a promise here: the evidence is too thin."


@dataclass(frozen=True)
class ListWords:
    """A list with a promise."""

    title: str
    sentence: str


def list_words(found: Mapping[str, Any], speaker: Speaker) -> ListWords:
    """Return a list for people."""
    name, n = readable(found.get("name", "")), int(found.get("n", 0))
    known = LISTS.get(name.lower())
    if known is None or not speaker.spell:
        title = f"{name[:1].upper()}{name[1:]}: {whole(n)} {noun(speaker.kind, n)}"
        return ListWords(title, speaker.say(found.get("sentence", "")))
    if not n:
        title = f"No {speaker.things} {known[0].split(' ', 2)[2].split(',')[0]}"
        return ListWords(title, NONE)
    level = _share(f"{100 * float(found.get('level', 0.1)):g}")
    title, sentence = (
        part.format(n=whole(n), level=level, things=things)
        for part, things in zip(
            known, (noun(speaker.kind, n), speaker.things), strict=True
        )
    )
    return ListWords(title, sentence)
