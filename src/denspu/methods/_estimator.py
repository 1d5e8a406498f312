"""What PU methods around an ordinary classifier share.

Rows, the classifier and its seeds are settled here. A method is a subclass with
``_train(task)`` and ``_score(rows)``: it asks the task for fitted classifiers and for
scores of rows that a classifier has not seen.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils.validation import has_fit_parameter

from denspu._folds import deal_folds, groups_argument, same_rows
from denspu._machine import resolve_device
from denspu._parameters import OneOf, Part
from denspu._random import Randomness
from denspu._registry import (
    inputs_of,
    prepare_part,
    refuse_kind,
    registry,
    resolve_part,
)
from denspu._share import Counts, Share
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu._validation import PUInput, take_rows
from denspu.base import Rules, in_fixed_rows
from denspu.exceptions import InvalidParameterError
from denspu.methods._embedding import EmbeddingPU
from denspu.methods._prior import Scenario, resolve_prior

KERNEL_ROWS = 10_000
"""Training rows up to which ``estimator="auto"`` is a kernel machine."""

SURE = 1e-6
"""Probabilities are kept inside (SURE, 1 - SURE) before they become log-odds."""

ESTIMATOR_RULES: Rules = {
    **EmbeddingPU._rules,
    "estimator": (OneOf("auto"), Part("classifier")),
}


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

    def prior(
        self, given: float | str, scenario: Scenario
    ) -> tuple[float, float, float]:
        """Return the share of positives overall, inside U, and among ``free`` rows."""
        prior, inside = resolve_prior(
            given,
            self.data,
            scenario,
            self.randomness,
            rows=self.Z if self.Z.shape[1] else None,
            device=self.device,
        )
        share = Share.exactly(inside, "unlabeled", Counts.seen(self.data))
        return prior, inside, share.to("open").value

    def out_of_fold(self, target: BoolArray, fold: IntArray, name: str) -> FloatArray:
        """Return scores of all rows, each by a classifier that has not seen it.

        With a single fold nothing can be held out, and rows judge themselves.
        """
        scores = np.empty(len(target))
        for part in np.unique(fold):
            own = np.flatnonzero(fold == part)
            rest = np.flatnonzero(fold != part)
            rest = rest if len(rest) else own
            model = self.fit(rest, target[rest], f"{name}/{part}")
            scores[own] = self.scores(model, own)
        return scores


class EstimatorPU(EmbeddingPU):
    """A PU method around an ordinary classifier.

    The classifier sees the embedding of the encoder, scaled as a whole. One that takes
    images (a registered network) sees the images instead.
    """

    _rules: ClassVar[Rules] = ESTIMATOR_RULES

    estimator: Any

    def _fit(self, data: PUInput, randomness: Randomness) -> None:
        self.template_ = self.estimator
        if not (isinstance(self.estimator, str) and self.estimator == "auto"):
            self.template_ = resolve_part(
                self.estimator, "classifier", argument="estimator"
            )
            refuse_kind(self.template_, data.kind, "estimator")
        takes = inputs_of(self.template_) or ()
        self.sees_ = (
            "input" if data.kind == "image" and "image" in takes else "embedding"
        )
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
        """Learn from the task's rows."""

    def _decide(self, X: Any) -> FloatArray:
        if self.sees_ == "input":
            return self._score(X)
        return in_fixed_rows(self._score, self.scale_(self._embed(X)))


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


def mark_positives(
    positive: BoolArray,
    groups: IntArray | None,
    share: float,
    rng: np.random.Generator,
) -> BoolArray:
    """Mark about a share of the positives, whole groups at a time.

    At least one positive is marked and one is left, if groups allow it.
    """
    rows = np.flatnonzero(positive)
    unit = np.arange(len(rows)) if groups is None else groups[rows]
    names = rng.permutation(np.unique(unit))
    wanted = max(1, round(share * len(rows)))
    marked = np.zeros(len(positive), dtype=bool)
    for name in names[: max(1, len(names) - 1)]:
        marked[rows[unit == name]] = True
        if marked.sum() >= wanted:
            break
    if marked.sum() == len(rows):  # a single group holds all positives
        marked[rows[: max(1, len(rows) - wanted)]] = False
    return marked
