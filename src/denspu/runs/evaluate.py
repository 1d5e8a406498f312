"""Some true labels exist: did the estimates without negatives hold?"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from denspu._parameters import Number, Whole
from denspu._random import Randomness
from denspu._words import does, many
from denspu.data._find import Source
from denspu.exceptions import FewRowsWarning, InvalidInputError, InvalidParameterError
from denspu.metrics import PUReport
from denspu.runs.labelled import confusion, figures_of, wilson
from denspu.runs.options import AS_FITTED, Reading
from denspu.runs.scoring import CHUNK, Cut, cut_of, open_model
from denspu.runs.truth import (
    Matched,
    from_column,
    from_files,
    from_run,
    read_labels,
    training_positives,
)

FEW = 30
"""Labelled items of a class below which figures say little."""

SHOWN = 3
WIDE = 24
"""Characters of a figure with its interval."""
BY_SHARE = "accuracy, precision, f1, average_precision and lift"
"""Figures that move with the share of positives."""


@dataclass(frozen=True)
class Compared:
    """One figure: counted with true labels, and estimated without."""

    name: str
    value: float
    low: float
    high: float
    how: str
    """Where the interval comes from: ``"Wilson"`` or ``"drawn"``."""
    estimate: float | None = None
    """The model's own, from held-out positives and U."""
    estimate_low: float | None = None
    estimate_high: float | None = None
    held: bool | None = None
    """Whether the estimate's interval holds the figure; None without an estimate, or
    where it does not but the two intervals meet: too few labels to tell."""


@dataclass(frozen=True)
class Evaluation:
    """Figures by name, what they rest on, and what to be careful about."""

    figures: Mapping[str, Compared]
    n_items: int
    n_labels: int
    """Labels given, 1 or 0."""
    n_matched: int
    n_unmatched: int
    unmatched: Sequence[str]
    """The first labels without an item."""
    n_unknown: int
    """Rows without a label."""
    n_positive: int
    n_negative: int
    n_skipped: int
    """Items that could not be read."""
    counts: Mapping[str, int]
    """True and false positives and negatives: ``tp``, ``fp``, ``fn``, ``tn``."""
    threshold: float
    threshold_sentence: str
    level: float
    prior_in_unlabeled: float | None
    """What the model takes for the share of positives inside U."""
    warnings: Sequence[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Compared:
        return self.figures[name]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    def summary(self) -> str:
        """Return what the figures rest on, in words."""
        lost = ""
        if self.n_unmatched:
            some = ", ".join(map(repr, self.unmatched))
            more = ", ..." if self.n_unmatched > len(self.unmatched) else ""
            verb = does(self.n_unmatched, "matches", "match")
            lost = f" {many(self.n_unmatched, 'label')} {verb} no item: {some}{more}."
        return (
            f"{self.n_matched:,} of {many(self.n_items, 'item')} "
            f"{does(self.n_matched, 'has', 'have')} a true label: "
            f"{self.n_positive:,} positive, {self.n_negative:,} negative.{lost}"
        )

    def __str__(self) -> str:
        head = (
            f"{'':<17}  {'with labels':<{WIDE}}  {'estimated without':<{WIDE}}  "
            f"({self.level:.0%} intervals)"
        )
        lines = [self.summary(), self.threshold_sentence, "", head]
        for one in self.figures.values():
            counted = _shown(one.value, one.low, one.high)
            unsure = "" if one.estimate is None else "just missed"
            told = {None: unsure, True: "held", False: "did not hold"}[one.held]
            guess = _shown(one.estimate, one.estimate_low, one.estimate_high)
            line = f"{one.name:<17}  {counted:<{WIDE}}  {guess:<{WIDE}}  {told}"
            lines.append(line.rstrip())
        return "\n".join([*lines, *(f"warning: {told}" for told in self.warnings)])


def _shown(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return ""
    return f"{value:.3f}  [{low:.3f}, {high:.3f}]"


def evaluate_files(
    model: str | os.PathLike[str],
    source: Source | None = None,
    *,
    labels: str | os.PathLike[str] | None = None,
    label_column: str | None = None,
    item_column: str | None = None,
    threshold: str | float | None = None,
    level: float = 0.9,
    n_resamples: int = 2_000,
    random_state: int = 0,
    chunk: int = CHUNK,
    device: str | None = None,
    reading: Reading = AS_FITTED,
    workers: int | None = None,
) -> Evaluation:
    """Compare a model's answers with true labels, where some exist.

    Parameters
    ----------
    model : path
        The ``model`` folder of a run of ``denspu fit``.
    source : path or list of paths, optional
        The items. By default the unlabelled items of the run itself, whose scores lie
        beside the model.
    labels : path, optional
        A table with the columns ``item`` and ``label``: 1 for a true positive, 0 for a
        true negative, nothing for not known.
    label_column : str, optional
        The column of ``labels``; without ``labels``, a column of ``source`` itself.
    item_column : str, optional
        The column of ``labels`` with the names of the items.
    threshold : float or str, optional
        As in :func:`predict_files`, without ``top``.
    level : float, default=0.9
        Of the intervals.
    n_resamples : int, default=2000
        Draws behind the intervals of figures that are not shares.
    random_state : int, default=0
    chunk, device, reading, workers
        As in :func:`predict_files`.

    Returns
    -------
    Evaluation
        Each figure beside the model's own estimate of the same name.
    """
    _check(source, labels, label_column, level, n_resamples)
    given = None
    if labels is not None:
        given = read_labels(Path(labels), item_column, label_column, reading.encoding)
    scorer = open_model(model, device, reading, workers)
    cut = cut_of(scorer.model, threshold)
    if cut.top is not None:
        raise InvalidParameterError(
            f"threshold={threshold!r} is about a whole list. Evaluate with a number, "
            "prior, recall= or precision=."
        )
    if source is None:
        assert given is not None
        found = from_run(Path(model), given)
    elif given is not None:
        found = from_files(scorer, source, given, chunk)
    else:
        found = from_column(scorer, source, str(label_column), chunk)
    if not found.ids:
        raise _no_match(found)
    estimates = _estimates(scorer.model, level)
    figures = _figures(found, estimates, cut, level, n_resamples, random_state)
    known = training_positives(Path(model), source, scorer, found.ids)
    prior = estimates.prior_in_unlabeled if estimates else None
    around = scorer.model.evidence_.prior_interval if estimates else None
    told = _careful(found, figures, prior, around, level, known)
    return _evaluation(found, figures, cut, level, prior, told)


def _no_match(found: Matched) -> InvalidInputError:
    if not found.n_labels:
        return InvalidInputError(
            "There is no label: every cell of the column is empty. Write 1 or 0 for "
            "the items whose class is known."
        )
    return InvalidInputError(
        f"None of the {many(found.n_labels, 'label')} belongs to an item: they name "
        f"{found.unmatched[0]!r} and so on, the items are called "
        f"{found.first_item!r} and so on. Write the names as in the table of answers."
    )


def _check(
    source: Source | None,
    labels: Any,
    label_column: str | None,
    level: float,
    n_resamples: int,
) -> None:
    if labels is None and label_column is None:
        raise InvalidParameterError(
            "There are no labels: pass labels (--labels FILE), or label_column "
            "(--label-column NAME) if the items are a table that holds them."
        )
    if labels is None and source is None:
        raise InvalidParameterError(
            "label_column without labels is a column of the items: pass their table."
        )
    if not Number(0, 1, "neither").allows(level):
        raise InvalidParameterError(f"level={level!r} must lie between 0 and 1.")
    if not Whole(100).allows(n_resamples):
        raise InvalidParameterError(
            f"n_resamples={n_resamples!r} must be {Whole(100)}."
        )


def _estimates(model: Any, level: float) -> PUReport | None:
    """Return what the model expects of itself, if positives were held out."""
    if not hasattr(model, "evidence_"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewRowsWarning)
        return model.evaluate(k=1, level=level)


def _figures(
    found: Matched,
    estimates: PUReport | None,
    cut: Cut,
    level: float,
    n_resamples: int,
    random_state: int,
) -> dict[str, Compared]:
    counted = figures_of(
        found.truth,
        found.scores,
        cut.value,
        level=level,
        n_resamples=n_resamples,
        rng=Randomness(random_state).numpy("evaluate"),
    )
    figures = {}
    for name, one in counted.items():
        beside: dict[str, Any] = {}
        if estimates is not None:
            guess = estimates[name]
            beside = {
                "estimate": guess.value,
                "estimate_low": guess.low,
                "estimate_high": guess.high,
                "held": _held(one, guess),
            }
        figures[name] = Compared(name, one.value, one.low, one.high, one.how, **beside)
    return figures


def _held(one: Any, guess: Any) -> bool | None:
    if guess.low <= one.value <= guess.high:
        return True
    meet = one.low <= guess.high and guess.low <= one.high
    return None if meet else False


def _evaluation(
    found: Matched,
    figures: dict[str, Compared],
    cut: Cut,
    level: float,
    prior: float | None,
    told: list[str],
) -> Evaluation:
    n_positive = int(found.truth.sum())
    return Evaluation(
        figures=figures,
        n_items=found.n_items,
        n_labels=found.n_labels,
        n_matched=len(found.ids),
        n_unmatched=len(found.unmatched),
        unmatched=found.unmatched[:SHOWN],
        n_unknown=found.n_unknown,
        n_positive=n_positive,
        n_negative=len(found.ids) - n_positive,
        n_skipped=found.n_skipped,
        counts=confusion(found.truth, found.scores, cut.value),
        threshold=cut.value,
        threshold_sentence=cut.sentence,
        level=level,
        prior_in_unlabeled=prior,
        warnings=told,
    )


def _careful(
    found: Matched,
    figures: Mapping[str, Compared],
    prior: float | None,
    around: tuple[float, float] | None,
    level: float,
    known: Sequence[str],
) -> list[str]:
    """Return what makes the figures doubtful, as sentences."""
    n_positive = int(found.truth.sum())
    n_negative = len(found.ids) - n_positive
    told = []
    if not n_positive or not n_negative:
        alone, name = ("positive", "recall") if n_positive else ("negative", "accuracy")
        told.append(
            f"All true labels are {alone}: only {name} can be counted. Label some of "
            "the other class."
        )
    elif min(n_positive, n_negative) < FEW:
        told.append(
            f"Only {n_positive:,} positive and {n_negative:,} negative items have a "
            f"label: the intervals are wide. From {FEW} of each on they say something."
        )
    if known:
        told.append(
            f"{many(len(known), 'labelled item')} {does(len(known), 'is', 'are')} "
            f"among the positives the model was given (such as {known[0]!r}): figures "
            f"come out too good. Leave {does(len(known), 'it', 'them')} out."
        )
    if prior is None or around is None:
        told.append(
            "The model was fitted without held-out positives: there are no estimates "
            "to compare with."
        )
    elif n_positive and n_negative:
        share = wilson(n_positive, len(found.ids), level)
        low, high = around
        if share.high < low or high < share.low:
            told.append(
                f"{share.value:.1%} of the labelled items are positive, and the model "
                f"expects {prior:.1%} ({low:.1%} to {high:.1%}): {BY_SHARE} "
                "move with that share. Compare recall, balanced_accuracy and roc_auc; "
                "label items drawn at random to compare all."
            )
    failed = [one.name for one in figures.values() if one.held is False]
    if failed:
        told.append(
            f"The estimates of {', '.join(failed)} did not hold: intervals do not meet."
        )
    return told
