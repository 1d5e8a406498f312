"""How good is it, with no negative at hand? Estimates from held-out positives and U."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.stats import norm

from denspu._parameters import Number, OneOf, Whole, check
from denspu._progress import many
from denspu._random import Randomness
from denspu._typing import FloatArray, RandomState, Scenario
from denspu.exceptions import FewRowsWarning, InvalidParameterError
from denspu.metrics._mass import TINY, Cells, Maker, groups_of, scores_of

Population: TypeAlias = Literal["unlabeled", "population"]
Rows: TypeAlias = Literal["these", "new"]

FEW = 5
"""Held-out positives below which a warning is due."""

HOW = {
    "recall": "share of held-out positives above the threshold",
    "precision": "prior × recall / share called positive",
    "f1": "2 × prior × recall / (prior + share called positive)",
    "accuracy": "1 - prior - share called positive + 2 × prior × recall",
    "balanced_accuracy": "mean of recall and of the share of negatives not called",
    "roc_auc": "(AUC of positives against all rows - prior / 2) / (1 - prior)",
    "average_precision": "concave curve of positives among the k highest rows",
    "lift": "precision / prior",
}


@dataclass(frozen=True)
class Figure:
    """One estimate with its interval."""

    name: str
    value: float
    low: float
    high: float
    level: float
    """How often such an interval should hold the truth."""
    how: str
    """The formula in words."""
    note: str = ""
    """Why the figure says little, where it does."""

    def __str__(self) -> str:
        note = f"  ({self.note})" if self.note else ""
        return f"{self.value:.3f}  [{self.low:.3f}, {self.high:.3f}]{note}"


@dataclass(frozen=True)
class PUReport:
    """Figures by name, and what they are about."""

    figures: Mapping[str, Figure]
    population: Population
    """``"unlabeled"``: the rows of U. ``"population"``: what the scenario describes."""
    scenario: Scenario
    rows: Rows
    """``"these"`` rows, or ``"new"`` ones from where these came."""
    threshold: float
    level: float
    prior_in_unlabeled: float
    prior: float
    """Share of positives in the population the figures are about."""
    n_positive: int
    n_unlabeled: int
    n_called: int
    """Rows of U above the threshold."""

    def __getitem__(self, name: str) -> Figure:
        return self.figures[name]

    def __iter__(self) -> Iterator[Figure]:
        return iter(self.figures.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        about = "the rows of U" if self.population == "unlabeled" else "all rows"
        head = (
            f"Estimates on {about} ({self.level:.0%} intervals; {self.n_called:,} of "
            f"{self.n_unlabeled:,} unlabelled rows called positive; prior inside U "
            f"{self.prior_in_unlabeled:.3g})"
        )
        width = max(len(name) for name in self.figures)
        return "\n".join([head, *(f"{f.name:<{width}}  {f}" for f in self)])


def pu_metrics(
    positive_scores: Any,
    unlabeled_scores: Any,
    *,
    prior_in_unlabeled: float,
    prior_interval: tuple[float, float] | None = None,
    prior_level: float = 0.9,
    prior_error: float | None = None,
    scenario: Scenario = "one-sample",
    population: Population = "unlabeled",
    rows: Rows = "these",
    n_labeled: int | None = None,
    threshold: float = 0.0,
    k: int | Sequence[int] = (),
    positive_groups: Any = None,
    unlabeled_groups: Any = None,
    positive_weight: float = 1.0,
    level: float = 0.9,
    n_resamples: int = 1_000,
    random_state: RandomState = None,
) -> PUReport:
    """Estimate recall, precision, AUC and the rest from positives and unlabelled rows.

    All other functions here take these scores and this share too.

    Parameters
    ----------
    positive_scores : array
        Scores of labelled positives that the model was not fitted on.
    unlabeled_scores : array
        Scores of unlabelled rows; best those the model was not fitted on either.
    prior_in_unlabeled : float
        Share of positives **inside U**, such as ``PriorReport.prior_in_unlabeled``;
        not the overall prior.
    prior_interval, prior_level : (low, high), optional, and float, default=0.9
        Interval of that share, and how often it should hold the truth; the figures'
        intervals get wider by it.
    prior_error : float, optional
        Standard error of that share, in place of an interval.
    scenario : {"one-sample", "two-sample"}, default="one-sample"
        one-sample: P was taken out of the population, which is P and U together.
        two-sample: U is the population.
    population : {"unlabeled", "population"}, default="unlabeled"
        What the figures are about: the rows of U, or what the scenario calls the
        population. In the two-sample scenario both are the same.
    rows : {"these", "new"}, default="these"
        ``"these"``: exactly these rows of U, whose scores are known; only where their
        positives lie is not. ``"new"``: rows yet to come from where U came from; then
        the sampling of U counts too.
    n_labeled : int, optional
        Labelled positives in the one-sample population, held out or not. Default: as
        many as there are ``positive_scores``.
    threshold : float, default=0
        Rows that score above it are called positive.
    k : int or list of int, optional
        Report the precision among the k highest rows, as ``precision_at_k``.
    positive_groups, unlabeled_groups : arrays, optional
        Patient, customer, ...: whole groups are resampled.
    positive_weight : float, default=1
        How many positives each of ``positive_scores`` is worth. Less than 1 where they
        also taught the models by which the others are judged: their errors are alike.
    level, n_resamples : float, default=0.9, and int, default=1000
        Of the intervals, and the draws behind them.
    random_state : int, generator or None, default=None

    Returns
    -------
    PUReport
        ``report["recall"].value``, ``.low``, ``.high``; also ``precision``, ``f1``,
        ``accuracy``, ``balanced_accuracy``, ``roc_auc``, ``average_precision``,
        ``lift`` and ``precision_at_<k>``.

    Warns
    -----
    FewRowsWarning
        If there are fewer than 5 held-out positives, or groups of them.

    Notes
    -----
    All of it assumes that the held-out positives score like the positives inside U
    (SCAR); no estimate can notice by itself that they do not. See :func:`scar_check`
    and ``docs/evaluation.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from denspu.metrics import pu_metrics
    >>> rng = np.random.default_rng(0)
    >>> P = rng.normal(1, 1, 200)
    >>> U = np.r_[rng.normal(1, 1, 300), rng.normal(-1, 1, 700)]
    >>> found = pu_metrics(P, U, prior_in_unlabeled=0.3, random_state=0)
    >>> found["recall"].low < 0.84 < found["recall"].high
    True
    >>> found["roc_auc"].low < 0.92 < found["roc_auc"].high
    True
    """
    P = scores_of("positive_scores", positive_scores)
    U = scores_of("unlabeled_scores", unlabeled_scores)
    check("prior_in_unlabeled", prior_in_unlabeled, Number(0, 1))
    check("scenario", scenario, OneOf("one-sample", "two-sample"))
    check("population", population, OneOf("unlabeled", "population"))
    check("rows", rows, OneOf("these", "new"))
    check("threshold", threshold, Number())
    check("positive_weight", positive_weight, Number(0, 1, "right"))
    check("level", level, Number(0, 1, "neither"))
    check("n_resamples", n_resamples, Whole(100))
    check("n_labeled", n_labeled, OneOf(None), Whole(len(P)))
    prior = float(prior_in_unlabeled)
    errors = _prior_errors(prior, prior_interval, prior_level, prior_error)
    with_labeled = population == "population" and scenario == "one-sample"
    n_known = (n_labeled or len(P)) if with_labeled else 0
    ks = _ks(k, len(U) + n_known)
    cells = Cells.of(
        P,
        U,
        float(threshold),
        groups_of("positive_groups", positive_groups, len(P)),
        groups_of("unlabeled_groups", unlabeled_groups, len(U)),
    )
    units = cells.positive.n_units
    if units < FEW:
        noun = "held-out positive"
        grouped = cells.positive.groups is not None
        what = f"{many(units, 'group')} of {noun}s" if grouped else many(units, noun)
        warnings.warn(
            f"{what}: with fewer than {FEW} every figure is little more than a "
            "guess. Look at the intervals, or hold out more positives.",
            FewRowsWarning,
            stacklevel=3,
        )
    rng = Randomness(random_state).numpy("pu_metrics")
    maker = Maker(cells, prior, errors, n_known, rows, ks, positive_weight)
    values, draws = maker.found(n_resamples, rng)
    n_called = int((threshold < U).sum())
    share = (n_known + prior * len(U)) / (n_known + len(U))
    figures = {
        name: _figure(name, value, draws[name], level, share, n_called)
        for name, value in values.items()
    }
    return PUReport(
        figures=figures,
        population=population,
        scenario=scenario,
        rows=rows,
        threshold=float(threshold),
        level=float(level),
        prior_in_unlabeled=prior,
        prior=share,
        n_positive=len(P),
        n_unlabeled=len(U),
        n_called=n_called,
    )


def _figure(
    name: str,
    value: float,
    draws: FloatArray,
    level: float,
    share: float,
    n_called: int,
) -> Figure:
    """Return the figure; its interval always holds the value and stays in range."""
    top = 1.0 if name != "lift" else (1 / share if share > TINY else np.inf)
    how = HOW.get(name, HOW["average_precision"])
    value = min(value, float(top))
    note = ""
    if n_called == 0 and name in ("precision", "lift"):
        note = "no unlabelled row is called positive"
    if share >= 1 - TINY and name in ("roc_auc", "balanced_accuracy"):
        note = "no negative in the population, nothing to compare with"
    if note:
        return Figure(name, value, 0.0, float(top), float(level), how, note)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    low = float(np.clip(min(low, value), 0.0, top))
    high = float(np.clip(max(high, value), 0.0, top))
    return Figure(name, value, low, high, float(level), how)


def _ks(k: int | Sequence[int], n_rows: int) -> tuple[int, ...]:
    given = (k,) if isinstance(k, int | np.integer) else tuple(k)
    for number in given:
        if not Whole(1, n_rows).allows(number):
            raise InvalidParameterError(
                f"k={number!r} must be a whole number from 1 to {n_rows}, the rows "
                "there are."
            )
    return tuple(dict.fromkeys(int(number) for number in given))


def _prior_errors(
    prior: float,
    interval: tuple[float, float] | None,
    level: float,
    error: float | None,
) -> tuple[float, float]:
    """Return one standard error below and one above the prior inside U."""
    if interval is not None and error is not None:
        raise InvalidParameterError(
            "prior_interval and prior_error say the same thing; give one of them."
        )
    if error is not None:
        check("prior_error", error, Number(0, np.inf, "left"))
        return float(error), float(error)
    if interval is None:
        return 0.0, 0.0
    check("prior_level", level, Number(0, 1, "neither"))
    try:
        low, high = (float(end) for end in interval)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0 <= low <= prior <= high <= 1:
        raise InvalidParameterError(
            f"prior_interval={interval!r} must be two numbers in [0, 1] with "
            f"prior_in_unlabeled={prior:g} between them. It is the interval of the "
            "share inside U (PriorReport.interval), not of the overall prior."
        )
    z = float(norm.ppf((1 + level) / 2))
    return (prior - low) / z, (high - prior) / z


# --- another prior ------------------------------------------------------------------


@dataclass(frozen=True)
class Sensitivity:
    """The same figures over a range of priors inside U."""

    priors: tuple[float, ...]
    reports: tuple[PUReport, ...]

    def values(self, name: str) -> tuple[float, ...]:
        """Return one figure's estimates, prior by prior."""
        return tuple(report[name].value for report in self.reports)

    def band(self, name: str) -> tuple[float, float]:
        """Return the least low and the largest high end over all priors."""
        lows = [report[name].low for report in self.reports]
        return min(lows), max(report[name].high for report in self.reports)

    def __str__(self) -> str:
        names = list(self.reports[0].figures)
        head = "prior inside U  " + "  ".join(f"{name:>17}" for name in names)
        lines = [
            f"{prior:<14.3g}  "
            + "  ".join(f"{report[name].value:>17.3f}" for name in names)
            for prior, report in zip(self.priors, self.reports, strict=True)
        ]
        return "\n".join([head, *lines])


def prior_sensitivity(
    positive_scores: Any,
    unlabeled_scores: Any,
    *,
    priors: Sequence[float],
    random_state: RandomState = None,
    **options: Any,
) -> Sensitivity:
    """Return :func:`pu_metrics` for each of several priors inside U.

    ``priors`` may run from one end of ``PriorReport.interval`` to the other. The same
    draws serve all. Further arguments are those of :func:`pu_metrics`.

    Examples
    --------
    >>> import numpy as np
    >>> from denspu.metrics import prior_sensitivity
    >>> P, U = np.arange(10) - 2.5, np.arange(40) - 30.5
    >>> found = prior_sensitivity(P, U, priors=[0.1, 0.2], random_state=0)
    >>> [round(v, 2) for v in found.values("precision")]
    [0.31, 0.62]
    """
    given = tuple(float(p) for p in priors)
    if not given:
        raise InvalidParameterError(
            "priors is empty; give at least one share of positives inside U."
        )
    seed = Randomness(random_state).seed("prior_sensitivity")
    reports = tuple(
        pu_metrics(
            positive_scores,
            unlabeled_scores,
            prior_in_unlabeled=prior,
            random_state=seed,
            **options,
        )
        for prior in given
    )
    return Sensitivity(given, reports)
