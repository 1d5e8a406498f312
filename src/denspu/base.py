"""The contracts of the walk: Encoder, Densifier, Detector, Selector, PUClassifier.

One convention for the whole library:

* labels: ``y`` is 1 for a labelled positive, 0 for an unlabelled row;
* ``predict`` of a PU classifier answers 1 or 0, ``decision_function`` is higher for
  more positive, ``predict_proba`` rows sum to 1;
* a detector's ``score_samples`` is higher for more normal (more positive-like), its
  ``predict`` answers 1 (inlier) or -1 (outlier), as in scikit-learn;
* constructors only remember; ``fit`` validates; fitted state ends in ``_``.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from scipy.special import expit
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    OutlierMixin,
    TransformerMixin,
)
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from denspu._deadline import Deadline
from denspu._decisions import Decisions, through
from denspu._evidence import choose_held_out, without_labels
from denspu._parameters import Number, OneOf, Rule, check_parameters
from denspu._random import Randomness
from denspu._share import Counts, Share
from denspu._thresholds import otsu_cut, prior_cut, quantile_cut
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu._validation import (
    PUInput,
    take_rows,
    validate_embedding,
    validate_fit,
    validate_X,
)
from denspu.exceptions import (
    DegenerateFitWarning,
    InvalidParameterError,
    UnusedInputWarning,
    did_you_mean,
)

Rules = Mapping[str, tuple[Rule, ...]]

OF_LAST_FIT = ("evidence_", "threshold_", "threshold_choice_", "posterior_")
"""What a fit forgets before it begins."""

FAR_TOO_MANY = 10
"""A model that calls so many times the estimated share positive is not trusted."""

FIXED_ROWS = 384
"""Rows that are scored together, whatever the caller's batch.

Products of matrices take rows in tiles of 4 to 48; a block of whole tiles, also when
two or four threads share it, has no odd rows at its end that are added up otherwise.
"""

DEGENERACY_SAMPLE = 2_000
"""Unlabelled rows looked at when asking whether a fit is degenerate."""


ThresholdRule = Literal["value", "contamination", "held_out", "otsu", "prior"]
THRESHOLD_RULES: tuple[str, ...] = get_args(ThresholdRule)

AUTO_CONTAMINATION = 0.05
"""Share left outside by detectors that have no threshold of their own."""


class Encoder(TransformerMixin, BaseEstimator, ABC):
    """Step 1 and 2 of the walk: learn a map x → z and apply it.

    ``fit(X, y)`` receives PU labels, so an encoder may learn from the labelled
    positives alone (as the paper's autoencoder does) or from all rows.
    """

    _rules: ClassVar[Rules] = {}
    inputs: ClassVar[tuple[str, ...]] = ("table",)

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map from the rows of ``X``."""

    @abstractmethod
    def transform(self, X: Any) -> FloatArray:
        """Return one embedding a row, as a 2-D array."""

    def facts(self) -> dict[str, Any]:
        """Return what is worth telling about the fitted encoder."""
        return {}


class Densifier(BaseEstimator, ABC):
    """Step 3: make the positive region denser, z → more z."""

    _rules: ClassVar[Rules] = {}

    @abstractmethod
    def densify(self, Z: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the new embeddings Z_ν, not including ``Z`` itself."""


class Detector(OutlierMixin, BaseEstimator, ABC):
    """Step 4: learn a boundary around the dense positive region.

    A subclass gives ``_fit`` and ``_score``; threshold, validation and predictions
    are here. ``threshold_`` may be set again after fitting without refitting.
    """

    _rules: ClassVar[Rules] = {}

    def fit(self, Z: Any, y: Any = None) -> Self:
        """Learn what is normal from the rows of ``Z``; ``y`` is ignored."""
        check_parameters(self)
        Z = validate_embedding(self, Z, reset=True)
        forget(self, "training_scores_")
        self._fit(Z, Randomness(getattr(self, "random_state", None)))
        self.threshold_ = self._initial_threshold(Z)
        return self

    @abstractmethod
    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        """Learn from checked rows."""

    @abstractmethod
    def _score(self, Z: FloatArray) -> FloatArray:
        """Score checked rows, higher = more normal."""

    def _scores_by_others(self, Z: FloatArray) -> FloatArray:
        """Score the training rows; override where a row must not vouch for itself."""
        return self._score(Z)

    def _initial_threshold(self, Z: FloatArray) -> float:
        contamination: float | str = getattr(self, "contamination", "auto")
        if not isinstance(contamination, str):
            self.training_scores_ = self._score(Z)
            return quantile_cut(self.training_scores_, contamination)
        natural = self._natural_threshold()
        if natural is not None:
            return natural
        self.training_scores_ = self._scores_by_others(Z)
        return quantile_cut(self.training_scores_, AUTO_CONTAMINATION)

    def _natural_threshold(self) -> float | None:
        """Return the detector's own threshold for ``contamination="auto"``, if any."""
        return None

    def set_threshold(
        self, rule: ThresholdRule, amount: float | None = None, Z: Any = None
    ) -> Self:
        """Move the boundary without fitting again.

        Parameters
        ----------
        rule : {"value", "contamination", "held_out", "otsu", "prior"}
            ``"value"``: the score itself. ``"contamination"``: the share ``amount`` of
            the training rows lies outside (``Z``: those rows, if fit has not scored
            them). ``"held_out"``: the share ``amount`` of held-out positives ``Z`` lies
            outside. ``"otsu"``: the best cut into two groups of unlabelled rows ``Z``.
            ``"prior"``: the share ``amount`` of unlabelled rows ``Z`` lies inside.
        amount : float, optional
            The score or the share, as the rule says.
        Z : array, optional
            The rows the rule looks at.
        """
        check_is_fitted(self)
        if rule not in THRESHOLD_RULES:
            raise InvalidParameterError(
                f"rule={rule!r} must be one of {', '.join(THRESHOLD_RULES)}."
                f"{did_you_mean(rule, THRESHOLD_RULES)}"
            )
        limits = Number() if rule == "value" else Number(0, 1)
        if rule != "otsu" and not limits.allows(amount):
            raise InvalidParameterError(
                f"rule {rule!r} needs amount to be {limits}. Got {amount!r} instead."
            )
        self.threshold_ = self._threshold_by(rule, amount or 0.0, Z)
        return self

    def _threshold_by(self, rule: str, amount: float, Z: Any) -> float:
        if rule == "value":
            return float(amount)
        if rule == "contamination" and Z is None and hasattr(self, "training_scores_"):
            return quantile_cut(self.training_scores_, amount)
        if Z is None:
            raise InvalidParameterError(f"rule {rule!r} looks at rows: pass them as Z.")
        scores = self.score_samples(Z)
        if rule == "otsu":
            return otsu_cut(scores)
        return (prior_cut if rule == "prior" else quantile_cut)(scores, amount)

    @property
    def offset_(self) -> float:
        """scikit-learn's name for ``threshold_``."""
        return self.threshold_

    def score_samples(self, Z: Any) -> FloatArray:
        """Return the normality of each row, higher = more normal."""
        check_is_fitted(self)
        return self._score(validate_embedding(self, Z, reset=False))

    def decision_function(self, Z: Any) -> FloatArray:
        """Return the score above the threshold; negative means outlier."""
        return self.score_samples(Z) - self.threshold_

    def predict(self, Z: Any) -> IntArray:
        """Return 1 for inliers and -1 for outliers."""
        return np.where(self.decision_function(Z) < 0, -1, 1)


CONTAMINATION_RULE: tuple[Rule, ...] = (OneOf("auto"), Number(0, 0.5, "right"))


@dataclass(frozen=True, eq=False)
class BoundaryResult:
    """What the boundary says of the unlabelled rows; selectors choose from it."""

    scores: FloatArray
    """Normality of each unlabelled row, higher = more normal."""
    inlier: BoolArray
    """True inside the boundary (P̃_UL), False for the leftovers."""
    n_positive: int
    """|P_L|."""
    Z_unlabeled: FloatArray
    Z_positive: FloatArray


class Selector(BaseEstimator, ABC):
    """Step 5: choose reliable negatives Ñ among the unlabelled rows."""

    _rules: ClassVar[Rules] = {}

    @abstractmethod
    def select(self, boundary: BoundaryResult, rng: np.random.Generator) -> IntArray:
        """Return positions within U of the chosen negatives, surest first."""


RARE = 0.02
"""Share of positives inside U below which ranking comes first: no hard labels."""


@dataclass(frozen=True, eq=False)
class RefinerInput:
    """What the walk hands to a refiner; one row a sample, P and U together."""

    X: Any
    """The rows as they were given to ``fit``, checked."""
    Z: FloatArray
    """Their embeddings."""
    positive: BoolArray
    known_negative: BoolArray
    groups: IntArray | None
    scores: FloatArray
    """Normality of every row by the boundary; no positive vouches for itself."""
    labels: FloatArray
    """First guess of P(y = 1) from the boundary: 1 for P, 0 for known negatives."""
    prior_in_unlabeled: float
    """Share of positives among the free rows: estimated, or as the user knows it."""
    prior_interval: tuple[float, float]
    """Where that share lies, by the same estimate."""
    encoder: Any
    """The fitted encoder, for refiners that go on training its network."""
    deadline: Deadline
    """When to be done."""
    prior_known: bool = False
    """Whether the user knows the share: then so many rows are to be called positive.

    An estimate of the refiner's own goes into ``estimated_``; it is only compared.
    """
    held_out: BoolArray | None = None
    """Free rows that are positives kept from the fit; they are no rows of the user's U,
    though ``prior_in_unlabeled`` counts them."""

    @property
    def unlabeled(self) -> BoolArray:
        """True for rows without a positive label."""
        return ~self.positive

    @property
    def free(self) -> BoolArray:
        """True for rows of U that are not known to be negative."""
        return self.unlabeled & ~self.known_negative

    @property
    def rare(self) -> bool:
        """Tell whether positives are too rare inside U for hard labels."""
        return self.prior_in_unlabeled < RARE

    def pinned(self, labels: FloatArray) -> FloatArray:
        """Return labels with what is known put back: 1 for P, 0 for negatives."""
        known = np.where(self.positive, 1.0, np.where(self.known_negative, 0.0, labels))
        return np.asarray(known, dtype=np.float64)


class Refiner(BaseEstimator, ABC):
    """Step 5 and 6 in one: labels for all of U, refined by ordinary training.

    The paper trains once, on P against a few far negatives. A refiner starts from the
    boundary's guess for every row of U, trains, looks again, and may take back what
    it guessed before. ``sees`` says what ``decision_function`` is given.
    """

    _rules: ClassVar[Rules] = {}
    inputs: ClassVar[tuple[str, ...]] = ("table",)
    sees: ClassVar[Literal["input", "embedding"]] = "embedding"

    labels_: FloatArray
    """P(y = 1) of every training row in the end."""

    @abstractmethod
    def refine(self, start: RefinerInput) -> Self:
        """Learn from the boundary's guess."""

    @abstractmethod
    def decision_function(self, X: Any) -> FloatArray:
        """Return log-odds or a margin around 0 for new rows."""

    def facts(self) -> dict[str, Any]:
        """Return what is worth telling about the rounds."""
        return {}


class PUClassifier(Decisions, ClassifierMixin, BaseEstimator, ABC):
    """A whole PU method: ``fit(X, y)`` on positives and unlabelled rows.

    A subclass gives ``_fit`` and ``_decide``; everything a user may get wrong is
    caught here, and seeds and devices are resolved once a fit. ``Decisions`` adds what
    a fitted model can tell of itself.
    """

    uses_known_negatives: ClassVar[bool] = True
    """Does fitting learn from ``known_negative`` rows?"""
    _rules: ClassVar[Rules] = {}

    prior_interval_: tuple[float, float]

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        known_negative: Any = None,
        groups: Any = None,
        holdout: Any = None,
    ) -> Self:
        """Learn from labelled positives and unlabelled rows.

        Parameters
        ----------
        X : array, DataFrame or image array
            One row a sample.
        y : array of shape (n,)
            1 for a labelled positive, 0 (or -1, False) for an unlabelled row.
        known_negative : boolean array of shape (n,), optional
            Unlabelled rows known to be negative. A method that does not learn from
            them says so.
        groups : array of shape (n,), optional
            Patient, customer, ...: no group is split by an internal hold-out.
        holdout : float or boolean array of shape (n,), optional
            Labelled positives to learn from as if they were unlabelled: a share in
            (0, 1) of them, or a mask. Their scores and those of U become
            ``evidence_``, for ``evaluate``, ``set_threshold`` and ``calibrate``. A
            group with one of them has all its labelled positives held out; its
            unlabelled rows stay in U.
        """
        check_parameters(self)
        data = validate_fit(self, X, y, known_negative, groups)
        self._warn_if_unused(data)
        randomness = Randomness(getattr(self, "random_state", None))
        held = choose_held_out(holdout, data, randomness.numpy("holdout"))
        if held is not None:
            data = without_labels(data, held)
        self._check_prior(data)
        given = None if held is None else through("given_share")(self, data)
        for name in OF_LAST_FIT:
            forget(self, name)
        self.classes_ = np.array([0, 1])
        self._fit(data, randomness)
        self.threshold_ = 0.0
        self._warn_if_degenerate(data)
        if held is not None:
            self._correct_priors(data)
            self.evidence_ = through("gather")(self, data, given, randomness)
        return self

    def _correct_priors(self, data: PUInput) -> None:
        """Let the priors be about the user's U, in which no row was held out."""
        names = ["prior_in_unlabeled_"]
        if getattr(self, "scenario", None) == "two-sample":
            names.append("prior_")
        seen, given = Counts.seen(data), Counts.given(data)

        def corrected(value: float) -> float:
            share = Share.exactly(value, "unlabeled", seen)
            return share.to("unlabeled", given).value

        for name in names:
            if hasattr(self, name):
                setattr(self, name, corrected(getattr(self, name)))
        if hasattr(self, "prior_interval_"):
            low, high = self.prior_interval_
            self.prior_interval_ = corrected(low), corrected(high)

    @abstractmethod
    def _fit(self, data: PUInput, randomness: Randomness) -> None:
        """Learn from checked data."""

    @abstractmethod
    def _decide(self, X: Any) -> FloatArray:
        """Return how positive checked rows are: log-odds, or a margin around 0."""

    def decision_function(self, X: Any) -> FloatArray:
        """Return log-odds or a margin, higher = more positive, 0 = the fit's cut."""
        check_is_fitted(self)
        return self._decide(validate_X(self, X, reset=False))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return columns for negative and positive; rows sum to 1.

        The logistic function of ``decision_function``: a probability where that is a
        log-odds, and an uncalibrated score where it is a margin (kernel machines).
        After ``calibrate`` the chance that a row of U with this score is positive.
        """
        scores = np.asarray(self.decision_function(X), dtype=np.float64)
        known = hasattr(self, "posterior_")
        positive = self.posterior_(scores) if known else expit(scores)
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Any) -> IntArray:
        """Return 1 for rows that score above ``threshold_``, 0 for others."""
        return (self.decision_function(X) > self.threshold_).astype(np.int64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; -1 and False in ``y`` count as 0, as in ``fit``.

        With PU labels this is no measure of quality: calling all of U negative would
        score best. Pass true labels.
        """
        truth = (np.asarray(y) == 1).astype(np.int64)
        return float(
            accuracy_score(truth, self.predict(X), sample_weight=sample_weight)
        )

    def _learns_from_known_negatives(self) -> bool:
        """Tell whether a fit with these settings does."""
        return self.uses_known_negatives

    def _check_prior(self, data: PUInput) -> None:
        """Refuse a given prior that the labels contradict, before anything is lost."""
        if self._learns_from_prior():
            through("given_share")(self, data)

    def _learns_from_prior(self) -> bool:
        """Tell whether a fit with these settings goes by a ``prior`` that is given."""
        return hasattr(self, "prior")

    def _warn_if_unused(self, data: PUInput) -> None:
        """Warn when known negatives are given to a method that has no use for them."""
        known = int(data.known_negative.sum())
        if known and not self._learns_from_known_negatives():
            warnings.warn(
                f"{type(self).__name__} does not learn from known negatives: the "
                f"{known:,} rows of known_negative count as unlabelled in its fit. "
                "dens_pu and pubn learn from them.",
                UnusedInputWarning,
                stacklevel=3,
            )

    def _warn_if_degenerate(self, data: PUInput) -> None:
        """Warn when U is called all one class, or positive far beyond the prior."""
        share = self._positive_share_of_unlabeled(data)
        expected = self._expected_share(data, share)
        if share in (0.0, 1.0):
            verdict = "negative" if share == 0 else "positive"
            warnings.warn(
                f"{type(self).__name__} calls every unlabelled row {verdict}. The "
                "ranking in decision_function may still be useful; look at stages_ "
                "and at the features before trusting predict.",
                DegenerateFitWarning,
                stacklevel=3,
            )
        elif expected is not None and share > FAR_TOO_MANY * expected:
            warnings.warn(
                f"{type(self).__name__} calls {share:.1%} of the unlabelled rows "
                f"positive; the share of positives vouches for {expected:.2%}. Trust "
                "the ranking in decision_function, not predict; a method made for rare "
                "positives (dens_pu) or a threshold of your own serves better.",
                DegenerateFitWarning,
                stacklevel=3,
            )

    def _expected_share(self, data: PUInput, called: float) -> float | None:
        """Return the estimated share of positives inside U, if it is known."""
        return getattr(self, "prior_in_unlabeled_", None)

    def _positive_share_of_unlabeled(self, data: PUInput) -> float:
        """Return the share of U (or of a spread-out sample) called positive."""
        rows = np.flatnonzero(data.unlabeled)
        sample = rows[:: max(1, len(rows) // DEGENERACY_SAMPLE)]
        return float(np.mean(self._decide(take_rows(data.X, sample)) > 0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def in_fixed_rows(score: Callable[[Any], Any], Z: Any) -> FloatArray:
    """Score rows in blocks of one size, the last one filled up with its last row.

    The last bits of a product of matrices depend on how many rows it has. So the same
    row gets the same answer in any batch, bit for bit.
    """
    found = []
    for start in range(0, len(Z), FIXED_ROWS):
        rows = np.minimum(np.arange(start, start + FIXED_ROWS), len(Z) - 1)
        found.append(np.asarray(score(Z[rows]))[: len(Z) - start])
    return np.concatenate(found)


def forget(estimator: Any, name: str) -> None:
    """Delete what an earlier fit left, where this one may not write it again."""
    if hasattr(estimator, name):
        delattr(estimator, name)
