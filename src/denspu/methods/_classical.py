"""What PU methods on an embedding, and those around an ordinary classifier, share.

Rows, the encoder, the classifier and its seeds are settled here. A method on an
embedding is a subclass of :class:`EmbeddingPU` with ``_learn(Z, data, randomness)`` and
``_score(Z)``. One around a classifier is a subclass of :class:`EstimatorPU` with
``_train(task)`` and ``_score(rows)``: it asks the task for fitted classifiers and for
scores of rows that a classifier has not seen.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils.validation import has_fit_parameter

from denspu._folds import deal_folds, groups_argument, same_rows
from denspu._machine import resolve_device
from denspu._parameters import About, OneOf, Part, setting
from denspu._random import Randomness
from denspu._registry import (
    prepare_part,
    refuse_kind,
    registry,
    resolve_part,
    takes_rows,
)
from denspu._share import Counts, Isotonic, Share
from denspu._typing import BoolArray, FloatArray, IntArray, Scenario
from denspu._validation import PUInput, take_rows
from denspu.base import in_fixed_rows
from denspu.data.kinds import kind_of
from denspu.exceptions import FewRowsWarning, InvalidParameterError, SelectionWarning
from denspu.methods._base import EncoderPU
from denspu.methods._evidence import doubtful_share, resolve_prior

KERNEL_ROWS = 10_000
"""Training rows up to which ``estimator="auto"`` is a kernel machine."""

SURE = 1e-6
"""Probabilities are kept inside (SURE, 1 - SURE) before they become log-odds."""


class EmbeddingPU(EncoderPU):
    """A PU method on the embedding of an encoder."""

    about = About(inputs=("table", "image", "text"))

    encoder: Any = setting(
        "auto",
        OneOf("auto"),
        Part("encoder"),
        doc='``"auto"`` standardises tables, takes small images as they are, and '
        "learns a contrastive embedding of others.",
    )

    def _fit(self, data: PUInput, randomness: Randomness) -> None:
        self.device_ = str(resolve_device(self.device))
        chosen = self.encoder
        if isinstance(chosen, str) and chosen == "auto":
            on_gpu = self.device_.startswith("cuda")
            chosen = kind_of(data.kind).default_encoder(data.X, on_gpu)
        self._learn_encoder(chosen, data, randomness)
        self._learn(self._vectors(data.X), data, randomness)

    @abstractmethod
    def _learn(self, Z: FloatArray, data: PUInput, randomness: Randomness) -> None:
        """Learn from embeddings; ``data`` says who is who."""

    @abstractmethod
    def _score(self, Z: FloatArray) -> FloatArray:
        """Return log-odds or a margin around 0 for embeddings."""

    def _vectors(self, X: Any) -> FloatArray:
        return np.asarray(self._embed(X), dtype=np.float64)

    def _decide(self, X: Any) -> FloatArray:
        return in_fixed_rows(self._score, self._vectors(X))

    def _expected_share(self, data: PUInput, called: float) -> float | None:
        known = super()._expected_share(data, called)
        if known is not None or not hasattr(self, "encoder_"):
            return known
        return doubtful_share(called, data, self._vectors)


@dataclass(frozen=True, eq=False)
class RowScale:
    """Moves rows to mean 0 and divides them by one number.

    One number for all columns keeps their relation: pixels that are nearly always dark
    are not blown up, and a table standardised by its encoder stays as it is.
    """

    centre: FloatArray
    spread: float

    @classmethod
    def of(cls, Z: FloatArray) -> RowScale:
        """Return the scale of some rows."""
        spread = float(np.sqrt(Z.var(axis=0).mean()))
        return cls(Z.mean(axis=0), spread if spread > 0 else 1.0)

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Return scaled rows."""
        return np.asarray((Z - self.centre) / self.spread, dtype=np.float64)


def shares(
    given: float | str,
    scenario: Scenario,
    rows: Any,
    data: PUInput,
    randomness: Randomness,
    device: str,
) -> tuple[float, float, float]:
    """Return the share of positives overall, inside U, and in U less what is known."""
    prior, inside = resolve_prior(
        given, data, scenario, randomness, rows=rows, device=device
    )
    share = Share.exactly(inside, "unlabeled", Counts.seen(data))
    return prior, inside, share.to("open").value


@dataclass(frozen=True, eq=False)
class EstimatorTask:
    """Rows as the classifier sees them, who is who, and how classifiers are fitted."""

    rows: Any
    """Scaled embeddings, or the images themselves for a network."""
    Z: FloatArray
    """Scaled embeddings; empty columns where the method has no use for them."""
    data: PUInput
    template: Any
    """``"auto"`` or a classifier to be cloned."""
    randomness: Randomness
    device: str
    verbose: int

    @property
    def positive(self) -> BoolArray:
        """True for labelled positives."""
        return self.data.positive

    @property
    def free(self) -> BoolArray:
        """True for unlabelled rows of which nothing is known."""
        return self.data.unlabeled & ~self.data.known_negative

    def fit(
        self,
        index: IntArray,
        target: Any,
        name: str,
        *,
        weight: FloatArray | None = None,
        balanced: bool = True,
    ) -> Any:
        """Return a fitted clone of the classifier.

        ``balanced`` says whether ``"auto"`` lets both classes count the same; a
        classifier that was given is left as it is.
        """
        template = self.template
        if isinstance(template, str):
            template = default_estimator(len(index), balanced)
        model = prepare_part(
            template, self.randomness, name, device=self.device, verbose=self.verbose
        )
        seed_inner(model, self.randomness, name)
        rows, labels = take_rows(self.rows, index), np.asarray(target, dtype=np.int64)
        given = groups_argument(model, self.data.groups, index)
        if weight is not None:
            given |= weight_argument(model, weight)
        return model.fit(rows, labels, **given)

    def positives_against(self, negative: IntArray, name: str) -> Any:
        """Return a classifier of P against some rows."""
        positive = np.flatnonzero(self.positive)
        index = np.concatenate([positive, negative])
        return self.fit(index, np.arange(len(index)) < len(positive), name)

    def labelled_against_rest(self, index: IntArray, name: str) -> Any:
        """Return a classifier of P against U, from some rows."""
        return self.fit(index, self.positive[index], name)

    def scores(self, model: Any, index: IntArray) -> FloatArray:
        """Return log-odds or margins of some rows."""
        return margins(model, take_rows(self.rows, index))

    def folds(self, n_folds: int, scenario: Scenario = "one-sample") -> IntArray:
        """Return a fold for each row, no group split; one fold where it must be.

        In the two-sample scenario U may hold rows of P again; without groups, equal
        rows share a fold.
        """
        groups = self.data.groups
        if scenario == "two-sample" and groups is None:
            groups = same_rows(self.rows)
        rng = self.randomness.numpy("folds")
        return deal_folds(self.positive, groups, n_folds, rng)

    def out_of_fold(
        self, fitted: Callable[[IntArray, str], Any], fold: IntArray, name: str
    ) -> FloatArray:
        """Return scores of all rows, each by a classifier that has not seen it.

        ``fitted`` makes one of some rows, by a name. With a single fold nothing can be
        held out, and rows judge themselves.
        """
        scores = np.empty(len(fold))
        for part in np.unique(fold):
            own = np.flatnonzero(fold == part)
            rest = np.flatnonzero(fold != part)
            rest = rest if len(rest) else own
            scores[own] = self.scores(fitted(rest, f"{name}/{part}"), own)
        return scores

    def prior(
        self, given: float | str, scenario: Scenario
    ) -> tuple[float, float, float]:
        """Return the share of positives overall, inside U, and among ``free`` rows."""
        rows = self.Z if self.Z.shape[1] else None
        return shares(given, scenario, rows, self.data, self.randomness, self.device)

    def reliable(self, chosen: BoolArray, scores: FloatArray) -> IntArray:
        """Return the chosen free rows and the known negatives: the reliable ones.

        Where nothing was chosen, the rows of U with the lowest scores are taken, as
        many as there are in P, and a warning says so.
        """
        mask = chosen & self.free
        if not (mask | self.data.known_negative).any():
            free = np.flatnonzero(self.free)
            count = max(1, min(int(self.positive.sum()), len(free) // 2))
            mask[free[np.argsort(scores[free], kind="stable")[:count]]] = True
            warnings.warn(
                f"No unlabelled row looks reliably negative; the {count} that look "
                "least like positives are taken. The features may not tell the "
                "classes apart.",
                SelectionWarning,
                stacklevel=2,
            )
        return np.flatnonzero(mask | self.data.known_negative)


class EstimatorPU(EmbeddingPU):
    """A PU method around an ordinary classifier.

    The classifier sees the embedding of the encoder, scaled as a whole. One that takes
    images (a registered network) sees the images instead.
    """

    estimator: Any = setting(
        "auto",
        OneOf("auto"),
        Part("classifier"),
        doc="The classifier: a kernel machine, or boosted trees beyond 10,000 rows. A "
        "registered key or any scikit-learn classifier may take its place.",
    )

    def _fit(self, data: PUInput, randomness: Randomness) -> None:
        self.template_ = self.estimator
        if not (isinstance(self.estimator, str) and self.estimator == "auto"):
            self.template_ = resolve_part(
                self.estimator, "classifier", argument="estimator"
            )
            refuse_kind(self.template_, data.kind, "estimator")
        sees_input = takes_rows(self.template_, data.kind)
        self.sees_ = "input" if sees_input else "embedding"
        if self.sees_ == "embedding" or self._uses_embedding():
            super()._fit(data, randomness)
        else:
            self.device_ = str(resolve_device(self.device))
            self._learn(np.empty((len(data.positive), 0)), data, randomness)

    def _learn(self, Z: FloatArray, data: PUInput, randomness: Randomness) -> None:
        if Z.shape[1]:
            self.scale_ = RowScale.of(Z)
            Z = self.scale_(Z)
        self._train(
            EstimatorTask(
                rows=data.X if self.sees_ == "input" else Z,
                Z=Z,
                data=data,
                template=self.template_,
                randomness=randomness,
                device=self.device_,
                verbose=self.verbose,
            )
        )

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of a classifier that is still named by its key."""
        nested = [name for name in params if name.startswith("estimator__")]
        key = params.get("estimator", self.estimator)
        if nested and isinstance(key, str):
            if key == "auto":
                raise InvalidParameterError(
                    f"{nested[0]} cannot be set while estimator='auto'. Name the "
                    "classifier first: estimator='logistic', say."
                )
            params["estimator"] = registry().get(key, "classifier").build()
        return super().set_params(**params)

    def _uses_embedding(self) -> bool:
        """Tell whether the method looks at embeddings, whatever its classifier sees."""
        return False

    @abstractmethod
    def _train(self, task: EstimatorTask) -> None:
        """Learn from the task's rows, and leave ``estimator_`` behind."""

    def _score(self, rows: Any) -> FloatArray:
        return margins(self.estimator_, rows)

    def _decide(self, X: Any) -> FloatArray:
        if self.sees_ == "input":
            return self._score(X)
        return in_fixed_rows(self._score, self.scale_(self._vectors(X)))


# --- the classifier -------------------------------------------------------------------


def default_estimator(n_rows: int, balanced: bool) -> Any:
    """Return the classifier for ``estimator="auto"``: kernels, or trees for many."""
    weight = "balanced" if balanced else None
    if n_rows <= KERNEL_ROWS:
        return SVC(C=1.0, class_weight=weight)
    return HistGradientBoostingClassifier(class_weight=weight)


def seed_inner(model: Any, randomness: Randomness, name: str) -> None:
    """Seed what stands inside a pipeline or another wrapper."""
    known = model.get_params(deep=True) if hasattr(model, "get_params") else {}
    unseeded = {
        key: randomness.seed(f"{name}/{key}")
        for key, value in known.items()
        if key.endswith("__random_state") and value is None
    }
    if unseeded:
        model.set_params(**unseeded)


def weight_argument(model: Any, weight: FloatArray) -> dict[str, FloatArray]:
    """Return the argument that hands weights of rows to ``fit``, or raise."""
    inner, path = model, ""
    while isinstance(inner, Pipeline):
        last, inner = inner.steps[-1]
        path += f"{last}__"
    if not has_fit_parameter(inner, "sample_weight"):
        raise InvalidParameterError(
            f"estimator={type(inner).__name__} cannot weigh rows: its fit has no "
            "sample_weight, which this method needs. Choose another estimator, "
            "'logistic' or 'gradient_boosting', say."
        )
    return {f"{path}sample_weight": weight}


def margins(model: Any, rows: Any) -> FloatArray:
    """Return how positive rows are: log-odds, or a margin around 0."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(rows), dtype=np.float64)
    column = list(model.classes_).index(1)
    probability = np.asarray(model.predict_proba(rows), dtype=np.float64)[:, column]
    return np.asarray(logit(np.clip(probability, SURE, 1 - SURE)))


# --- copies of a few rows -------------------------------------------------------------


@contextmanager
def copies_told(
    rows: FloatArray, what: str, wanted: int, outcome: str
) -> Iterator[None]:
    """Warn where there are fewer distinct rows than parts to make of them.

    It is said in the user's own words, and not in scikit-learn's about clusters.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Number of distinct clusters", ConvergenceWarning
        )
        yield
    distinct = len(np.unique(rows, axis=0))
    if distinct < wanted:
        warnings.warn(
            f"The {len(rows)} {what} are copies of {distinct} row(s); {outcome}. Leave "
            "copies out, or give features that tell rows apart.",
            FewRowsWarning,
            stacklevel=2,
        )


# --- from scores to P(s = 1 | x), the chance that a row carries a label ---------------

CALIBRATION_RULE = OneOf("isotonic", "sigmoid", None)


def learn_calibration(
    kind: str | None, scores: FloatArray, labelled: BoolArray
) -> Callable[[FloatArray], FloatArray]:
    """Return a rising map from scores to P(s = 1).

    ``"isotonic"``: any rising steps. ``"sigmoid"``: the logistic function of a line
    (Platt). ``None``: the scores are log-odds already.
    """
    if kind is None:
        return as_log_odds
    return (Isotonic if kind == "isotonic" else Sigmoid)(scores, labelled)


def as_log_odds(scores: FloatArray) -> FloatArray:
    """Return the probabilities of log-odds."""
    return np.asarray(expit(scores))


class Sigmoid:
    """The logistic function of a line through the scores."""

    def __init__(self, scores: FloatArray, labelled: BoolArray) -> None:
        self.spread = float(scores.std()) or 1.0
        self.line = LogisticRegression(C=1e4)
        self.line.fit(scores[:, None] / self.spread, labelled)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return P(s = 1)."""
        found = self.line.predict_proba(scores[:, None] / self.spread)
        return np.asarray(found[:, 1])


def cross_calibrated(
    kind: str | None, scores: FloatArray, labelled: BoolArray, fold: IntArray
) -> FloatArray:
    """Return P(s = 1) of every row by a map that was learned without its fold."""
    found = np.empty(len(scores))
    for part in np.unique(fold):
        own = fold == part
        rest = ~own if not own.all() else own
        found[own] = learn_calibration(kind, scores[rest], labelled[rest])(scores[own])
    return found
