"""The gate for what goes with the rows: labels, known negatives, groups, counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from denspu._typing import BoolArray, IntArray
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError


@contextmanager
def as_input_error() -> Iterator[None]:
    """Let scikit-learn's checks speak, as our error."""
    try:
        yield
    except InvalidInputError:
        raise
    except ValueError as error:
        raise InvalidInputError(str(error)) from error


def validate_labels(y: Any, n_rows: int | None = None) -> BoolArray:
    """Return the mask of labelled positives.

    ``1`` and ``True`` mark a labelled positive; ``0``, ``-1`` and ``False`` an
    unlabelled row. Anything else is refused.
    """
    with as_input_error():
        y = column_or_1d(y, warn=True)
        if y.dtype.kind in "fc" and not np.isfinite(y).all():
            raise LabelError(
                "Input y contains NaN or infinity. PU labels are 1 (positive) and 0 "
                "(unlabelled)."
            )
        check_classification_targets(y)
    if n_rows is not None and len(y) != n_rows:
        raise InvalidInputError(
            "Found input variables with inconsistent numbers of samples: X has "
            f"{n_rows} rows, y has {len(y)}."
        )
    found = set(np.unique(y).tolist())
    if y.dtype.kind not in "biuf" or not found <= {1, 0, -1} or {0, -1} <= found:
        shown = ", ".join(map(repr, sorted(found, key=str)[:6]))
        many = "Only binary classification is supported. " if len(found) > 2 else ""
        raise LabelError(
            f"{many}y holds {{{shown}}}; PU labels are 1 (labelled positive) and 0 "
            "(unlabelled; -1 and False are read as 0). Did you pass true classes? "
            "See denspu.make_pu."
        )
    positive: BoolArray = y == 1
    _check_both_present(positive)
    return positive


def _check_both_present(positive: BoolArray) -> None:
    n_positive = int(positive.sum())
    if len(positive) < 2:
        raise LabelError(
            f"Got {len(positive)} sample(s); at least 2 positives and 1 unlabelled "
            "row are needed, so a single class cannot be learned."
        )
    if n_positive == 0:
        raise LabelError(
            "y has no labelled positive: it holds the unlabelled class only. Mark the "
            "known positives with 1."
        )
    if n_positive == len(positive):
        raise LabelError(
            "y has no unlabelled row: it holds the positive class only. Add the rows "
            "to be judged with label 0."
        )
    if n_positive < 2:
        raise LabelError(
            "y has one labelled positive; at least 2 are needed to describe a class."
        )


def validate_known_negative(mask: Any, positive: BoolArray) -> BoolArray:
    """Return the mask of rows known to be negative; none by default."""
    if mask is None:
        return np.zeros(len(positive), dtype=bool)
    mask = np.asarray(mask)
    if mask.shape != positive.shape or mask.dtype != bool:
        raise InvalidInputError(
            f"known_negative has shape {mask.shape} and dtype {mask.dtype}; pass a "
            f"boolean mask with one entry a row, shape {positive.shape}."
        )
    both = int((mask & positive).sum())
    if both:
        raise InvalidInputError(
            f"known_negative marks {both} row(s) that y labels positive. A row cannot "
            "be both: clear one of the two."
        )
    if mask.sum() == (~positive).sum():
        raise InvalidInputError(
            "known_negative marks every unlabelled row: nothing is left to judge. "
            "This is ordinary classification, not PU learning."
        )
    return mask


def validate_groups(groups: Any, n_rows: int) -> IntArray | None:
    """Return group numbers 0..G-1, or None."""
    if groups is None:
        return None
    groups = np.asarray(groups)
    if groups.shape != (n_rows,):
        raise InvalidInputError(
            f"groups has shape {groups.shape}; pass one group a row, shape ({n_rows},)."
        )
    if groups.dtype.kind == "f" and np.isnan(groups).any():
        raise InvalidInputError("groups contains NaN; every row needs a group.")
    try:
        return np.unique(groups, return_inverse=True)[1]
    except TypeError as error:
        raise InvalidInputError(
            "groups mixes values that cannot be compared, such as None and text; give "
            "every row a group of one type."
        ) from error


def check_count(value: Any, available: int, *, argument: str, what: str) -> int:
    """Turn a count or a fraction in (0, 1) into a count of at least one."""
    is_fraction = isinstance(value, float | np.floating) and 0 < value < 1
    is_count = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_fraction and not (is_count and value >= 1):
        raise InvalidParameterError(
            f"{argument}={value!r} must be an integer of at least 1 or a fraction in "
            "(0, 1)."
        )
    count = max(1, round(value * available)) if is_fraction else int(value)
    if count > available:
        raise InvalidParameterError(
            f"{argument}={value!r} asks for more than the {available} {what} there are."
        )
    return count
