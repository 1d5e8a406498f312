"""Tables: fill gaps, put numbers on one scale, open up categories; or leave them be."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from denspu._parameters import About, OneOf, Whole, check_parameters, setting
from denspu._typing import FloatArray
from denspu._validation import is_frame, validate_X
from denspu.base import Encoder
from denspu.exceptions import InvalidInputError
from denspu.networks.backbones import PixelScale


class TabularEncoder(Encoder):
    """Impute, standardise, one-hot: distances mean something.

    Numbers: missing values become the median, then each column gets mean 0 and
    variance 1, unless the columns share one scale already. Categories: one column a
    value, rare values share one, and a missing value is a value of its own. Learned
    from all rows, labelled or not.
    """

    about = About(key="tabular")

    scale: Literal["auto", "column", "common"] = setting(
        "auto",
        OneOf("auto", "column", "common"),
        doc='``"column"`` divides each column by its own standard deviation,\n'
        '``"common"`` all by one number, which keeps the quiet columns of pixels or\n'
        'spectra quiet. ``"auto"`` takes ``"common"`` where most columns have about\n'
        "the same range.",
    )
    missing_indicator: bool = setting(
        True,
        OneOf(True, False),
        doc='Add a column that says "was missing" for each number column with gaps.',
    )
    max_categories: int = setting(
        50, Whole(2), doc="Columns spent on one category column at most."
    )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians, scales and categories."""
        check_parameters(self)
        X = validate_X(self, X, reset=True, kind="table")
        X = _one_kind_of_gap(X) if is_frame(X) else X
        self.scale_ = self._choose_scale(X)
        self.pipeline_ = self._for_frame(X) if is_frame(X) else self._for_numbers()
        self.pipeline_.fit(X)
        self.fitted_on_frame_ = is_frame(X)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the encoded table as floats."""
        check_is_fitted(self)
        X = validate_X(self, X, reset=False, kind="table")
        if self.fitted_on_frame_ and not is_frame(X):
            raise InvalidInputError(
                "The encoder was fitted on a DataFrame and needs its columns by name. "
                "Pass a DataFrame with the same columns."
            )
        if not self.fitted_on_frame_ and is_frame(X):
            X = X.to_numpy(dtype=np.float64)
        X = _one_kind_of_gap(X) if is_frame(X) else X
        return np.asarray(self.pipeline_.transform(X))

    def _choose_scale(self, X: Any) -> str:
        if self.scale != "auto":
            return self.scale
        if is_frame(X):
            numbers = _sort_columns(X)[0]
            if not numbers:
                return "column"
            X = X[numbers].to_numpy(dtype=np.float64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns without a value
            ranges = np.nanmax(X, axis=0) - np.nanmin(X, axis=0)
        ranges = np.sort(ranges[ranges > 0])
        # The lower median: of two columns it is the narrower one.
        alike = len(ranges) and ranges[(len(ranges) - 1) // 2] >= 0.5 * ranges[-1]
        return "common" if alike else "column"

    def facts(self) -> dict[str, Any]:
        """Return how the columns were scaled."""
        return {"scale": self.scale_}

    def _for_numbers(self) -> FeatureUnion | Pipeline:
        """Fill and scale the numbers; beside them, 0 and 1 say what was missing."""
        filled = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            SharedScaler() if self.scale_ == "common" else StandardScaler(),
        )
        if not self.missing_indicator:
            return filled
        return make_union(filled, MissingIndicator(error_on_new=False))

    def _for_frame(self, frame: Any) -> ColumnTransformer:
        numbers, categories, other = _sort_columns(frame)
        if other:
            raise InvalidInputError(
                f"Column(s) {', '.join(other[:8])} hold neither numbers nor "
                "categories. Convert them (dates to numbers, say) or drop them."
            )
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=self.max_categories,
            sparse_output=False,
        )
        at = list(frame.columns).index
        return ColumnTransformer(
            [
                ("numbers", self._for_numbers(), [at(name) for name in numbers]),
                ("categories", one_hot, [at(name) for name in categories]),
            ],
            sparse_threshold=0,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class SharedScaler(TransformerMixin, BaseEstimator):
    """Centre each column and divide all by one number: their root mean variance."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the means and the number."""
        X = np.asarray(X)
        self.mean_ = X.mean(axis=0)
        self.spread_ = max(float(np.sqrt(X.var(axis=0).mean())), np.finfo(X.dtype).tiny)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the scaled columns."""
        return (np.asarray(X) - self.mean_) / self.spread_


def _one_kind_of_gap(frame: Any) -> Any:
    """Let a missing category be None, whether it came as None, NaN or pandas' NA."""
    frame = frame.copy(deep=False)
    for name in _sort_columns(frame)[1]:
        column = frame[name].astype(object)
        kinds = sorted({type(value).__name__ for value in column[column.notna()]})
        if len(kinds) > 1:
            raise InvalidInputError(
                f"Column {name!r} mixes {' and '.join(kinds)}. Give it one type, with "
                f"frame[{name!r}].astype(str), say."
            )
        frame[name] = column.where(column.notna(), None)
    return frame


def _sort_columns(frame: Any) -> tuple[list[Any], list[Any], list[str]]:
    numbers, categories, other = [], [], []
    for name in frame.columns:
        dtype = frame[name].dtype
        if dtype.kind in "biuf":
            numbers.append(name)
        elif str(dtype) in ("category", "object", "str") or "string" in str(dtype):
            categories.append(name)
        else:
            other.append(f"{name!r} ({dtype})")
    return numbers, categories, other


class IdentityEncoder(Encoder):
    """The input itself: embeddings you already have, flattened pixels.

    Tables pass through, images are scaled to [0, 1] and flattened.

    Examples
    --------
    >>> IdentityEncoder(normalize=True).fit_transform([[3.0, 4.0], [0.0, 2.0]])
    array([[0.6, 0.8],
           [0. , 1. ]])
    """

    about = About(key="identity", inputs=("table", "image"))

    normalize: bool = setting(
        False,
        OneOf(True, False),
        doc="Divide each embedding by its length, so that it lies on the unit sphere.",
    )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the shape of ``X`` and the range of its pixels."""
        check_parameters(self)
        X = validate_X(self, X, reset=True)
        if self.input_kind_ == "image":
            self.scale_ = PixelScale.of(X)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the rows of ``X`` as vectors."""
        check_is_fitted(self)
        X = validate_X(self, X, reset=False)
        if self.input_kind_ == "image":
            Z = self.scale_.apply(X).reshape(len(X), -1)
        else:
            Z = X
            if is_frame(X):
                words = [str(c) for c in X.columns if X[c].dtype.kind not in "biuf"]
                if words:
                    raise InvalidInputError(
                        f"Column(s) {', '.join(words[:8])} do not hold numbers, and "
                        "the identity encoder changes nothing. Use encoder='tabular'."
                    )
                Z = X.to_numpy(dtype=np.float64)
        if self.normalize:
            length = np.linalg.norm(Z, axis=1, keepdims=True)
            Z = Z / np.maximum(length, np.finfo(Z.dtype).tiny)
        return Z
