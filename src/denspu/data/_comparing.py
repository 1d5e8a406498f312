"""What P and U share, and what gives them away.

A copy of a positive is a positive, so it should not be learned from as unlabelled. And
if all positives are 1024 pixels wide and the rest 512, a model may learn the size: each
fact about the items is asked alone whether it separates P from U.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import fisher_exact, mannwhitneyu

from denspu._frame import Frame
from denspu._typing import BoolArray
from denspu.data.kinds import Items, Kind, kind_of
from denspu.exceptions import InvalidInputError

CLEAR = 0.7
"""AUC of a fact alone from which it is told. File sizes follow the content: ..."""
CLEAR_BYTES = 0.9
DIFFERENCE = 0.25
"""Difference of two shares from which it is told."""
CHANCE = 1e-3
"""Probability of one false alarm, over all facts together, if P and U are alike."""

UNITS = {
    "width": "the width in pixels",
    "height": "the height in pixels",
    "aspect": "the ratio of width to height",
    "bytes": "the file size in bytes",
    "bits": "the bits of a pixel",
    "mode": "the colour mode",
    "format": "the file format",
    "missing": "the number of missing values",
    "characters": "the length in characters",
    "words": "the length in words",
}


# --- copies -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Pairs of a row of P and a row of U that show the same thing."""

    exact: list[tuple[int, int]]
    """Same content, as rows of P and of U."""
    near: list[tuple[int, int]]
    """Almost the same: a picture saved again, a text with other spacing."""
    n_unlabeled: int
    noun: str = "items"
    notes: tuple[str, ...] = ()

    @property
    def copies(self) -> BoolArray:
        """True for the rows of U that are copies of a positive, so positive."""
        found = np.zeros(self.n_unlabeled, dtype=bool)
        found[[u for _, u in (*self.exact, *self.near)]] = True
        return found

    def sentences(self) -> list[str]:
        """Return what was found, in words."""
        said = list(self.notes)
        exact = len({u for _, u in self.exact})
        near = int(self.copies.sum()) - exact
        for n, how in ((exact, "exact"), (near, "near")):
            if n:
                verb = "is a copy" if n == 1 else "are copies"
                said.append(
                    f"{n:,} unlabelled {self.noun} {verb} of labelled positives "
                    f"({how}): count them as positives."
                )
        return said


def find_duplicates(P: Items, U: Items) -> Duplicates:
    """Find copies of the items of P among those of U.

    Exact copies are found by a hash of the decoded content. Near copies of images have
    thumbnails that agree far better than those of two different positives usually do,
    whatever the brightness; near copies of texts differ in case, spacing and
    punctuation only. Time grows with len(P) × len(U) for images (a second for 1,000 ×
    60,000), memory does not. P and U are of one kind and form, as from ``read_pair``.
    """
    kind = _one_kind(P, U)
    exact, near, notes = kind.copies(P, U)
    same = set(exact)
    return Duplicates(
        exact=exact,
        near=[pair for pair in near if pair not in same],
        n_unlabeled=len(U),
        noun=f"{kind.thing}s",
        notes=tuple(notes),
    )


# --- shortcuts ----------------------------------------------------------------------


def find_shortcuts(P: Items, U: Items) -> list[str]:
    """Say which facts alone separate P from U, the strongest first.

    A number is told when its AUC, either way, is at least 0.7 (0.9 for the file size);
    a word, or a missing cell, when the shares in P and U differ by 0.25. Both must be
    beyond chance: the probability of one false alarm among all facts is below 0.001
    (Mann-Whitney and Fisher's exact tests, Bonferroni).

    Returns
    -------
    list of str
        One sentence a fact, with both medians or both shares; empty if all is well.
    """
    _one_kind(P, U)
    pairs = list(_facts(P, U))
    level = CHANCE / max(1, len(pairs))
    found = []
    for name, p, u in pairs:
        is_number = p.dtype.kind in "iuf" and name != UNITS["bits"]
        found += (_judge_number if is_number else _judge_word)(name, p, u, level)
    return [
        f"{sentence} Check that the model does not learn this instead of the content."
        for _, sentence in sorted(found, key=lambda one: -one[0])
    ]


def _facts(P: Items, U: Items) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Yield each fact that both have, with its values in P and in U."""
    for name in P.facts:
        if name in U.facts:
            yield UNITS.get(name, name), P.facts[name], U.facts[name]
    if "width" in P.facts and "width" in U.facts:
        shapes = [one.facts["width"] / one.facts["height"] for one in (P, U)]
        yield UNITS["aspect"], shapes[0], shapes[1]
    if isinstance(P.X, Frame) and isinstance(U.X, Frame):
        for name in P.X.columns:
            if name in U.X.columns:
                gaps = [
                    np.where(one.X[name].isna(), "missing", "present").astype(object)
                    for one in (P, U)
                ]
                yield f"column {name!r}", gaps[0], gaps[1]


def _judge_number(
    name: str, p: NDArray[Any], u: NDArray[Any], level: float
) -> list[tuple[float, str]]:
    """Return how far a fact separates P from U, and the sentence, if it does."""
    if p.min() == p.max() == u.min() == u.max():
        return []
    p, u = p.astype(float), u.astype(float)
    test = mannwhitneyu(p, u, alternative="two-sided", method="auto")
    auc = float(test.statistic) / (len(p) * len(u))
    strength = max(auc, 1 - auc)
    cut, other = float(np.median(p)), float(np.median(u))
    # the test above is too sure of few or equal values
    beyond = [x >= cut if auc > 0.5 else x <= cut for x in (p, u)]
    chance = max(float(test.pvalue), _chance(beyond[0], beyond[1]))
    if strength < (CLEAR_BYTES if name == UNITS["bytes"] else CLEAR) or chance >= level:
        return []
    if cut != other:
        said = (
            f"the median is {_short(cut)} among the labelled positives and "
            f"{_short(other)} among the unlabelled"
        )
    else:
        said = (
            f"it is {_short(cut)} in {np.mean(p == cut):.0%} of the labelled "
            f"positives and {np.mean(u == cut):.0%} of the unlabelled"
        )
    told = f"alone tells labelled from unlabelled (AUC {strength:.2f})"
    return [(2 * strength - 1, f"{_capital(name)} {told}: {said}.")]


def _judge_word(
    name: str, p: NDArray[Any], u: NDArray[Any], level: float
) -> list[tuple[float, str]]:
    """Return how far a word separates P from U, and the sentence, if it does."""
    values = sorted({*p.tolist(), *u.tolist()}, key=str)
    if len(values) < 2:
        return []
    shares = {v: (float(np.mean(p == v)), float(np.mean(u == v))) for v in values}
    worst = max(values, key=lambda v: (abs(shares[v][0] - shares[v][1]), shares[v][0]))
    chance = _chance(p == worst, u == worst) * (len(values) if len(values) > 2 else 1)
    if set(values) == {"missing", "present"}:
        worst = "missing"
    mine, other = shares[worst]
    if abs(mine - other) < DIFFERENCE or chance >= level:
        return []
    told = f"in {mine:.0%} of the labelled positives and {other:.0%} of the unlabelled"
    return [(abs(mine - other), f"{_capital(name)} is {worst} {told}.")]


def _chance(ours: BoolArray, theirs: BoolArray) -> float:
    """Return the p-value of Fisher's exact test that two shares are the same."""
    table = [[int(some.sum()), int((~some).sum())] for some in (ours, theirs)]
    return float(fisher_exact(table).pvalue)


def _short(value: float) -> str:
    is_whole = value == int(value) or abs(value) >= 1000
    return f"{value:,.0f}" if is_whole else f"{value:.3g}"


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _one_kind(P: Items, U: Items) -> Kind:
    if P.kind != U.kind:
        raise InvalidInputError(
            f"P holds {P.kind} items and U {U.kind} items. Compare items of one kind."
        )
    return kind_of(P)
