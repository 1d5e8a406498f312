"""Lists with a promise: which errors are bounded, and under which assumption.

======================  ==========================  ===================================
list                    compared with               bounded
======================  ==========================  ===================================
declared negatives      held-out positives          positives among the declared
                                                    negatives, or positives lost
declared positives      unlabelled rows as a        negatives among the declared
                        conservative null           positives, or negatives let in
======================  ==========================  ===================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from denspu._parameters import Number, OneOf, check
from denspu._typing import BoolArray, FloatArray
from denspu.exceptions import InvalidParameterError
from denspu.metrics._pu_gate import scores_of

Control: TypeAlias = Literal["list", "row"]
Tail: TypeAlias = Literal["low", "high"]


@dataclass(frozen=True, eq=False)
class DeclaredRows:
    """A list of rows and what is promised about it."""

    declared: BoolArray
    """True for the rows on the list."""
    p_values: FloatArray
    level: float
    control: Control
    promise: str
    """What is bounded, on which list, under which assumption."""

    @property
    def n(self) -> int:
        """Rows on the list."""
        return int(self.declared.sum())

    def __str__(self) -> str:
        return f"{self.n:,} of {len(self.declared):,} rows. {self.promise}"


def conformal_p_values(
    reference_scores: Any, scores: Any, *, tail: Tail = "low"
) -> FloatArray:
    """Return how unusual each score is among reference scores.

    (1 + number of reference scores at least as extreme) / (1 + number of them). If a
    row is drawn like the reference rows, and the model has seen neither, its p-value is
    at most t with a chance of at most t, for every t and any model.

    Parameters
    ----------
    reference_scores : array
        With held-out *positives* and ``tail="low"``, a small p-value speaks against
        the row being **positive**; it says nothing on how sure a positive is.
    scores : array
        Rows to judge.
    tail : {"low", "high"}, default="low"
        Which scores are extreme.

    Examples
    --------
    >>> from denspu.metrics import conformal_p_values
    >>> conformal_p_values([1, 2, 3, 4], [0.5, 2.5, 9]).tolist()
    [0.2, 0.6, 1.0]
    """
    reference = np.sort(scores_of("reference_scores", reference_scores))
    rows = scores_of("scores", scores)
    check("tail", tail, OneOf("low", "high"))
    if tail == "low":
        extreme = np.searchsorted(reference, rows, side="right")
    else:
        extreme = len(reference) - np.searchsorted(reference, rows, side="left")
    return (1.0 + extreme) / (1.0 + len(reference))


def benjamini_hochberg(p_values: Any, level: float) -> BoolArray:
    """Return the rows that Benjamini and Hochberg's step-up rule rejects."""
    p = scores_of("p_values", p_values)
    check("level", level, Number(0, 1, "neither"))
    ordered = np.sort(p)
    fits = np.flatnonzero(ordered <= level * np.arange(1, len(p) + 1) / len(p) + 1e-12)
    if len(fits) == 0:
        return np.zeros(len(p), dtype=np.bool_)
    return np.asarray(p <= ordered[fits[-1]])


def declared_negatives(
    positive_scores: Any,
    unlabeled_scores: Any,
    *,
    level: float = 0.1,
    control: Control = "list",
) -> DeclaredRows:
    """Declare rows of U negative with few positives among them.

    This controls the list of declared **negatives**. It says nothing about the rows
    left over: they are not "declared positive".

    Parameters
    ----------
    positive_scores : array
        Scores of held-out labelled positives.
    unlabeled_scores : array
    level : float, default=0.1
    control : {"list", "row"}, default="list"
        ``"list"``: of the rows declared negative, at most the share ``level`` is
        positive on average (false discovery rate; Benjamini-Hochberg on conformal
        p-values, Bates et al. 2023). ``"row"``: of the positives in U, at most the
        share ``level`` is declared negative on average.

    Notes
    -----
    Assumes that held-out positives and those in U are drawn alike (SCAR), and that the
    model saw neither in ``fit``. Nothing is assumed about negatives or the prior.
    """
    check("level", level, Number(0, 1, "neither"))
    check("control", control, OneOf("list", "row"))
    p = conformal_p_values(positive_scores, unlabeled_scores, tail="low")
    if control == "list":
        declared = benjamini_hochberg(p, level)
        bound = f"at most {level:.0%} of the rows declared negative are positive"
    else:
        declared = np.asarray(p <= level + 1e-12)
        bound = f"at most {level:.0%} of the positives in U are declared negative"
    promise = (
        f"List of declared negatives: on average {bound}, if held-out positives are "
        "like those in U. The rows left over carry no promise."
    )
    return DeclaredRows(declared, p, float(level), control, promise)


def declared_positives(
    unlabeled_scores: Any,
    candidate_scores: Any = None,
    *,
    level: float = 0.1,
    control: Control = "row",
) -> DeclaredRows:
    """Declare rows positive with U standing in for the negatives.

    This controls the list of declared **positives**. U holds positives too, which score
    high, so a negative looks less unusual in U than among negatives: the p-values are
    too large rather than too small, and the bound is conservative.

    Parameters
    ----------
    unlabeled_scores : array
        Scores of unlabelled rows, the conservative null.
    candidate_scores : array, optional
        Other rows to judge. Default: the rows of U, each compared with all of them.
    level : float, default=0.1
    control : {"row", "list"}, default="row"
        ``"row"``: of the negatives, at most the share ``level`` is declared positive on
        average. ``"list"``: of the rows declared positive, at most the share ``level``
        is negative on average (Benjamini-Hochberg); needs ``candidate_scores``. Rows of
        U are never unusual among themselves, so no list could be drawn from U alone:
        there, use ``choose_threshold(rule="precision")``, which needs the prior.

    Notes
    -----
    Assumes that positives tend to score at least as high as negatives (at every cut,
    the share of positives above it is no smaller), that negatives among the candidates
    are drawn like those in U, and that the model saw neither in ``fit``. Neither SCAR
    nor the prior is needed.
    """
    check("level", level, Number(0, 1, "neither"))
    check("control", control, OneOf("row", "list"))
    U = scores_of("unlabeled_scores", unlabeled_scores)
    if candidate_scores is None:
        if control == "list":
            raise InvalidParameterError(
                "control='list' needs candidate_scores of rows outside U: rows of U "
                "are never unusual among themselves, so none would be declared. For a "
                "list from U take choose_threshold(rule='precision', target="
                f"{1 - level:g}, prior_in_unlabeled=...)."
            )
        # The row itself is one of the reference rows; it counts once.
        p = np.minimum(1.0, (len(U) - np.searchsorted(np.sort(U), U)) / len(U))
    else:
        p = conformal_p_values(U, candidate_scores, tail="high")
    if control == "list":
        declared = benjamini_hochberg(p, level)
        bound = f"at most {level:.0%} of the rows declared positive are negative"
    else:
        declared = np.asarray(p <= level + 1e-12)
        bound = f"at most {level:.0%} of the negatives are declared positive"
    promise = (
        f"List of declared positives: on average {bound}, if positives tend to score "
        "higher than negatives; U is the conservative null."
    )
    return DeclaredRows(declared, p, float(level), control, promise)
