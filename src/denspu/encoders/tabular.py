"""Tables: fill gaps, put numbers on one scale, open up categories."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from denspu._parameters import OneOf, Whole, check_parameters
from denspu._typing import FloatArray
from denspu._validation import is_frame, validate_X
from denspu.base import Encoder, Rules
from denspu.exceptions import InvalidInputError


class TabularEncoder(Encoder):
    """Standardise a table so that distances mean something.

    Numbers: missing values become the median, then mean 0 and variance 1. Categories:
    one column a value, rare values share one, and a missing value is a value of its
    own. Learned from all rows, labelled or not.

    Parameters
    ----------
    missing_indicator : bool, default=True
        Add a column that says "was missing" for each number column with gaps.
    max_categories : int, default=50
        Columns spent on one category column at most.
    """

    inputs: ClassVar[tuple[str, ...]] = ("table",)
    _rules: ClassVar[Rules] = {
        "missing_indicator": (OneOf(True, False),),
        "max_categories": (Whole(2),),
    }

    def __init__(
        self, *, missing_indicator: bool = True, max_categories: int = 50
    ) -> None:
        self.missing_indicator = missing_indicator
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians, scales and categories."""
        check_parameters(self)
        X = validate_X(self, X, reset=True, kind="table")
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
        return np.asarray(self.pipeline_.transform(X))

    def _for_numbers(self) -> Pipeline:
        return make_pipeline(
            SimpleImputer(
                strategy="median",
                add_indicator=self.missing_indicator,
                keep_empty_features=True,
            ),
            StandardScaler(),
        )

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
        return ColumnTransformer(
            [
                ("numbers", self._for_numbers(), numbers),
                ("categories", one_hot, categories),
            ],
            sparse_threshold=0,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


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
