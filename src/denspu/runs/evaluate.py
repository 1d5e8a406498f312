"""Some true labels exist: did the estimates without negatives hold?"""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtri

from denspu._parameters import Number, Whole, check
from denspu._progress import does, many
from denspu._random import Randomness
from denspu._typing import FloatArray, IntArray
from denspu.data._reading import Limit, Source
from denspu.data._tables import (
    POSITIVE,
    UNLABELED,
    labels_of,
    raw_chunks,
    read_raw,
    row_ids,
)
from denspu.exceptions import (
    FewRowsWarning,
    InvalidInputError,
    InvalidParameterError,
    LabelError,
)
from denspu.metrics import PUReport, oracle_metrics
from denspu.runs.folder import RUN, SCORES_CSV, SCORES_PARQUET
from denspu.runs.options import AS_FITTED, Reading
from denspu.runs.predict import CHUNK, Scorer, cut_of, open_model
from denspu.runs.reading import ITEM, LABEL, one_of, read_item_table

FEW = 30
"""Labelled items of a class below which figures say little."""
SHOWN = 3
WIDE = 24
"""Characters of a figure with its interval."""
CELLS = 4_000_000
"""Rows times draws held in memory at once."""

Truth: TypeAlias = list[int | None]
"""1 or 0 of each item; None where it is not known."""
Chunk: TypeAlias = tuple[list[str], FloatArray, Truth | None, int]
"""Names of items, their scores, true labels from the same table, and how many items
were skipped."""


@dataclass(frozen=True)
class Compared:
    """One figure: counted with true labels, and estimated without."""

    name: str
    value: float
    low: float
    high: float
    how: str
    """``"Wilson"`` for a share of independent items; ``"drawn"``: items weighted anew
    many times (a Bayesian bootstrap), with half a positive and half a negative imagined
    above all scores and as much below."""
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
            guess, told = "", ""
            if one.estimate is not None:
                guess = _shown(one.estimate, one.estimate_low, one.estimate_high)
                words = {None: "just missed", True: "held", False: "did not hold"}
                told = words[one.held]
            counted = _shown(one.value, one.low, one.high)
            line = f"{one.name:<17}  {counted:<{WIDE}}  {guess:<{WIDE}}  {told}"
            lines.append(line.rstrip())
        return "\n".join([*lines, *(f"warning: {told}" for told in self.warnings)])


def _shown(value: float, low: float | None, high: float | None) -> str:
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
    chunk, device, reading
        As in :func:`predict_files`.

    Returns
    -------
    Evaluation
        Each figure beside the model's own estimate of the same name.
    """
    if labels is None and label_column is None:
        raise InvalidParameterError(
            "There are no labels: pass labels (--labels FILE), or label_column "
            "(--label-column NAME) if the items are a table that holds them."
        )
    if labels is None and source is None:
        raise InvalidParameterError(
            "label_column without labels is a column of the items: pass their table."
        )
    check("level", level, Number(0, 1, "neither"))
    check("n_resamples", n_resamples, Whole(100))
    given = None
    if labels is not None:
        given = _read_labels(
            Path(labels), item_column, label_column, reading.encoding or "utf-8"
        )
    scorer = open_model(model, device, reading)
    cut = cut_of(scorer.model, threshold)
    if cut.top is not None:
        raise InvalidParameterError(
            f"threshold={threshold!r} is about a whole list. Evaluate with a number, "
            "prior, recall= or precision=."
        )
    if source is None:
        scored = _scores_of_run(Path(model))
    else:
        own = None if labels is not None else label_column
        scored = _scores_of_files(scorer, source, own, chunk)
    found = _matched(scored, given)
    truth, scores = np.array(found.truth, dtype=np.int64), np.array(found.scores)
    estimates = None  # what the model expects of itself, if positives were held out
    if hasattr(scorer.model, "evidence_"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewRowsWarning)
            estimates = scorer.model.evaluate(k=1, level=level)
    rng = Randomness(random_state).numpy("evaluate")
    counted = _counted(truth, scores, cut.value, level, n_resamples, rng)
    known = training_positives(Path(model), source, scorer, found.ids)
    around = scorer.model.evidence_.prior_interval if estimates else None
    evaluation = Evaluation(
        figures={one.name: _compared(one, estimates) for one in counted},
        n_items=found.n["items"],
        n_labels=found.n["labels"],
        n_matched=len(found.ids),
        n_unmatched=len(found.unmatched),
        unmatched=found.unmatched[:SHOWN],
        n_unknown=found.n["unknown"],
        n_positive=int(truth.sum()),
        n_negative=int((1 - truth).sum()),
        n_skipped=found.n["skipped"],
        counts=_confusion(truth, scores, cut.value),
        threshold=cut.value,
        threshold_sentence=cut.sentence,
        level=level,
        prior_in_unlabeled=estimates.prior_in_unlabeled if estimates else None,
    )
    return replace(evaluation, warnings=_careful(evaluation, around, known))


def _compared(counted: Compared, estimates: PUReport | None) -> Compared:
    """Put the model's own estimate beside a figure."""
    if estimates is None:
        return counted
    guess = estimates[counted.name]
    held: bool | None = guess.low <= counted.value <= guess.high
    if not held and counted.low <= guess.high and guess.low <= counted.high:
        held = None
    return replace(
        counted,
        estimate=guess.value,
        estimate_low=guess.low,
        estimate_high=guess.high,
        held=held,
    )


def _careful(
    found: Evaluation, around: tuple[float, float] | None, known: Sequence[str]
) -> list[str]:
    """Return what makes the figures doubtful, as sentences."""
    n_positive, n_negative = found.n_positive, found.n_negative
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
    if around is None:
        told.append(
            "The model was fitted without held-out positives: there are no estimates "
            "to compare with."
        )
    elif n_positive and n_negative:
        share = _wilson("share", n_positive, found.n_matched, found.level)
        low, high = around
        all_known = found.n_matched == found.n_items
        if share.high < low or high < share.low:
            more = "" if all_known else "; label items drawn at random to compare all"
            told.append(
                f"{share.value:.1%} of the labelled items are positive, and the model "
                f"expects {found.prior_in_unlabeled:.1%} ({low:.1%} to {high:.1%}): "
                "accuracy, precision, f1, average_precision and lift move with that "
                f"share. Compare recall, balanced_accuracy and roc_auc{more}."
            )
    failed = [one.name for one in found.figures.values() if one.held is False]
    if failed:
        told.append(
            f"The estimates of {', '.join(failed)} did not hold: intervals do not meet."
        )
    return told


# --- true labels, matched with scores ------------------------------------------------


@dataclass
class _Matched:
    """Items with a true label, and how many labels found none."""

    ids: list[str] = field(default_factory=list)
    truth: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    n: Counter[str] = field(default_factory=Counter)
    """``items``, ``skipped``; labels that are given, and those that are ``unknown``."""
    unmatched: list[str] = field(default_factory=list)


def _matched(chunks: Iterable[Chunk], given: dict[str, int | None] | None) -> _Matched:
    """Match items with the labels of a file, or with those they bring themselves."""
    found, first = _Matched(), ""
    left = {name: y for name, y in (given or {}).items() if y is not None}
    found.n.update(labels=len(left), unknown=len(given or {}) - len(left))
    for ids, scores, truth, n_skipped in chunks:
        first = first or next(iter(ids), "")
        if truth is None:
            truth = [left.pop(name, None) for name in ids]
        else:
            n_gaps = truth.count(None)
            found.n.update(labels=len(truth) - n_gaps, unknown=n_gaps)
        for name, y, score in zip(ids, truth, scores, strict=True):
            if y is not None:
                found.ids.append(name)
                found.truth.append(y)
                found.scores.append(float(score))
        found.n.update(items=len(ids), skipped=n_skipped)
    found.unmatched = list(left)
    if not found.n["labels"]:
        raise InvalidInputError(
            "There is no label: every cell of the column is empty. Write 1 or 0 for "
            "the items whose class is known."
        )
    if not found.ids:
        raise InvalidInputError(
            f"None of the {many(found.n['labels'], 'label')} belongs to an item: they "
            f"name {found.unmatched[0]!r} and so on, the items are called "
            f"{first!r} and so on. Write the names as in the table of answers."
        )
    return found


def _scores_of_files(
    scorer: Scorer, source: Source, column: str | None, chunk: int
) -> Iterator[Chunk]:
    """Score a source; ``column`` is that of its true labels, if it has them."""
    aside = () if column is None else (column,)
    for items, scores in scorer.scored(source, chunk, aside=aside):
        truth = None
        if column is not None:
            if column not in items.aside:
                raise InvalidParameterError(
                    f"label_column={column!r} names a column, and {items.source} is no "
                    "table. Pass the labels as a file (--labels)."
                )
            truth = _true_labels(items.aside[column], column, items.source)
        yield items.ids, scores, truth, len(items.skipped)


def _scores_of_run(model: Path) -> Iterator[Chunk]:
    """Read the scores of the run that the model lies in."""
    home = model.resolve().parent
    files = [home / name for name in (SCORES_PARQUET, SCORES_CSV)]
    file = next(filter(Path.is_file, files), None)
    if file is None:
        raise InvalidInputError(
            f"There is no {SCORES_CSV} beside {model}. Pass the items to judge as well."
        )
    for table in raw_chunks(file, "utf-8", Limit(CHUNK)):
        scores = np.array([float(score) for score in table.columns["score"]])
        yield ["" if n is None else n for n in table.columns["item"]], scores, None, 0


def _read_labels(
    path: Path, item: str | None, label: str | None, encoding: str
) -> dict[str, int | None]:
    """Read a table with names of items and their true labels."""
    table = read_item_table(path, encoding)
    items = one_of(table, "item_column", (item,) if item else ITEM)
    labels = one_of(table, "label_column", (label,) if label else LABEL)
    if not table.rows:
        raise InvalidInputError(f"{path} has a header and no rows.")
    truth = _true_labels(table.columns[labels], labels, str(path))
    return dict(zip(row_ids(table, items), truth, strict=True))


def _true_labels(values: Iterable[Any], column: str, source: str) -> Truth:
    """Return 1, 0, or None for a gap; other words are refused by name."""
    found: Truth = []
    other: Counter[str] = Counter()
    for value in values:
        gap = value is None or value != value
        word = str(value).strip().lower()
        if not gap and word not in POSITIVE | UNLABELED:
            other[word] += 1
        found.append(None if gap else int(word in POSITIVE))
    if other:
        shown = ", ".join(
            f"{word!r} ({many(n, 'row')})" for word, n in other.most_common(5)
        )
        raise LabelError(
            f"Column {column!r} of {source} holds {shown}. True labels are 1 or true "
            "for a positive, 0, false or -1 for a negative, and nothing where it is "
            "not known. Rewrite the column."
        )
    return found


def training_positives(
    model: Path, source: Source | None, scorer: Scorer, ids: list[str]
) -> list[str]:
    """Return the items that the run took for labelled positives.

    Known where the model lies in its run folder and the sources of the run are still
    where they were.
    """
    run = model.resolve().parent / RUN
    if source is None or isinstance(source, list | tuple) or not run.is_file():
        return []
    try:
        sources = dict(json.loads(run.read_text(encoding="utf-8"))["sources"])
    except (ValueError, KeyError, TypeError, OSError):
        return []
    here = Path(str(source)).resolve()
    table, column = sources.get("table"), scorer.label_column
    if table and column and here == Path(table).resolve():
        rows = read_raw(here, scorer.options.get("encoding", "utf-8"))
        if column not in rows.names:
            return []
        names = np.array(row_ids(rows, scorer.options.get("id_column")), dtype=object)
        labelled = set(names[labels_of(rows, column) == 1])
        return [name for name in ids if name in labelled]
    learned = Path(sources.get("positive", "")).resolve()
    if "positive" not in sources or not learned.exists():
        return []
    if here == learned or learned in here.parents:
        return ids
    return [name for name in ids if learned in (here / name).resolve().parents]


# --- figures from true labels --------------------------------------------------------


def _confusion(truth: IntArray, scores: FloatArray, threshold: float) -> dict[str, int]:
    """Return true and false positives and negatives."""
    called, positive = scores > threshold, truth == 1
    return {
        "tp": int((called & positive).sum()),
        "fp": int((called & ~positive).sum()),
        "fn": int((~called & positive).sum()),
        "tn": int((~called & ~positive).sum()),
    }


def _counted(
    truth: IntArray,
    scores: FloatArray,
    threshold: float,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> list[Compared]:
    """Return the figures that these labels can give.

    With one class alone, only the share of right answers in it: ``recall`` of
    positives, ``accuracy`` of negatives.
    """
    n = _confusion(truth, scores, threshold)
    shares = {
        "accuracy": (n["tp"] + n["tn"], len(truth)),
        "recall": (n["tp"], n["tp"] + n["fn"]),
        "precision": (n["tp"], n["tp"] + n["fp"]),
    }
    if truth.all() or not truth.any():
        name = "recall" if truth.all() else "accuracy"
        return [_wilson(name, *shares[name], level)]
    # the same order, with the threshold at 0 and no tie made
    different, place = np.unique(scores, return_inverse=True)
    cut = np.searchsorted(different, threshold, side="right")
    values = oracle_metrics(truth, place.reshape(-1) - cut + 0.5)
    values["lift"] = values["precision"] / float(truth.mean())
    draws = _draws(truth, scores, threshold, n_resamples, rng)
    tail = (1 - level) / 2
    found = []
    for name, value in values.items():
        hits, of = shares.get("precision" if name == "lift" else name, (1, 1))
        if not of:  # nothing is called positive
            continue
        if name in shares:
            found.append(_wilson(name, hits, of, level))
            continue
        low, high = np.quantile(draws[name], [tail, 1 - tail])
        low, high = min(float(low), value), max(float(high), value)
        found.append(Compared(name, value, low, high, "drawn"))
    return found


def _wilson(name: str, hits: int, n: int, level: float) -> Compared:
    """Return a share with Wilson's interval."""
    z = float(ndtri((1 + level) / 2))
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n)
    half *= float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Compared(name, share, min(low, share), max(high, share), "Wilson")


def _draws(
    truth: IntArray,
    scores: FloatArray,
    threshold: float,
    times: int,
    rng: np.random.Generator,
) -> dict[str, FloatArray]:
    """Return each figure as it may be, in many draws."""
    weight = np.r_[np.ones(len(truth)), np.full(4, 0.5)]
    scores = np.r_[scores, -np.inf, -np.inf, np.inf, np.inf]
    truth = np.r_[truth, 0, 1, 0, 1]
    order = np.argsort(-scores, kind="stable")
    scores, truth, weight = scores[order], truth[order], weight[order]
    ends = np.flatnonzero(np.append(scores[1:] < scores[:-1], True))
    called = int((scores > threshold).sum())
    step = max(1, CELLS // len(weight))
    parts = []
    for start in range(0, times, step):
        part = rng.gamma(weight, size=(min(step, times - start), len(weight)))
        parts.append(_figures(part * truth, part * (1 - truth), ends, called))
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def _figures(
    P: FloatArray, N: FloatArray, ends: IntArray, called: int
) -> dict[str, FloatArray]:
    """Return the figures of weighted rows, highest score first, one draw a row.

    ``ends`` are the last rows of each run of equal scores.
    """
    n_pos, n_neg = P.sum(axis=1), N.sum(axis=1)
    tp, fp = P[:, :called].sum(axis=1), N[:, :called].sum(axis=1)
    precision = tp / np.maximum(tp + fp, 1e-300)
    above_P = np.cumsum(P, axis=1)[:, ends]
    above_N = np.cumsum(N, axis=1)[:, ends]
    gained_P = np.diff(above_P, axis=1, prepend=0.0)
    gained_N = np.diff(above_N, axis=1, prepend=0.0)
    below_N = n_neg[:, None] - above_N + gained_N / 2
    return {
        "balanced_accuracy": (tp / n_pos + 1 - fp / n_neg) / 2,
        "f1": 2 * tp / (n_pos + tp + fp),
        "roc_auc": (gained_P * below_N).sum(axis=1) / (n_pos * n_neg),
        "average_precision": (gained_P * above_P / (above_P + above_N)).sum(axis=1)
        / n_pos,
        "lift": precision * (n_pos + n_neg) / n_pos,
    }
