"""PU data made from data with true classes; the truth stays behind one door.

``dataset.X`` and ``dataset.y`` are what a learner may see. What only an examiner may
see, the true classes, is reached by ``dataset.oracle`` and by nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from denspu._parameters import OneOf, check
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, IntArray, RandomState
from denspu._validation import check_count, is_frame, take_rows
from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    LabelError,
)

SCENARIOS = ("one-sample", "two-sample")
MECHANISMS = ("scar", "sar")
SAR_STRENGTH = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class Oracle:
    """The true classes of a PU data set; for metrics and benchmarks only."""

    labels: IntArray
    """True class, 1 or 0, of every row of the data set."""
    unlabeled_labels: IntArray
    """True class of the unlabelled rows, in their order."""
    prior: float
    """Share of positives overall, among the original rows."""

    @property
    def prior_in_unlabeled(self) -> float:
        """Share of positives among the unlabelled rows."""
        return float(self.unlabeled_labels.mean())

    def __repr__(self) -> str:
        return f"<Oracle of {len(self.labels)} rows>"


@dataclass(frozen=True, eq=False, repr=False)
class PUDataset:
    """Positive and unlabelled rows, made by :func:`denspu.make_pu`.

    Give ``dataset.X`` and ``dataset.y`` to ``fit``.
    """

    X: Any
    """The rows: an array, a DataFrame or a list, as given to ``make_pu``."""
    y: IntArray
    """1 for a labelled positive, 0 for an unlabelled row."""
    index: IntArray
    """Row number in the original ``X`` of each row."""
    scenario: str
    """``"one-sample"`` or ``"two-sample"``."""
    mechanism: str
    """``"scar"`` or ``"sar"``."""
    oracle: Oracle
    """The true classes; keep away from ``fit``."""

    @property
    def labeled_index(self) -> IntArray:
        """Positions in this data set of the labelled positives."""
        return np.flatnonzero(self.y == 1)

    @property
    def unlabeled_index(self) -> IntArray:
        """Positions in this data set of the unlabelled rows."""
        return np.flatnonzero(self.y == 0)

    @property
    def n_labeled(self) -> int:
        """Number of labelled positives."""
        return len(self.labeled_index)

    def __repr__(self) -> str:
        return (
            f"PUDataset({len(self.y)} rows, n_labeled={self.n_labeled}, "
            f"scenario={self.scenario!r}, mechanism={self.mechanism!r})"
        )


def make_pu(
    X: Any,
    y: Any,
    *,
    n_labeled: int | float,
    positive: Any = None,
    scenario: Literal["one-sample", "two-sample"] = "one-sample",
    mechanism: Literal["scar", "sar"] = "scar",
    propensity: Any = None,
    random_state: RandomState = None,
) -> PUDataset:
    """Hide most true labels: make positive and unlabelled data.

    Parameters
    ----------
    X : array, DataFrame or list
        One row (or image, or text) a sample.
    y : array of shape (n_samples,)
        True classes: 0/1 or bool; any class ids if ``positive`` is given.
    n_labeled : int or float
        How many positives get a label; a float in (0, 1) is a share of the positives.
    positive : class or list of classes, optional
        The classes of ``y`` that count as positive.
    scenario : {"one-sample", "two-sample"}
        one-sample: rows stay in place, the chosen positives are labelled and the
        others are U. two-sample: U is the whole set, and copies of the chosen
        positives are put in front of it (case-control by re-use, as in the image
        protocol of nnPU and Dist-PU).
    mechanism : {"scar", "sar"}
        scar: every positive is equally likely to be labelled. sar: likelier where
        ``propensity`` is higher.
    propensity : array of shape (n_samples,), optional
        For ``"sar"``: one number above 0 a row (those of negatives are not looked
        at). By default exp(2·t), where t is the standardised projection of the
        positives on their first principal direction, signed so that its largest
        loading is positive.
    random_state : int, RandomState, Generator or None
        Seed of the choice.

    Examples
    --------
    >>> import numpy as np
    >>> from denspu import make_pu
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> data = make_pu(X, [1, 1, 1, 1, 0, 0], n_labeled=2, random_state=0)
    >>> data.n_labeled, data.oracle.prior_in_unlabeled
    (2, 0.5)
    """
    check("scenario", scenario, OneOf(*SCENARIOS))
    check("mechanism", mechanism, OneOf(*MECHANISMS))
    if propensity is not None and mechanism == "scar":
        raise InvalidParameterError(
            "propensity is given, but mechanism='scar' labels every positive with the "
            "same chance. Use mechanism='sar'."
        )
    is_positive = _positive_rows(y, positive, _n_rows(X))
    rows = np.flatnonzero(is_positive)
    count = check_count(n_labeled, len(rows), argument="n_labeled", what="positives")
    weights: FloatArray = np.ones(len(rows))
    if propensity is not None:
        weights = _propensities(propensity, rows, len(is_positive))
    elif mechanism == "sar":
        weights = _default_propensity(take_rows(X, rows))
    # The Gumbel top-k trick: the k largest of log(weight) + Gumbel noise are k draws
    # without replacement, with probabilities in proportion to the weights.
    rng = Randomness(random_state).numpy("make_pu")
    keys = np.log(weights) + rng.gumbel(size=len(weights))
    labeled = np.zeros(len(is_positive), dtype=bool)
    labeled[rows[np.argsort(-keys, kind="stable")[:count]]] = True
    everything = np.arange(len(labeled))
    if scenario == "one-sample":
        if labeled.all():
            raise InvalidInputError(
                "Every row would be labelled and none left unlabelled. Lower "
                "n_labeled, or use scenario='two-sample'."
            )
        index, y = everything, labeled.astype(np.int64)
    else:
        index = np.concatenate([np.flatnonzero(labeled), everything])
        y = (np.arange(len(index)) < count).astype(np.int64)
        X = take_rows(X, index)
    truth = is_positive[index].astype(np.int64)
    oracle = Oracle(truth, truth[y == 0], float(is_positive.mean()))
    return PUDataset(X, y, index, scenario, mechanism, oracle)


# --- arguments ----------------------------------------------------------------------


def _n_rows(X: Any) -> int:
    shape: tuple[int, ...]
    shape = (len(X),) if isinstance(X, list | tuple) else getattr(X, "shape", ())
    n_rows = int(shape[0]) if len(shape) else 0
    if not n_rows:
        raise InvalidInputError(
            f"X is {type(X).__name__} without rows. Pass an array, DataFrame or list "
            "with one row a sample."
        )
    return n_rows


def _positive_rows(y: Any, positive: Any, n_rows: int) -> BoolArray:
    """Return the mask of truly positive rows."""
    y = np.asarray(y)
    if y.shape != (n_rows,):
        raise InvalidInputError(
            f"y has shape {y.shape}; pass one true class a row, shape ({n_rows},)."
        )
    try:
        if any(v is None or v != v for v in y.tolist()):
            raise LabelError("y contains NaN or None; every row needs its true class.")
        values, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise LabelError(
            "y holds missing values, or mixes classes of different types such as "
            "numbers and text."
        ) from error
    classes = values.tolist()
    if positive is None:
        if not set(classes) <= {0, 1}:
            raise LabelError(
                f"y holds {_shown(classes)}; true classes are 0 and 1. For other "
                "classes say which are positive, as in make_pu(..., positive="
                f"{classes[-1]!r})."
            )
        wanted = [1]
    else:
        one = isinstance(positive, str | bytes) or not hasattr(positive, "__iter__")
        wanted = [positive] if one else list(positive)
        if not wanted:
            raise InvalidParameterError("positive=[] names no class.")
        missing = [c for c in wanted if c not in classes]
        if missing:
            raise LabelError(
                f"positive={positive!r} names {_shown(missing)}, which y does not "
                f"hold. Its classes are {_shown(classes)}."
            )
    mask = np.array([c in wanted for c in classes])[codes]
    if not mask.any():
        raise LabelError("y has no positive row, so there is nothing to label.")
    return mask


def _shown(classes: list[Any]) -> str:
    dots = ", ..." if len(classes) > 8 else ""
    return f"{{{', '.join(map(repr, classes[:8]))}{dots}}}"


# --- who gets a label ---------------------------------------------------------------


def _propensities(propensity: Any, rows: IntArray, n_rows: int) -> FloatArray:
    """Return one labelling weight a positive; ``rows`` are their numbers in the set."""
    try:
        weights = np.asarray(propensity, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"propensity is not numeric: {error}") from error
    if weights.shape != (n_rows,):
        raise InvalidParameterError(
            f"propensity has shape {weights.shape}; one number a row is needed, shape "
            f"({n_rows},)."
        )
    weights = weights[rows]
    bad = ~(np.isfinite(weights) & (weights > 0))
    if bad.any():
        raise InvalidParameterError(
            f"propensity is {weights[bad][0]} for row {rows[bad][0]} and {bad.sum()} "
            "positive row(s) in all are not finite numbers above 0."
        )
    return weights


def _default_propensity(positives: Any) -> FloatArray:
    """exp(2·t), t the standardised projection on the first principal direction."""
    from sklearn.decomposition import PCA

    if is_frame(positives):
        positives = positives.select_dtypes("number").to_numpy()
    try:
        table = np.asarray(positives)
        if table.dtype != np.float64:
            table = table.astype(np.float32)
        table = table.reshape(len(table), -1)
    except (TypeError, ValueError):
        table = np.empty((0, 0))
    if table.size == 0 or not np.isfinite(table).all():
        raise InvalidInputError(
            "The default propensity of mechanism='sar' needs numbers without NaN or "
            "infinity in X. Pass propensity=."
        )
    if len(table) < 2 or not np.ptp(table, axis=0).any():
        return np.ones(len(table))
    pca = PCA(n_components=1, svd_solver="randomized", random_state=0)
    projection = pca.fit_transform(table)[:, 0].astype(float)
    direction = pca.components_[0]
    projection *= np.sign(direction[np.abs(direction).argmax()])
    return np.exp(SAR_STRENGTH * projection / projection.std())
