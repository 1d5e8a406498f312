"""Which items are worth a glance: the surest, the undecided, the odd ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from denspu._typing import IntArray
from denspu.data import Items
from denspu.report.run_items import EXCERPT, WHOLE, Card, Shower
from denspu.report.text import chance, clean, shorten, whole
from denspu.report.words import noun
from denspu.runs.facts import RunFacts, RunRows

MOST = 24
"""Items in a gallery."""
FIRST = {"undecided": 12, "odd": 12}
"""Of them, shown at once: those worth a second look."""
FEW = 6
"""Shown at once of the others."""
EVEN = 0.5
WORDS = {1: "positive", 0: "negative"}


@dataclass(frozen=True)
class Gallery:
    """Items under one heading."""

    key: str
    title: str
    sentence: str
    cards: list[Card]
    columns: list[str]

    @property
    def first(self) -> int:
        """How many are shown at once."""
        return FIRST.get(self.key, FEW)


def galleries(facts: RunFacts, rows: RunRows, shower: Shower) -> list[Gallery]:
    """Return the galleries that have something to show, in reading order."""
    things = noun(facts.kind)
    copies = {c.unlabeled for c in facts.copies}
    fresh = np.array([name not in copies for name in rows.unlabeled.ids], dtype=bool)
    called, best = rows.decision == 1, np.argsort(rows.rank, kind="stable")
    gap = np.abs(rows.score_unlabeled - facts.threshold.value)
    near = np.argsort(gap, kind="stable")[: MOST if len(gap) > 1 else 0]
    chosen = _lowest(rows, np.asarray(rows.chosen, dtype=np.int64))
    odd = np.asarray(rows.odd_positive, dtype=np.int64)
    top = best[called[best] & fresh[best]]
    bottom = best[::-1][~called[best[::-1]]]
    left = " Copies of labelled positives are left out." if copies else ""
    of_u, of_p = _of_unlabeled(rows, shower), _of_positive(rows, shower)
    made = [
        _gallery(
            "sure", "Surest positives", f"The highest scores of all.{left}", top, of_u
        ),
        _gallery(
            "undecided",
            "Undecided",
            "Here the model is least sure and a second look is worth most; the "
            f"nearest to the threshold comes first.{_at_odds(rows, near)}",
            near,
            of_u,
        ),
        _gallery(
            "odd",
            "Labelled positives that look odd",
            f"You labelled these {things} positive, but they look unlike the other "
            "positives. Check whether the label is right; the oddest comes first.",
            odd,
            of_p,
        ),
        _gallery(
            "negatives", "Surest negatives", "The lowest scores of all.", bottom, of_u
        ),
        _gallery(
            "chosen",
            "Chosen as negatives",
            f"{whole(len(chosen))} unlabelled {things} were taken as negatives to "
            "learn from (the paper's Ñ). A positive among them misleads the model; the "
            "likeliest comes first.",
            chosen,
            of_u,
        ),
    ]
    return [_with_columns(g, shower) for g in made if g.cards]


def _at_odds(rows: RunRows, at: IntArray) -> str:
    """Return a sentence if the chance says the opposite of the call for some."""
    against = (rows.probability[at] > EVEN) != (rows.decision[at] == 1)
    if not against.any():
        return ""
    return (
        " The call follows the threshold and the chance is an estimate of its own; "
        "where they contradict each other, trust neither."
    )


def _lowest(rows: RunRows, positions: IntArray) -> IntArray:
    """Return chosen negatives, the highest score first: there an error would show."""
    return positions[np.argsort(rows.rank[positions], kind="stable")]


def _gallery(
    key: str, title: str, sentence: str, at: IntArray, card: Callable[[int], Card]
) -> Gallery:
    return Gallery(key, title, sentence, [card(int(i)) for i in at[:MOST]], [])


def _with_columns(gallery: Gallery, shower: Shower) -> Gallery:
    return Gallery(
        gallery.key,
        gallery.title,
        gallery.sentence,
        gallery.cards,
        [clean(str(c)) for c in shower.columns],
    )


def _of_unlabeled(rows: RunRows, shower: Shower) -> Callable[[int], Card]:
    def card(i: int) -> Card:
        return _card(
            shower,
            rows.unlabeled,
            i,
            score=shower.score(rows.score_unlabeled[i]),
            chance=chance(float(rows.probability[i])),
            decision=WORDS[int(rows.decision[i])],
            stage=clean(str(rows.stage[i])),
        )

    return card


def _of_positive(rows: RunRows, shower: Shower) -> Callable[[int], Card]:
    def card(i: int) -> Card:
        return _card(
            shower,
            rows.positive,
            i,
            score=shower.score(rows.score_positive[i]),
            chance="",
            decision="labelled",
            stage="held out" if rows.held_out[i] else "",
        )

    return card


def _card(shower: Shower, items: Items, i: int, **known: str) -> Card:
    """Return an item as it looks, with what is known of it."""
    text = shower.text(items, i)
    return Card(
        name=shower.name(items, i),
        picture=shower.picture(items, i),
        text=shorten(text, EXCERPT),
        rest=_rest(text),
        cells=shower.cells(items, i),
        near=shower.near(items, i),
        **known,
    )


def _rest(text: str) -> str:
    """Return the whole text if the excerpt leaves some of it out."""
    if len(" ".join(text.split())) <= EXCERPT:
        return ""
    return text if len(text) <= WHOLE else text[:WHOLE].rstrip() + " …"
