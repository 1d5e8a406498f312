"""The one gate for data: the rows a user hands in are checked and named here.

``fit`` and ``predict`` of every estimator pass through these functions, so the rest
of the library may trust its arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    column_or_1d,
    validate_data,
)

from denspu._frame import Frame
from denspu._typing import BoolArray, FloatArray, InputKind, IntArray
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError

# --- labels, known negatives, groups, counts ----------------------------------------


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
    n_positive, n_unlabeled = int(positive.sum()), int((~positive).sum())
    if n_positive < 2 or not n_unlabeled:
        raise LabelError(
            f"y holds {n_positive} labelled positive(s) and {n_unlabeled} unlabelled "
            f"row(s), {len(y)} sample(s) in all. At least 2 positives and 1 unlabelled "
            "row are needed: a single class cannot be learned. Mark known positives "
            "with 1, and add the rows to be judged with 0."
        )
    return positive


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


# --- rows ---------------------------------------------------------------------------

MAX_CHANNELS = 4
FORMS = {"table": "a 2-D table", "image": "an image array", "text": "a list of texts"}


@dataclass(frozen=True, eq=False)
class PUInput:
    """Checked arguments of ``PUClassifier.fit``; one row a sample."""

    X: Any
    """A float array, a DataFrame, an N×H×W×C image array, or an array of texts."""
    kind: InputKind
    positive: BoolArray
    """True for labelled positives, False for unlabelled rows."""
    known_negative: BoolArray
    """True for unlabelled rows known to be negative."""
    groups: IntArray | None
    """Group number of each row; no group may cross a hold-out."""
    held_out: BoolArray | None = None
    """True for labelled positives that stand among the unlabelled rows."""

    @property
    def unlabeled(self) -> BoolArray:
        """True for rows without a positive label."""
        return ~self.positive


def is_frame(X: Any) -> bool:
    """Tell whether ``X`` is a pandas-like table."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def input_kind(X: Any) -> InputKind:
    """Tell texts by their type, tables from images by the number of dimensions."""
    if is_frame(X):
        return "table"
    if _is_text(X):
        return "text"
    with as_input_error():
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    return "image" if len(shape) > 2 else "table"


def _is_text(X: Any) -> bool:
    """Tell whether ``X`` is a sequence of strings."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and isinstance(X[0], str)
    dtype = getattr(X, "dtype", None)
    if dtype is None or len(X.shape) != 1 or len(X) == 0:
        return False
    if str(dtype) in ("str", "string"):
        return True
    return getattr(dtype, "kind", "") in "OU" and isinstance(next(iter(X)), str)


def take_rows(X: Any, rows: BoolArray | IntArray) -> Any:
    """Index rows of an array, a DataFrame or a list."""
    at = np.flatnonzero(rows) if rows.dtype == bool else rows
    if isinstance(X, list | tuple):
        return [X[i] for i in at]
    return X.iloc[at] if is_frame(X) else X[rows]


# --- fit and predict ---------------------------------------------------------------


def validate_fit(
    estimator: Any, X: Any, y: Any, known_negative: Any = None, groups: Any = None
) -> PUInput:
    """Check everything ``fit`` receives and remember the input's shape."""
    if y is None:
        raise InvalidInputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None. Pass 1 for labelled positives and 0 for unlabelled rows."
        )
    checked = validate_X(estimator, X, reset=True)
    positive = validate_labels(y, n_rows=len(checked))
    return PUInput(
        X=checked,
        kind=estimator.input_kind_,
        positive=positive,
        known_negative=validate_known_negative(known_negative, positive),
        groups=validate_groups(groups, len(checked)),
    )


def validate_X(
    estimator: Any, X: Any, *, reset: bool, kind: InputKind | None = None
) -> Any:
    """Check a table or image array; ``reset`` records its shape, else compares."""
    X = _off_torch(X)
    kind = kind or input_kind(X)
    fitted = getattr(estimator, "input_kind_", kind)
    if not reset and kind != fitted:
        raise InvalidInputError(
            f"X is {FORMS[kind]}, but {type(estimator).__name__} was fitted on "
            f"{FORMS[fitted]}. Reshape your data to the form given to fit."
        )
    if kind == "table":
        checked = _validate_table(estimator, X, reset)
    elif kind == "image":
        checked = check_images(X)
        _same_shape(estimator, checked.shape[1:], reset)
    else:
        checked = check_texts(X)
    if reset:
        estimator.input_kind_ = kind
        if kind != "table":
            estimator.n_features_in_ = int(np.prod(checked.shape[1:]))
    return checked


def _validate_table(estimator: Any, X: Any, reset: bool) -> Any:
    with as_input_error():
        if not is_frame(X):
            return validate_data(
                estimator,
                X,
                reset=reset,
                dtype=(np.float64, np.float32),
                ensure_all_finite="allow-nan" if allows_nan(estimator) else True,
            )
        if X.shape[0] == 0 or X.shape[1] == 0:
            raise InvalidInputError(
                f"Found a table with shape {X.shape}: at least 1 row (0 sample(s)) "
                "and 1 column (0 feature(s)) are required."
            )
        if isinstance(X, Frame):
            _check_names(estimator, X, reset)
        else:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
    _refuse_bad_numbers(X, allow_nan=allows_nan(estimator))
    return X


def _check_names(estimator: Any, X: Frame, reset: bool) -> None:
    """Hold a Frame, which scikit-learn does not know, to the columns seen in fit."""
    names = np.asarray(X.columns, dtype=object)
    if reset:
        estimator.n_features_in_ = len(names)
        estimator.feature_names_in_ = names
        return
    fitted = list(getattr(estimator, "feature_names_in_", names))
    if fitted != list(names):
        missing = [name for name in fitted if name not in names]
        extra = [name for name in names if name not in fitted]
        raise InvalidInputError(
            f"The columns are not those seen in fit: missing {missing[:8]}, unknown "
            f"{extra[:8]}. Pass the same columns in the same order."
        )


def allows_nan(estimator: Any) -> bool:
    """Tell whether an estimator's tags allow missing values."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return False
    return bool(estimator.__sklearn_tags__().input_tags.allow_nan)


def _refuse_bad_numbers(frame: Any, allow_nan: bool) -> None:
    bad = []
    for name in frame.columns:
        column = frame[name]
        if not allow_nan and column.isna().any():
            bad.append(f"{name!r} (NaN)")
        elif column.dtype.kind == "f" and np.isinf(column.to_numpy()).any():
            bad.append(f"{name!r} (infinity)")
    if bad:
        raise InvalidInputError(
            f"Input X contains NaN or infinity in column(s) {', '.join(bad[:8])}. "
            "Replace infinite values; impute missing ones or use the tabular encoder."
        )


def _same_shape(estimator: Any, shape: tuple[int, ...], reset: bool) -> None:
    if reset:
        estimator.image_shape_ = shape
    elif shape != estimator.image_shape_:
        now, fitted = ("×".join(map(str, s)) for s in (shape, estimator.image_shape_))
        raise InvalidInputError(
            f"Images are {now}, but {type(estimator).__name__} was fitted on {fitted} "
            "(height×width×channels)."
        )


def check_texts(X: Any) -> Any:
    """Return texts as a 1-D array of strings, refusing anything else among them."""
    values = [X] if isinstance(X, str) else list(X)
    if isinstance(X, str) or not values:
        raise InvalidInputError(
            f"X holds {'one text' if values else '0 texts'}; pass a list of texts, one "
            "a sample."
        )
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise InvalidInputError(
                f"X[{i}] is {value!r} ({type(value).__name__}), not a text. Pass a "
                "list of strings; write '' for an empty one."
            )
    texts = np.empty(len(values), dtype=object)
    texts[:] = values
    return texts


def check_images(X: Any) -> Any:
    """Return images as N×H×W×C, refusing other shapes, NaN and infinity."""
    images = np.asarray(X)
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4:
        raise InvalidInputError(
            f"X has shape {np.shape(X)}; images are N×H×W or N×H×W×C, a table is 2-D. "
            "Reshape your data."
        )
    if 0 in images.shape:
        raise InvalidInputError(
            f"Found array with 0 sample(s) or empty images (shape {images.shape}); "
            "at least one image of one pixel is required."
        )
    if images.shape[-1] > MAX_CHANNELS:
        hint = ""
        if images.shape[1] <= MAX_CHANNELS:
            hint = " This looks like N×C×H×W: use np.moveaxis(X, 1, -1)."
        raise InvalidInputError(
            f"X has {images.shape[-1]} channels (shape {images.shape}); 1 to "
            f"{MAX_CHANNELS} are allowed, as the last dimension.{hint}"
        )
    if images.dtype.kind not in "uifb":
        raise InvalidInputError(
            f"Image pixels have dtype {images.dtype}; use uint8, uint16 or float."
        )
    if images.dtype.kind == "f" and not np.isfinite(images).all():
        raise InvalidInputError(
            "Input X contains NaN or infinity in its pixels. Remove or repair those "
            "images."
        )
    return images


def validate_embedding(estimator: Any, Z: Any, *, reset: bool) -> Any:
    """Check a 2-D float array of embeddings without copying it.

    A tensor on a GPU stays there if the estimator takes tensors, and comes to the
    CPU as an array otherwise.
    """
    if is_tensor(Z):
        Z = Z.detach()
        Z = Z.float() if Z.is_floating_point() and Z.element_size() < 4 else Z
        if Z.device.type != "cpu" and getattr(estimator, "takes_tensors", False):
            return _validate_tensor(estimator, Z, reset)
    Z = _off_torch(Z)
    with as_input_error():
        return validate_data(estimator, Z, reset=reset, dtype=(np.float64, np.float32))


def is_tensor(Z: Any) -> bool:
    """Tell whether ``Z`` is a torch tensor, without importing torch."""
    return type(Z).__module__.partition(".")[0] == "torch"


def _off_torch(X: Any) -> Any:
    """Return a tensor as an array; anything else as it is."""
    return X.detach().cpu().numpy() if is_tensor(X) else X


def _validate_tensor(estimator: Any, Z: Any, reset: bool) -> Any:
    name = type(estimator).__name__
    if Z.ndim != 2 or 0 in Z.shape or not Z.is_floating_point():
        raise InvalidInputError(
            f"{name} takes a 2-D tensor of floats with at least one row and column. "
            f"Got shape {tuple(Z.shape)} and dtype {Z.dtype}."
        )
    if not bool(Z.isfinite().all()):
        raise InvalidInputError(f"Input Z contains NaN or infinity. {name} needs none.")
    if reset:
        estimator.n_features_in_ = int(Z.shape[1])
    elif Z.shape[1] != estimator.n_features_in_:
        raise InvalidInputError(
            f"Z has {Z.shape[1]} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return Z


def check_embedding(Z: Any, *, argument: str = "Z", minimum: int = 1) -> FloatArray:
    """Check embeddings outside an estimator (densifiers, an encoder's output)."""
    if hasattr(Z, "toarray"):
        raise InvalidInputError(
            f"{argument} is a sparse matrix; embeddings are dense arrays. Ask for "
            "dense output, or reduce the dimension."
        )
    with as_input_error():
        return check_array(
            Z,
            dtype=(np.float64, np.float32),
            ensure_min_samples=minimum,
            input_name=argument,
        )
