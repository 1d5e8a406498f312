"""The single place where PU data is made from data with true classes.

Which rows become positive and which of them get a label is decided here; the
weighted choice itself is in :mod:`denspu.data._labelling`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from denspu._parameters import OneOf
from denspu._random import Randomness
from denspu._typing import BoolArray, IntArray, RandomState
from denspu._validation import check_count, take_rows, validate_groups
from denspu.data._dataset import Oracle, PUDataset
from denspu.data._labelling import choose_groups, choose_rows, propensities
from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    LabelError,
    did_you_mean,
)

SCENARIOS = ("one-sample", "two-sample")
MECHANISMS = ("scar", "sar")


def make_pu(
    X: Any,
    y: Any,
    *,
    n_labeled: int | float,
    positive: Any = None,
    scenario: Literal["one-sample", "two-sample"] = "one-sample",
    mechanism: Literal["scar", "sar"] = "scar",
    propensity: Any | Callable[[Any], Any] | None = None,
    groups: Any = None,
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
    propensity : array of shape (n_samples,) or callable, optional
        For ``"sar"``: one number above 0 a row (those of negatives are not looked
        at), or a function of the positive rows of ``X`` that returns one number each.
        By default exp(2·t), where t is the standardised projection of the positives
        on their first principal direction, signed so that its largest loading is
        positive.
    groups : array of shape (n_samples,), optional
        Patients, customers: all positives of a group are labelled together. Groups
        are drawn at random until at least ``n_labeled`` positives are labelled, so
        there may be a few more. With ``"sar"`` a group weighs as much as the mean
        propensity of its positives.
    random_state : int, RandomState, Generator or None
        Seed of the choice.

    Returns
    -------
    PUDataset

    Examples
    --------
    >>> import numpy as np
    >>> from denspu import make_pu
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> data = make_pu(X, [1, 1, 1, 1, 0, 0], n_labeled=2, random_state=0)
    >>> data.n_labeled, data.oracle.prior_in_unlabeled
    (2, 0.5)
    """
    _check_word("scenario", scenario, SCENARIOS)
    _check_word("mechanism", mechanism, MECHANISMS)
    if propensity is not None and mechanism == "scar":
        raise InvalidParameterError(
            "propensity is given, but mechanism='scar' labels every positive with the "
            "same chance. Use mechanism='sar'."
        )
    is_positive = _positive_rows(y, positive, _n_rows(X))
    rows = np.flatnonzero(is_positive)
    count = check_count(n_labeled, len(rows), argument="n_labeled", what="positives")
    weights = (
        np.ones(len(rows))
        if mechanism == "scar"
        else propensities(propensity, _take(X, rows), rows, len(is_positive))
    )
    rng = Randomness(random_state).numpy("make_pu")
    group_of = validate_groups(groups, len(is_positive))
    if group_of is None:
        chosen = rows[choose_rows(weights, count, rng)]
    else:
        chosen = rows[choose_groups(weights, group_of[rows], count, rng)]
    labeled = np.zeros(len(is_positive), dtype=bool)
    labeled[chosen] = True
    return _assemble(X, is_positive, labeled, groups, scenario, mechanism)


def _assemble(
    X: Any,
    is_positive: BoolArray,
    labeled: BoolArray,
    groups: Any,
    scenario: str,
    mechanism: str,
) -> PUDataset:
    """Lay out the rows as the scenario wants them."""
    everything = np.arange(len(labeled))
    if scenario == "one-sample":
        if labeled.all():
            raise InvalidInputError(
                "Every row would be labelled and none left unlabelled. Lower "
                "n_labeled, or use scenario='two-sample'."
            )
        index, y, rows = everything, labeled.astype(np.int64), X
    else:
        copies = np.flatnonzero(labeled)
        index = np.concatenate([copies, everything])
        y = np.zeros(len(index), dtype=np.int64)
        y[: len(copies)] = 1
        rows = _take(X, index)
    return PUDataset(
        X=rows,
        y=y,
        index=index,
        groups=None if groups is None else np.asarray(groups)[index],
        scenario=scenario,
        mechanism=mechanism,
        oracle=Oracle(is_positive[index], y == 0, float(is_positive.mean())),
    )


# --- arguments ----------------------------------------------------------------------


def _check_word(argument: str, value: Any, allowed: tuple[str, ...]) -> None:
    rule = OneOf(*allowed)
    if not rule.allows(value):
        raise InvalidParameterError(
            f"{argument}={value!r} must be {rule}.{did_you_mean(value, allowed)}"
        )


def _n_rows(X: Any) -> int:
    if hasattr(X, "shape"):
        n_rows = X.shape[0] if len(X.shape) else 0
    else:
        n_rows = len(X) if isinstance(X, list | tuple) else 0
    if not n_rows:
        raise InvalidInputError(
            f"X is {type(X).__name__} without rows. Pass an array, DataFrame or list "
            "with one row a sample."
        )
    return int(n_rows)


def _take(X: Any, rows: IntArray) -> Any:
    """Take rows; a list stays a list."""
    if isinstance(X, list | tuple):
        return [X[i] for i in rows]
    return take_rows(X, rows)


def _positive_rows(y: Any, positive: Any, n_rows: int) -> BoolArray:
    """Return the mask of truly positive rows."""
    y = np.asarray(y)
    if y.shape != (n_rows,):
        raise InvalidInputError(
            f"y has shape {y.shape}; pass one true class a row, shape ({n_rows},)."
        )
    classes, codes = _classes(y)
    if positive is None:
        if not set(classes) <= {0, 1}:
            raise LabelError(
                f"y holds {_shown(classes)}; true classes are 0 and 1. For other "
                "classes say which are positive, as in make_pu(..., positive="
                f"{classes[-1]!r})."
            )
        wanted = [1]
    else:
        wanted = _wanted(positive)
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


def _classes(y: Any) -> tuple[list[Any], IntArray]:
    """Return the distinct classes and the class number of each row."""
    try:
        if any(v is None or v != v for v in y.tolist()):
            raise LabelError("y contains NaN or None; every row needs its true class.")
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise LabelError(
            "y holds missing values, or mixes classes of different types such as "
            "numbers and text."
        ) from error
    return classes.tolist(), codes


def _wanted(positive: Any) -> list[Any]:
    """Return the positive classes as a list; one class may stand alone."""
    if isinstance(positive, str | bytes) or not hasattr(positive, "__iter__"):
        return [positive]
    wanted = list(positive)
    if not wanted:
        raise InvalidParameterError("positive=[] names no class.")
    return wanted


def _shown(classes: list[Any]) -> str:
    dots = ", ..." if len(classes) > 8 else ""
    return f"{{{', '.join(map(repr, classes[:8]))}{dots}}}"
