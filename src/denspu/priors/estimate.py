"""The class prior: several estimators, one answer, an honest interval.

The walk: rows become numbers, without labels (an encoder that pulled the labelled
positives together would make them unlike those inside U, and every estimate too small).
A few learners of different kinds tell P from U; out of fold, their scores are put on
one scale and averaged with weights exp((AUC - best AUC) / 0.02). Each estimator answers
from these, and resamples of the rows say how sure the median of the answers is.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np
from scipy.special import logit
from scipy.stats import t as student
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from denspu._folds import deal_even_folds, same_rows
from denspu._parameters import (
    About,
    Configured,
    Number,
    OneOf,
    Whole,
    check,
    check_parameters,
)
from denspu._random import Randomness
from denspu._registry import (
    give_time,
    prepare_part,
    refuse_kind,
    registry,
    resolve_part,
)
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState, Scenario
from denspu._validation import PUInput, check_embedding, validate_fit
from denspu.data.kinds import kind_of
from denspu.encoders import ContrastiveEncoder, IdentityEncoder, TabularEncoder
from denspu.exceptions import (
    FewRowsWarning,
    InvalidInputError,
    InvalidParameterError,
    PriorDisagreementWarning,
    did_you_mean,
)

AUTO = ("density_ratio", "dedpul", "mixture")
"""Estimators that ``method="auto"`` runs; the answer is their median."""

OWN = "model"
"""Name of a share that was found in another way, among the estimates."""

FEW = 10
"""Labelled positives below which a warning is due."""

FEATURE_RESAMPLES = 20
"""Resamples at most where an estimator works on features, which takes longer."""

WIDE = 0.15
"""Estimates that lie this far apart disagree."""

FACTOR = 3.0
"""Small estimates disagree when the largest is this many times the least."""

SMALL = 0.1
"""Below this a share is small: a difference of 0.15 cannot arise."""

LEAST = 1e-4
"""Shares below this count as this when their ratio is asked for."""


SMALL_IMAGE = 32
"""Grey images up to this side are used pixel by pixel."""

FOLDS = 5
TREES = 60
FOREST_ROWS = 5_000
"""Rows up to which trees are a forest; beyond, boosted trees are faster."""

KERNEL_ROWS = 4_000
"""Rows a kernel machine learns from at most; it sits out above five times as many."""

TRAIN_ROWS = 40_000
"""Rows any learner is trained on at most; P is kept whole up to half of them."""

SURE = 0.995
"""Shares of votes are kept inside (1 - SURE, SURE) before they become log-odds."""

SHARPNESS = 0.02
"""Difference in AUC that divides a learner's weight by e."""

# --- what an estimator is ------------------------------------------------------------


class PriorEstimator(Configured, ABC):
    """One rule for the share of positives inside U.

    ``sees`` says what a subclass is given: ``"scores"``, one number a row, higher =
    more positive, given by a model that has not seen the row; or ``"features"``, the
    rows themselves as numbers.
    """

    about = About(kind="prior", inputs=("scores",))

    sees: ClassVar[Literal["features", "scores"]] = "scores"
    prefers_linear: ClassVar[bool] = False
    """Do a linear learner's scores suit it better, where they rank as well?"""

    def estimate(
        self, positive: Any, unlabeled: Any, rng: np.random.Generator
    ) -> float:
        """Return the share of positives inside U, in [0, 1].

        P and U are one score a row, or one row of features; ``rng`` is for rules that
        draw.
        """
        check_parameters(self)
        if self.sees == "scores":
            P = check_scores(positive, "positive")
            U = check_scores(unlabeled, "unlabeled")
        else:
            P = np.asarray(check_embedding(positive, argument="positive"), np.float64)
            U = np.asarray(check_embedding(unlabeled, argument="unlabeled"), np.float64)
            if P.shape[1] != U.shape[1]:
                raise InvalidInputError(
                    f"positive has {P.shape[1]} features and unlabeled {U.shape[1]}; "
                    "both must have the same columns."
                )
        return float(np.clip(self._estimate(P, U, rng), 0.0, 1.0))

    @abstractmethod
    def _estimate(
        self, P: FloatArray, U: FloatArray, rng: np.random.Generator
    ) -> float:
        """Return the share from checked samples."""


def check_scores(scores: Any, argument: str) -> FloatArray:
    """Return one finite score a row as float64, or raise."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or not len(scores) or not np.isfinite(scores).all():
        raise InvalidInputError(
            f"{argument} must be one finite score a row, at least one row. Got shape "
            f"{scores.shape}."
        )
    return scores


def counting_variance(share: float, n_rows: int) -> float:
    """Return the variance of a share counted in so many rows: no interval is less."""
    counted = (share * n_rows + 1) / (n_rows + 2)
    return counted * (1 - counted) / n_rows


def around(
    share: float, variance: float, degrees: int, level: float
) -> tuple[float, float]:
    """Return the share ± t standard errors, within [0, 1]."""
    error = student.ppf((1 + level) / 2, degrees) * np.sqrt(variance)
    return max(0.0, float(share - error)), min(1.0, float(share + error))


# --- the answer ----------------------------------------------------------------------


@dataclass(frozen=True)
class PriorReport:
    """The class prior: over all rows, inside U, with intervals and second opinions."""

    prior_in_unlabeled: float
    """Share of positives inside U."""
    low: float
    """Lower end of the interval of ``prior_in_unlabeled``."""
    high: float
    level: float
    """How often such an interval should hold the truth."""
    method: str
    """What the answer was made from: a key, several, or ``"auto"``."""
    scenario: Scenario
    estimates: Mapping[str, float]
    """Share of positives inside U by estimator."""
    n_positive: int
    n_unlabeled: int

    def overall(self, share: float) -> float:
        """Turn a share of positives inside U into a share of positives overall."""
        return self._share(share).population(self.scenario).value

    def _share(self, value: float) -> Share:
        counts = Counts(self.n_positive, self.n_unlabeled)
        return Share.exactly(value, "unlabeled", counts)

    @property
    def prior(self) -> float:
        """Share of positives in the population that the scenario describes."""
        return self.overall(self.prior_in_unlabeled)

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of ``prior_in_unlabeled``."""
        return self.low, self.high

    @property
    def prior_interval(self) -> tuple[float, float]:
        """Interval of ``prior``."""
        return self.overall(self.low), self.overall(self.high)

    @property
    def label_frequency(self) -> float:
        """Share c of the positives among all these rows that carry a label."""
        return self._share(self.prior_in_unlabeled).label_frequency

    @property
    def disagreement(self) -> float:
        """Largest less least of the estimates."""
        return max(self.estimates.values()) - min(self.estimates.values())

    @property
    def disagrees(self) -> bool:
        """Tell whether the estimates lie too far apart to be trusted."""
        least, largest = min(self.estimates.values()), max(self.estimates.values())
        few = largest < SMALL and largest > FACTOR * max(least, LEAST)
        return few or largest - least > WIDE

    def __str__(self) -> str:
        rows = [
            ("prior, all rows", _with(self.prior, self.prior_interval)),
            ("prior inside U", _with(self.prior_in_unlabeled, self.interval)),
            ("label frequency", _digits(self.label_frequency)),
            ("P, U", f"{self.n_positive:,} rows, {self.n_unlabeled:,} rows"),
            ("scenario", self.scenario),
            ("method", self.method),
        ]
        rows += [(f"  {key}", _digits(share)) for key, share in self.estimates.items()]
        rows += [("disagreement", _digits(self.disagreement))]
        width = max(len(name) for name, _ in rows)
        head = f"Class prior ({self.level:.0%} intervals)"
        return "\n".join([head, *(f"{name:<{width}}  {text}" for name, text in rows)])


def _digits(share: float) -> str:
    return f"{share:.3f}" if share >= SMALL or share == 0 else f"{share:.2g}"


def _with(share: float, interval: tuple[float, float]) -> str:
    return f"{_digits(share)}  [{_digits(interval[0])}, {_digits(interval[1])}]"


# --- the calls ------------------------------------------------------------------------


def estimate_prior(
    X: Any,
    y: Any,
    *,
    method: str | Iterable[str] = "auto",
    scenario: Scenario = "one-sample",
    groups: Any = None,
    encoder: Any = "auto",
    level: float = 0.9,
    n_resamples: int = 50,
    random_state: RandomState = None,
    device: str = "auto",
    max_seconds: float | None = None,
) -> PriorReport:
    """Estimate the share of positives from labelled positives and unlabelled rows.

    Parameters
    ----------
    X : array, DataFrame or image array
    y : array of shape (n,)
        1 for a labelled positive, 0 (or -1, False) for an unlabelled row.
    method : str or list of str, default="auto"
        Keys of estimators (``denspu list`` shows them); the answer is the median of
        theirs. ``"auto"`` takes the median of three that look at out-of-fold scores.
    scenario : {"one-sample", "two-sample"}, default="one-sample"
        one-sample: P was taken out of one sample, and the overall prior counts P too.
        two-sample: U is a sample of its own, and its share is the prior. Rows of P that
        U holds again are kept in one fold.
    groups : array of shape (n,), optional
        Patient, customer, ...: no group crosses a fold, resamples draw groups, and
        intervals count groups in place of rows.
    encoder : "auto", key or encoder, default="auto"
        What turns rows into numbers, without ``y``. ``"auto"`` standardises tables and
        takes pixels of grey images up to 32×32, a contrastive encoder for others.
    level : float, default=0.9
        How often the interval should hold the truth.
    n_resamples : int, default=50
        Bootstrap draws for the interval; at most 20 where an estimator looks at
        features. 0 gives the widest interval, [0, 1].
    random_state : int, generator or None, default=None
    device, max_seconds : str, float or None
        For encoders that are networks: where they run, and how long at most.

    Warns
    -----
    PriorDisagreementWarning
        If the estimates lie more than 0.15 apart, or, where all are small, the largest
        is more than three times the least.
    FewRowsWarning
        If fewer than 10 rows are labelled.

    Examples
    --------
    >>> import numpy as np
    >>> from denspu.priors import estimate_prior
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(6, 1, (200, 2)), rng.normal(0, 1, (200, 2))]
    >>> y = np.r_[np.ones(100), np.zeros(300)]  # 100 of 300 in U are positive
    >>> found = estimate_prior(X, y, random_state=0)
    >>> bool(abs(found.prior_in_unlabeled - 1 / 3) < 0.03)
    True
    """
    keys = _keys(method)
    check("scenario", scenario, OneOf("one-sample", "two-sample"))
    check("level", level, Number(0, 1, "neither"))
    check("n_resamples", n_resamples, Whole(0))
    data = validate_fit(_Gate(), X, y, None, groups)
    randomness = Randomness(random_state)
    Z = embed(data, encoder, randomness, device, max_seconds)
    group_of = data.groups
    if scenario == "two-sample" and group_of is None:
        group_of = same_rows(Z)
    n_labelled = int(data.positive.sum())
    if n_labelled < FEW:
        warnings.warn(
            f"{n_labelled} rows are labelled; with fewer than {FEW} the class prior is "
            "little more than a guess. Look at the interval.",
            FewRowsWarning,
            stacklevel=2,
        )
    estimators = {key: registry().get(key, "prior").build() for key in keys}
    views = {"features": Z}
    if any(one.sees == "scores" for one in estimators.values()):
        views |= cross_fit(Z, data.positive, group_of, randomness)
    rows = np.flatnonzero(data.positive), np.flatnonzero(data.unlabeled)
    samples = Samples(estimators, views, *rows, data.groups)
    named = "auto" if method == "auto" else " + ".join(keys)
    return _answer(samples, named, scenario, level, n_resamples, randomness)


def prior_from_scores(
    positive: Any,
    unlabeled: Any,
    *,
    own: float | None = None,
    positive_groups: IntArray | None = None,
    unlabeled_groups: IntArray | None = None,
    scenario: Scenario = "one-sample",
    level: float = 0.9,
    n_resamples: int = 50,
    random_state: RandomState = None,
) -> PriorReport:
    """Estimate the share of positives from scores, by the estimators of ``"auto"``.

    Parameters
    ----------
    positive, unlabeled : arrays
        Scores, higher = more positive; no row of P may have been scored by a model
        that learned it as a positive.
    own : float, optional
        A share found in another way. It is then the answer; the interval around it
        also counts how far the estimators lie from it.
    positive_groups, unlabeled_groups : arrays, optional
    scenario, level, n_resamples, random_state
        As for :func:`estimate_prior`, and so are the groups and the warning.

    Examples
    --------
    >>> import numpy as np
    >>> from denspu.priors import prior_from_scores
    >>> rng = np.random.default_rng(0)
    >>> U = np.r_[rng.normal(5, 1, 300), rng.normal(0, 1, 700)]
    >>> found = prior_from_scores(rng.normal(5, 1, 100), U, random_state=0)
    >>> bool(found.low < 0.3 < found.high)
    True
    """
    P, U = check_scores(positive, "positive"), check_scores(unlabeled, "unlabeled")
    scores = np.concatenate([P, U])
    groups = None
    if positive_groups is not None and unlabeled_groups is not None:
        groups = np.concatenate([positive_groups, unlabeled_groups])
    samples = Samples(
        {key: registry().get(key, "prior").build() for key in AUTO},
        {"scores": scores, "linear": scores},
        np.arange(len(P)),
        np.arange(len(P), len(scores)),
        groups,
    )
    randomness = Randomness(random_state)
    return _answer(samples, "auto", scenario, level, n_resamples, randomness, own)


def _answer(
    samples: Samples,
    method: str,
    scenario: Scenario,
    level: float,
    n_resamples: int,
    randomness: Randomness,
    own: float | None = None,
) -> PriorReport:
    estimates = samples.estimates(randomness.numpy("estimate"))
    share = _median(estimates) if own is None else own
    if own is not None:
        estimates = {OWN: own, **estimates}
    low, high = 0.0, 1.0
    if n_resamples:
        drawn = samples.resampled(n_resamples, randomness.numpy("resamples"))
        low, high = interval(share, estimates, drawn, level, samples)
    report = PriorReport(
        prior_in_unlabeled=share,
        low=low,
        high=high,
        level=float(level),
        method=method,
        scenario=scenario,
        estimates=estimates,
        n_positive=len(samples.positive),
        n_unlabeled=len(samples.unlabeled),
    )
    if report.disagrees:
        told = ", ".join(f"{key} {_digits(v)}" for key, v in estimates.items())
        warnings.warn(
            "Estimates of the share of positives among the unlabelled disagree: "
            f"{told}. The classes may overlap everywhere, the labelled may be a biased "
            "sample of the positives, or there are too few rows. Give more labelled "
            "rows or better features, or set the prior yourself.",
            PriorDisagreementWarning,
            stacklevel=3,
        )
    return report


class _Gate(BaseEstimator):
    """Stands in for an estimator at the gate for data; gaps are allowed."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _keys(method: str | Iterable[str]) -> tuple[str, ...]:
    known = registry().of_kind("prior")
    if isinstance(method, str):
        keys: tuple[Any, ...] = AUTO if method == "auto" else (method,)
    else:
        keys = tuple(method) if isinstance(method, Iterable) else (method,)
    for key in keys:
        if key not in known:
            raise InvalidParameterError(
                f"method={method!r}: there is no prior estimator called {key!r}."
                f"{did_you_mean(str(key), [*known, 'auto'])} Allowed are 'auto', or "
                f"one or several of {', '.join(sorted(known))}."
            )
    if not keys or len(set(keys)) < len(keys):
        raise InvalidParameterError(
            f"method={method!r} must name at least one estimator, and each only once."
        )
    return cast("tuple[str, ...]", keys)


# --- rows as numbers, and scores out of fold ----------------------------------------


def embed(
    data: PUInput,
    encoder: Any,
    randomness: Randomness,
    device: str,
    max_seconds: float | None = None,
) -> FloatArray:
    """Return one row of numbers a sample."""

    def encoded(part: Any, X: Any) -> FloatArray:
        part = prepare_part(part, randomness, "encoder", device=device)
        give_time(part, max_seconds)
        Z = check_embedding(part.fit(X).transform(X), argument="the encoder's output")
        if len(Z) != len(X):
            raise InvalidInputError(
                f"The encoder returned {len(Z)} rows for {len(X)}; one a sample is "
                "needed."
            )
        return Z

    X = data.X
    if not (isinstance(encoder, str) and encoder == "auto"):
        part = resolve_part(encoder, "encoder", argument="encoder")
        refuse_kind(part, data.kind, "encoder")
        return encoded(part, X)
    part = kind_of(data.kind).plain_encoder()
    if part is not None:
        return encoded(part, X)
    if X.shape[3] > 1 or max(X.shape[1:3]) > SMALL_IMAGE:
        return encoded(ContrastiveEncoder(positive_weight=0), X)
    return encoded(TabularEncoder(), encoded(IdentityEncoder(), X))


def cross_fit(
    Z: FloatArray,
    positive: BoolArray,
    groups: IntArray | None,
    randomness: Randomness,
) -> dict[str, FloatArray]:
    """Score each row by learners of P against U trained on the other folds.

    Higher = more positive. ``"scores"`` are of all learners together, ``"linear"`` of
    the linear one alone, where it tells P from U as well as any.
    """
    fold = deal_even_folds(positive, groups, FOLDS, randomness.numpy("folds"))
    if fold.max() == 0:
        raise InvalidInputError(
            "P or U is a single row or group, or copies of one, so no row can be "
            "scored by a model that has not seen it. More rows or finer groups are "
            "needed."
        )
    columns = {}
    for name in learners(len(Z)):
        most = KERNEL_ROWS if name == "kernel" else TRAIN_ROWS
        columns[name] = np.zeros(len(Z))
        for k in range(int(fold.max()) + 1):
            own = np.flatnonzero(fold == k)
            rng = randomness.numpy(f"{name}/{k}/rows")
            rows = sample(positive, fold != k, most, rng)
            model = _learner(name, len(Z), randomness.seed(f"{name}/{k}"))
            scores = _margins(model.fit(Z[rows], positive[rows]), Z[own])
            # Of U alone: a fold's scale must not depend on how P was scored.
            centre = scores[~positive[own]]
            columns[name][own] = (scores - centre.mean()) / (centre.std() or 1.0)
    auc = np.array([roc_auc_score(positive, scores) for scores in columns.values()])
    weight = np.exp((auc - auc.max()) / SHARPNESS)
    scores = np.average(list(columns.values()), axis=0, weights=weight)
    linear = weight[list(columns).index("linear")] >= np.exp(-1.0)
    return {"scores": scores, "linear": columns["linear"] if linear else scores}


def learners(n_rows: int) -> tuple[str, ...]:
    """Return who takes part."""
    few = n_rows <= 5 * KERNEL_ROWS
    return ("linear", "kernel", "trees") if few else ("linear", "trees")


def _learner(name: str, n_rows: int, seed: int) -> Any:
    if name == "linear":
        return LogisticRegression(C=0.1, class_weight="balanced", max_iter=200)
    if name == "kernel":
        return SVC(C=1.0, class_weight="balanced", random_state=0)  # draws nothing
    if n_rows <= FOREST_ROWS:
        return ExtraTreesClassifier(
            TREES, min_samples_leaf=2, class_weight="balanced", random_state=seed
        )
    return HistGradientBoostingClassifier(
        max_iter=60,
        max_leaf_nodes=15,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )


def _margins(model: Any, Z: FloatArray) -> FloatArray:
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(Z), dtype=np.float64)
    return logit(np.clip(model.predict_proba(Z)[:, 1], 1 - SURE, SURE))


def sample(
    positive: BoolArray, allowed: BoolArray, most: int, rng: np.random.Generator
) -> IntArray:
    """Return at most ``most`` allowed rows: P up to half of them, the rest from U."""
    P, U = np.flatnonzero(positive & allowed), np.flatnonzero(~positive & allowed)
    if len(P) + len(U) <= most:
        return np.concatenate([P, U])
    few_p = min(len(P), max(most // 2, most - len(U)))
    P = rng.choice(P, few_p, replace=False)
    U = rng.choice(U, min(len(U), most - few_p), replace=False)
    return np.concatenate([P, U])


# --- samples and intervals ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Samples:
    """P and U as each estimator wants to see them."""

    estimators: Mapping[str, PriorEstimator]
    views: Mapping[str, FloatArray]
    """One row a sample: ``"features"``, ``"scores"``, ``"linear"`` scores."""
    positive: IntArray
    unlabeled: IntArray
    groups: IntArray | None

    @property
    def units(self) -> tuple[int, int]:
        """How many rows, or groups where there are any, speak for P and for U."""
        if self.groups is None:
            return len(self.positive), len(self.unlabeled)
        P, U = (np.unique(self.groups[r]) for r in (self.positive, self.unlabeled))
        return len(P), len(U)

    def estimates(
        self,
        rng: np.random.Generator,
        positive: IntArray | None = None,
        unlabeled: IntArray | None = None,
    ) -> dict[str, float]:
        """Return each estimator's share, on all rows or on those given."""
        P = self.positive if positive is None else positive
        U = self.unlabeled if unlabeled is None else unlabeled
        found = {}
        for key, estimator in self.estimators.items():
            view = self.views["linear" if estimator.prefers_linear else estimator.sees]
            found[key] = estimator.estimate(view[P], view[U], rng)
        return found

    def resampled(self, times: int, rng: np.random.Generator) -> FloatArray:
        """Return the answers on rows (or groups) drawn with replacement."""
        if any(e.sees == "features" for e in self.estimators.values()):
            times = min(times, FEATURE_RESAMPLES)
        drawn = []
        for _ in range(times):
            P, U = (draw(r, self.groups, rng) for r in (self.positive, self.unlabeled))
            drawn.append(_median(self.estimates(rng, P, U)))
        return np.array(drawn)


def draw(rows: IntArray, groups: IntArray | None, rng: np.random.Generator) -> IntArray:
    """Return as many rows as given, drawn with replacement, whole groups together."""
    if groups is None:
        return rng.choice(rows, len(rows))
    names, member = np.unique(groups[rows], return_inverse=True)
    of_group = np.split(
        rows[np.argsort(member, kind="stable")], np.cumsum(np.bincount(member))[:-1]
    )
    chosen: list[IntArray] = []
    n = 0
    while n < len(rows):
        chosen.append(of_group[rng.integers(len(names))])
        n += len(chosen[-1])
    return np.concatenate(chosen)[: len(rows)]


def _median(estimates: Mapping[str, float]) -> float:
    return float(np.median(list(estimates.values())))


def interval(
    share: float,
    estimates: Mapping[str, float],
    drawn: FloatArray,
    level: float,
    samples: Samples,
) -> tuple[float, float]:
    """Return share ± t standard errors.

    Two things may be wrong with a share, and their squares add up: the rows happened to
    be these (the spread of the resamples, at least that of a count in U), and each
    estimator leans its own way (the spread of the estimates). Degrees of freedom are
    one less than P has rows. Where there are groups, they are counted in place of rows:
    rows of a group may say the same thing many times. A single row or group of P tells
    nothing about a spread, and the interval is [0, 1].
    """
    n, m = samples.units
    if n < 2:
        return 0.0, 1.0
    leaning = np.var(list(estimates.values()), ddof=1) if len(estimates) > 1 else 0.0
    spread = max(float(np.var(drawn)), counting_variance(share, m))
    return around(share, spread + float(leaning), n - 1, level)
