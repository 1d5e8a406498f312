"""What P and U share, and what gives them away.

A copy of a positive is a positive, so it should not be learned from as unlabelled. And
if all positives are 1024 pixels wide and the rest 512, a model may learn the size: each
fact about the items is asked alone whether it separates P from U.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import fisher_exact, mannwhitneyu

from denspu._frame import Frame
from denspu._typing import BoolArray, FloatArray
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
        if p.dtype.kind in "iuf" and name != UNITS["bits"]:
            found.append(_judge_number(name, p.astype(float), u.astype(float), level))
        else:
            found.append(_judge_word(name, p, u, level))
    told = sorted((f for f in found if f is not None), key=lambda f: -f[0])
    return [sentence for _, sentence in told]


def _facts(P: Items, U: Items) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
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
    name: str, p: FloatArray, u: FloatArray, level: float
) -> tuple[float, str] | None:
    """Return how far a fact separates P from U, and the sentence, if it does."""
    if p.min() == p.max() == u.min() == u.max():
        return None
    test = mannwhitneyu(p, u, alternative="two-sided", method="auto")
    auc = float(test.statistic) / (len(p) * len(u))
    strength = max(auc, 1 - auc)
    clear = CLEAR_BYTES if name == UNITS["bytes"] else CLEAR
    if strength < clear:
        return None
    if max(float(test.pvalue), _chance_beyond_median(p, u, auc > 0.5)) >= level:
        return None
    medians = float(np.median(p)), float(np.median(u))
    if medians[0] != medians[1]:
        said = (
            f"the median is {_short(medians[0])} among the labelled positives and "
            f"{_short(medians[1])} among the unlabelled"
        )
    else:
        value = medians[0]
        said = (
            f"it is {_short(value)} in {np.mean(p == value):.0%} of the labelled "
            f"positives and {np.mean(u == value):.0%} of the unlabelled"
        )
    return 2 * strength - 1, (
        f"{_capital(name)} alone tells labelled from unlabelled (AUC {strength:.2f}): "
        f"{said}. Check that the model does not learn this instead of the content."
    )


def _chance_beyond_median(p: FloatArray, u: FloatArray, larger: bool) -> float:
    """Return an exact p-value: the test above is too sure of few or equal values."""
    cut = np.median(p)
    ours, theirs = (p >= cut, u >= cut) if larger else (p <= cut, u <= cut)
    table = [
        [int(ours.sum()), int((~ours).sum())],
        [int(theirs.sum()), int((~theirs).sum())],
    ]
    return float(fisher_exact(table).pvalue)


def _judge_word(
    name: str, p: NDArray[Any], u: NDArray[Any], level: float
) -> tuple[float, str] | None:
    ours, theirs = Counter(p.tolist()), Counter(u.tolist())
    values = sorted({*ours, *theirs}, key=str)
    if len(values) < 2:
        return None
    shares = {v: (ours[v] / len(p), theirs[v] / len(u)) for v in values}
    worst = max(values, key=lambda v: (abs(shares[v][0] - shares[v][1]), shares[v][0]))
    mine, other = shares[worst]
    table = [
        [ours[worst], len(p) - ours[worst]],
        [theirs[worst], len(u) - theirs[worst]],
    ]
    chance = fisher_exact(table).pvalue * (len(values) if len(values) > 2 else 1)
    if abs(mine - other) < DIFFERENCE or chance >= level:
        return None
    if set(values) == {"missing", "present"}:
        worst, (mine, other) = "missing", shares["missing"]
    return abs(mine - other), (
        f"{_capital(name)} is {worst} in {mine:.0%} of the labelled positives and "
        f"{other:.0%} of the unlabelled. Check that the model does not learn this "
        "instead of the content."
    )


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
