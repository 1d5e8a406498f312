"""What speaks against a fit, seen without a single true label.

Made here once: a fitted model keeps it in ``checks_``, Python warns, and a run shows
the same sentences in the terminal and on the page.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from denspu._typing import BoolArray, FloatArray
from denspu._validation import PUInput
from denspu.exceptions import DoubtfulLabelsWarning, WeakRankingWarning

AlarmName = Literal["labels tell something", "given away", "ranking", "labels alike"]

LEVEL = 0.05
"""How often labels that say nothing may pass as labels that do."""

FEWEST = 10
"""Labelled positives from which it can be seen whether labels say anything."""

MOST = 300
"""Labelled positives and rows of U that are compared for being alike."""

CLOSE = 0.7
"""Labelled positives are alike if they lie closer together by this factor than the top
of U lies to them."""

CLEAR = 0.01
"""Part of U by which positives must stand higher for a ranking to be called better."""

DRAWS, RARELY = 199, 0.01


@dataclass(frozen=True)
class Alarm:
    """One doubt, or its absence."""

    name: AlarmName
    ok: bool | None
    """None where nothing could be seen."""
    sentence: str


def alarms(
    refiner: Any,
    Z: FloatArray,
    data: PUInput,
    scores: FloatArray | None,
    share: float,
    rng: np.random.Generator,
) -> tuple[Alarm, ...]:
    """Return what can be said of a fit, warning of what speaks against it.

    ``scores`` are those of rows by models that have not seen them; ``share`` is that of
    positives inside U.
    """
    if not hasattr(refiner, "luck_") or scores is None:
        return ()
    free = data.unlabeled & ~data.known_negative
    found = (
        labels_tell(refiner.luck_, int(data.positive.sum())),
        given_away(Z[data.positive], Z[free]),
        ranks_well(refiner.lead_),
        labels_alike(Z, data.positive, free, scores, share, rng),
    )
    for alarm in found:
        if alarm.ok is False:
            weak = alarm.name == "ranking"
            kind = WeakRankingWarning if weak else DoubtfulLabelsWarning
            warnings.warn(alarm.sentence, kind, stacklevel=2)
    return found


def labels_tell(luck: float, n_positive: int) -> Alarm:
    """Tell whether labelled positives that a model has not seen rank above U."""
    name: AlarmName = "labels tell something"
    if luck <= LEVEL:
        return Alarm(
            name,
            True,
            "Labelled positives that the model has not seen rank higher among the "
            f"unlabelled than labels strewn at random would (p = {luck:.2g}).",
        )
    if n_positive < FEWEST:
        return Alarm(
            name,
            None,
            f"With {n_positive} labelled positives it cannot be seen whether the "
            f"labels say anything; {FEWEST} are needed.",
        )
    return Alarm(
        name,
        False,
        "The labels look random: labelled positives that the model has not seen rank "
        "no higher among the unlabelled than labels strewn over all rows would "
        f"(p = {luck:.2g}). Or the classes overlap so much that this many labels show "
        "no difference. Check the label column, add columns that tell the classes "
        "apart, or label more; trust no number of this fit until then.",
    )


def given_away(P: FloatArray, U: FloatArray) -> Alarm:
    """Tell whether a single number parts all labelled positives from all of U."""
    name: AlarmName = "given away"
    above, below = P.min(axis=0) > U.max(axis=0), P.max(axis=0) < U.min(axis=0)
    if not (above | below).any():
        return Alarm(name, True, "No column alone gives the labels away.")
    return Alarm(
        name,
        False,
        "One column alone parts all labelled positives from all unlabelled rows. "
        "Either no unlabelled row is positive, or that column gives the label away: it "
        "was filled in for labelled rows only, say. explain() names the columns that "
        "move the score; leave it out.",
    )


RIVALS = {
    "trees": "a plain bag of trees",
    "boundary": "the density of labelled positives around a row",
}


def ranks_well(lead: dict[str, tuple[float, float]]) -> Alarm:
    """Tell whether the members together rank held-out positives as well as others."""
    behind = {
        k: -mean for k, (mean, error) in lead.items() if -mean > max(error, CLEAR)
    }
    if not behind:
        return Alarm(
            "ranking",
            True,
            "Held-out positives stand as high among the unlabelled as by a plain bag "
            "of trees and by the density of labelled positives around them.",
        )
    worst = max(behind, key=lambda name: behind[name])
    return Alarm(
        "ranking",
        False,
        f"A simpler ranking does better here: by {RIVALS[worst]} alone, labelled "
        "positives that the model has not seen stand "
        f"{100 * behind[worst]:.1f} percentage points of the unlabelled higher. "
        "Try it: PUBagging, or DensPU with refiner='ranking'.",
    )


def labels_alike(
    Z: FloatArray,
    positive: BoolArray,
    free: BoolArray,
    scores: FloatArray,
    share: float,
    rng: np.random.Generator,
) -> Alarm:
    """Tell whether P lies closer together than the top of U lies to P.

    Where labels are a random sample of the positives, swapping labelled rows for rows
    of the top changes little.
    """
    name: AlarmName = "labels alike"
    P, U = np.flatnonzero(positive), np.flatnonzero(free)
    n = min(len(P), max(round(share * len(U)), FEWEST), len(U) // 2, MOST)
    if n < FEWEST:
        return Alarm(
            name,
            None,
            "Too few positives to see whether the labelled ones are more alike than "
            "the others.",
        )
    top = U[np.argsort(-scores[U], kind="stable")[:n]]
    rows = Z[np.append(rng.permutation(P)[:MOST], top)]
    squares = (rows**2).sum(axis=1)
    far = np.sqrt(np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0))
    np.fill_diagonal(far, np.inf)
    ours = np.arange(len(rows)) < len(rows) - n
    gap, ratio = _gap(far, ours)
    drawn = [_gap(far, rng.permutation(ours))[0] for _ in range(DRAWS)]
    p = (1 + np.sum(np.array(drawn) >= gap)) / (1 + DRAWS)
    if p > RARELY or ratio > CLOSE:
        return Alarm(
            name,
            True,
            "Labelled positives are not much more alike among themselves than the "
            "unlabelled that score highest.",
        )
    return Alarm(
        name,
        False,
        "Labelled positives are far more alike among themselves than the unlabelled "
        f"that score highest: their nearest neighbours are {ratio:.2f} times as far. "
        "Labels that are no random sample of the positives look like this. Figures "
        "that rest on labelled positives are then too good: review some rows drawn at "
        "random, and label positives of other sorts.",
    )


def _gap(far: FloatArray, ours: BoolArray) -> tuple[float, float]:
    """Return by how much, and by what factor, P lies closer to P than others do."""
    near = far[:, ours].min(axis=1)
    among, others = float(near[ours].mean()), float(near[~ours].mean())
    return others - among, among / max(others, 1e-12)
