"""The contracts of the walk: Encoder, Densifier, Detector, Selector, Refiner.

One convention for the whole library:

* labels: ``y`` is 1 for a labelled positive, 0 for an unlabelled row;
* ``predict`` of a PU classifier answers 1 or 0, ``decision_function`` is higher for
  more positive, ``predict_proba`` rows sum to 1;
* a detector's ``score_samples`` is higher for more normal (more positive-like), its
  ``predict`` answers 1 (inlier) or -1 (outlier), as in scikit-learn;
* constructors only remember; ``fit`` validates; fitted state ends in ``_``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from sklearn.base import (
    OutlierMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from denspu._machine import Deadline
from denspu._parameters import (
    About,
    Configured,
    Number,
    OneOf,
    Rule,
    check_parameters,
    setting,
)
from denspu._random import Randomness
from denspu._share import otsu_cut, prior_cut, quantile_cut
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu._validation import (
    validate_embedding,
)
from denspu.exceptions import (
    InvalidParameterError,
    did_you_mean,
)

FIXED_ROWS = 384
"""Rows that are scored together, whatever the caller's batch.

Products of matrices take rows in tiles of 4 to 48; a block of whole tiles, also when
two or four threads share it, has no odd rows at its end that are added up otherwise.
"""

ThresholdRule = Literal["value", "contamination", "held_out", "otsu", "prior"]
THRESHOLD_RULES: tuple[str, ...] = get_args(ThresholdRule)

CONTAMINATION_RULE: tuple[Rule, ...] = (OneOf("auto"), Number(0, 0.5, "right"))

AUTO_CONTAMINATION = 0.05
"""Share left outside by detectors that have no threshold of their own."""


class Encoder(TransformerMixin, Configured, ABC):
    """Step 1 and 2 of the walk: learn a map x → z and apply it.

    ``fit(X, y)`` receives PU labels, so an encoder may learn from the labelled
    positives alone (as the paper's autoencoder does) or from all rows.
    """

    about = About(kind="encoder")

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map from the rows of ``X``."""

    @abstractmethod
    def transform(self, X: Any) -> FloatArray:
        """Return one embedding a row, as a 2-D array."""

    def facts(self) -> dict[str, Any]:
        """Return what is worth telling about the fitted encoder."""
        return {}


class Densifier(Configured, ABC):
    """Step 3: make the positive region denser, z → more z."""

    about = About(kind="densifier", inputs=("embedding",))

    @abstractmethod
    def densify(self, Z: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the new embeddings Z_ν, not including ``Z`` itself."""


class Detector(OutlierMixin, Configured, ABC):
    """Step 4: learn a boundary around the dense positive region.

    A subclass gives ``_fit`` and ``_score``; threshold, validation and predictions
    are here. ``threshold_`` may be set again after fitting without refitting.
    """

    about = About(kind="detector", inputs=("embedding",))

    contamination: float | Literal["auto"] = setting(
        "auto",
        *CONTAMINATION_RULE,
        doc='Share of the training rows beyond the threshold; ``"auto"`` is the\n'
        "detector's own rule, or else a twentieth, each row judged by the others.",
    )

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
        if not isinstance(self.contamination, str):
            self.training_scores_ = self._score(Z)
            return quantile_cut(self.training_scores_, self.contamination)
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


class Selector(Configured, ABC):
    """Step 5: choose reliable negatives Ñ among the unlabelled rows."""

    about = About(kind="selector", inputs=("embedding",))

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
    wide: Any = None
    """A sparse form of the rows that says more than the embeddings, where the encoder
    has one: the weights of all words of a text."""
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


class Refiner(Configured, ABC):
    """Step 5 and 6 in one: labels for all of U, refined by ordinary training.

    The paper trains once, on P against a few far negatives. A refiner starts from the
    boundary's guess for every row of U, trains, looks again, and may take back what
    it guessed before. ``sees`` says what ``decision_function`` is given.
    """

    about = About(kind="refiner", inputs=("embedding",))

    sees: ClassVar[Literal["input", "embedding"]] = "embedding"

    @abstractmethod
    def refine(self, start: RefinerInput) -> Self:
        """Learn from the boundary's guess."""

    @abstractmethod
    def decision_function(self, X: Any) -> FloatArray:
        """Return log-odds or a margin around 0 for new rows."""

    def facts(self) -> dict[str, Any]:
        """Return what is worth telling about the rounds."""
        return {}


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
