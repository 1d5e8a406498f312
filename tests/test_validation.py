"""The data gate: every bad input is refused with words that help."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from denspu import DensPU
from denspu._validation import (
    check_count,
    check_embedding,
    check_images,
    input_kind,
    take_rows,
    validate_embedding,
    validate_fit,
    validate_groups,
    validate_labels,
    validate_X,
)
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError

TABLE = np.arange(12.0).reshape(6, 2)
Y = np.array([1, 1, 0, 0, 0, 0])


class Strict(BaseEstimator):
    """Refuses missing values."""


class Lenient(BaseEstimator):
    """Takes missing values."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def says(*words):
    """Return a pattern that wants all words, in this order."""
    return re.compile(".*".join(map(re.escape, words)), re.DOTALL)


# --- labels -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        [1, 1, 0, 0],
        [1, 1, -1, -1],
        [True, True, False, False],
        [1.0, 1.0, 0.0, 0.0],
        np.array([1, 1, 0, 0], dtype=np.uint8),
        pd.Series([1, 1, 0, 0]),
    ],
    ids=["ints", "minus one", "bools", "floats", "uint8", "series"],
)
def test_accepted_labels_give_one_mask(y):
    mask = validate_labels(y, 4)
    assert mask.dtype == bool
    assert mask.tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0, 1, 2, 1], ("Only binary", "{0, 1, 2}", "PU labels are 1", "make_pu")),
        ([1, 1, 2, 2], ("{1, 2}", "PU labels are 1")),
        ([1, 1, 0, -1], ("{-1, 0, 1}", "PU labels are 1")),
        (["a", "a", "b", "b"], ("'a', 'b'", "PU labels are 1")),
        ([1.0, 1.0, 0.0, np.nan], ("y contains NaN",)),
        ([1.0, 1.0, 0.0, np.inf], ("y contains NaN or infinity",)),
        ([0.3, 1.0, 0.0, 0.0], ("label type",)),
        ([0, 0, 0, 0], ("0 labelled positive", "4 unlabelled", "At least 2")),
        ([1, 1, 1, 1], ("4 labelled positive", "0 unlabelled", "At least 2")),
        ([1, 0, 0, 0], ("1 labelled positive", "3 unlabelled", "At least 2")),
        ([[1, 0], [1, 0]], ("1d array",)),
    ],
)
def test_refused_labels(y, words):
    with pytest.raises(InvalidInputError, match=says(*words)):
        validate_labels(y)


def test_pu_label_faults_are_label_errors():
    for y in ([0, 1, 2], [0, 0, 0], [1, 1, 1], [1, 0, 0], [1.0, 0.0, np.nan]):
        with pytest.raises(LabelError):
            validate_labels(y)


def test_one_row_is_refused():
    with pytest.raises(LabelError, match=says("1 sample(s)", "At least 2 positives")):
        validate_labels([1])


def test_mismatched_lengths_name_both():
    with pytest.raises(InvalidInputError, match=says("X has 6 rows, y has 4")):
        validate_fit(Strict(), TABLE, Y[:4])


def test_missing_y():
    with pytest.raises(InvalidInputError, match=says("requires y", "Pass 1")):
        DensPU().fit(TABLE, None)


# --- tables -------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_number_in_array(bad):
    X = TABLE.copy()
    X[2, 1] = bad
    with pytest.raises(InvalidInputError, match="NaN" if np.isnan(bad) else "infinity"):
        validate_X(Strict(), X, reset=True)


def test_nan_passes_where_allowed_and_infinity_never():
    X = TABLE.copy()
    X[2, 1] = np.nan
    assert np.isnan(validate_X(Lenient(), X, reset=True)[2, 1])
    X[2, 1] = np.inf
    with pytest.raises(InvalidInputError, match="infinity"):
        validate_X(Lenient(), X, reset=True)


def test_bad_number_in_frame_names_the_column():
    frame = pd.DataFrame(TABLE, columns=["age", "height"])
    frame.loc[1, "height"] = np.nan
    with pytest.raises(InvalidInputError, match=says("'height' (NaN)", "impute")):
        validate_X(Strict(), frame, reset=True)
    validate_X(Lenient(), frame, reset=True)
    frame.loc[1, "age"] = np.inf
    with pytest.raises(InvalidInputError, match=says("'age' (infinity)")) as caught:
        validate_X(Lenient(), frame, reset=True)
    assert "height" not in str(caught.value)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.arange(6.0), "2D array"),
        (np.empty((0, 2)), "0 sample"),
        (np.empty((6, 0)), "0 feature"),
        (pd.DataFrame({"a": []}), r"0 sample\(s\)"),
        (pd.DataFrame(index=range(6)), r"0 feature\(s\)"),
        ([[1.0, 2.0], [3.0]], "inhomogeneous"),
        ([["a", "b"], ["c", "d"]], "could not convert"),
        (5.0, "2D array"),
    ],
    ids=["1-D", "no rows", "no columns", "frame no rows", "frame no columns",
         "ragged", "words", "scalar"],
)  # fmt: skip
def test_bad_table_shapes(X, words):
    with pytest.raises(InvalidInputError, match=words):
        validate_fit(Strict(), X, Y)


def test_other_number_of_columns_after_fit():
    estimator = Strict()
    validate_X(estimator, TABLE, reset=True)
    with pytest.raises(InvalidInputError, match=says("3 features", "expecting 2")):
        validate_X(estimator, np.ones((2, 3)), reset=False)


def test_frame_columns_in_another_order_after_fit():
    estimator = Strict()
    frame = pd.DataFrame(TABLE, columns=["a", "b"])
    validate_X(estimator, frame, reset=True)
    with pytest.raises(InvalidInputError, match="same order"):
        validate_X(estimator, frame[["b", "a"]], reset=False)


def test_whole_numbers_become_floats_and_float32_stays():
    assert validate_X(Strict(), [[1, 2], [3, 4]], reset=True).dtype == np.float64
    narrow = validate_X(Strict(), TABLE.astype(np.float32), reset=True)
    assert narrow.dtype == np.float32


# --- images -------------------------------------------------------------------------


def test_grey_images_get_a_channel_axis():
    assert check_images(np.zeros((2, 5, 4), np.uint8)).shape == (2, 5, 4, 1)
    assert check_images(np.zeros((2, 5, 4, 3), np.uint8)).shape == (2, 5, 4, 3)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((2, 3, 8, 8)), ("8 channels", "1 to 4", "N×C×H×W", "moveaxis")),
        (np.zeros((2, 8, 8, 5)), ("5 channels", "last dimension")),
        (np.zeros((2, 3, 8, 8, 3)), ("(2, 3, 8, 8, 3)", "N×H×W")),
        (np.zeros((0, 8, 8, 3)), ("0 sample(s)",)),
        (np.zeros((2, 0, 8, 3)), ("empty images",)),
        (np.full((2, 8, 8), np.nan), ("NaN or infinity in its pixels",)),
        (np.full((2, 8, 8), np.inf), ("NaN or infinity in its pixels",)),
        (np.zeros((2, 8, 8), complex), ("dtype complex", "uint8")),
        (np.full((2, 8, 8), "a"), ("dtype", "uint8")),
    ],
)
def test_refused_images(images, words):
    with pytest.raises(InvalidInputError, match=says(*words)):
        check_images(images)


def test_channels_hint_only_where_it_helps():
    with pytest.raises(InvalidInputError) as caught:
        check_images(np.zeros((2, 8, 8, 5)))
    assert "moveaxis" not in str(caught.value)


def test_other_image_shape_after_fit_names_both():
    estimator = Strict()
    validate_X(estimator, np.zeros((2, 8, 6, 3)), reset=True)
    with pytest.raises(InvalidInputError, match=says("9×6×3", "fitted on 8×6×3")):
        validate_X(estimator, np.zeros((2, 9, 6, 3)), reset=False)


@pytest.mark.parametrize(
    ("fitted", "asked", "words"),
    [
        (TABLE, np.zeros((2, 8, 8)), ("an image array", "fitted on a 2-D table")),
        (np.zeros((2, 8, 8)), TABLE, ("a 2-D table", "fitted on an image array")),
    ],
)
def test_other_kind_after_fit(fitted, asked, words):
    estimator = Strict()
    validate_X(estimator, fitted, reset=True)
    with pytest.raises(InvalidInputError, match=says(*words)):
        validate_X(estimator, asked, reset=False)


class Bare:
    """An array-like that knows nothing but how to become an array."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (TABLE, "table"),
        (TABLE.tolist(), "table"),
        (pd.DataFrame(TABLE), "table"),
        (Bare(TABLE), "table"),
        (np.zeros((2, 4, 4)), "image"),
        (np.zeros((2, 4, 4, 3)), "image"),
        (np.zeros((2, 4, 4)).tolist(), "image"),
        (Bare(np.zeros((2, 4, 4))), "image"),
    ],
)
def test_input_kind(X, kind):
    assert input_kind(X) == kind


def test_take_rows_by_mask_and_by_number():
    rows = np.array([True, False, True])
    X = np.array([[0.0], [1.0], [2.0]])
    frame = pd.DataFrame(X, index=[5, 3, 1], columns=["a"])
    assert take_rows(X, rows).ravel().tolist() == [0, 2]
    assert take_rows(X, np.array([2, 0])).ravel().tolist() == [2, 0]
    assert take_rows(frame, rows)["a"].tolist() == [0, 2]
    assert take_rows(frame, np.array([2, 0]))["a"].tolist() == [2, 0]


# --- known negatives, groups, counts --------------------------------------------------


def test_checked_input_holds_masks_and_group_numbers():
    negative = np.array([False, False, False, False, False, True])
    data = validate_fit(Strict(), TABLE, Y, negative, list("bbaacc"))
    assert data.kind == "table"
    assert data.positive.tolist() == [True, True, False, False, False, False]
    assert (data.unlabeled == ~data.positive).all()
    assert data.known_negative.tolist() == negative.tolist()
    assert data.groups.tolist() == [1, 1, 0, 0, 2, 2]


def test_without_known_negatives_the_mask_is_empty():
    data = validate_fit(Strict(), TABLE, Y)
    assert data.known_negative.tolist() == [False] * 6
    assert data.groups is None


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (np.array([True] + [False] * 5), ("marks 1 row(s)", "labels positive")),
        (np.array([False] * 4), ("shape (4,)", "shape (6,)")),
        (np.array([0, 0, 0, 0, 0, 1]), ("dtype int", "boolean mask")),
        (np.array([5]), ("boolean mask",)),
        (Y == 0, ("every unlabelled row", "ordinary classification")),
    ],
    ids=["overlap", "short", "integers", "row numbers", "all of U"],
)
def test_refused_known_negatives(mask, words):
    with pytest.raises(InvalidInputError, match=says(*words)):
        validate_fit(Strict(), TABLE, Y, known_negative=mask)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([1, 2, 3], ("shape (3,)", "shape (6,)")),
        (np.zeros((6, 1)), ("shape (6, 1)", "one group a row")),
        ([0, 1, 2, 3, 4, np.nan], ("NaN", "every row needs a group")),
        (np.array([None, "a", "a", "b", "b", "b"], object), ("None and text",)),
    ],
)
def test_refused_groups(groups, words):
    with pytest.raises(InvalidInputError, match=says(*words)):
        validate_groups(groups, 6)


def test_check_count():
    assert check_count(7, 10, argument="n", what="rows") == 7
    assert check_count(np.int64(7), 10, argument="n", what="rows") == 7
    assert check_count(0.25, 10, argument="n", what="rows") == 2
    assert check_count(0.001, 10, argument="n", what="rows") == 1


@pytest.mark.parametrize("value", [0, -1, 1.0, 0.0, 2.5, True, "all", None])
def test_refused_counts(value):
    with pytest.raises(InvalidParameterError, match=says(f"n={value!r}", "at least 1")):
        check_count(value, 10, argument="n", what="rows")


def test_count_beyond_what_there_is():
    with pytest.raises(InvalidParameterError, match="more than the 10 rows there are"):
        check_count(11, 10, argument="n", what="rows")


# --- embeddings -----------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_embeddings(bad):
    Z = TABLE.copy()
    Z[0, 0] = bad
    with pytest.raises(InvalidInputError, match=r"NaN|infinity"):
        check_embedding(Z)
    with pytest.raises(InvalidInputError, match=r"NaN|infinity"):
        validate_embedding(Strict(), Z, reset=True)


def test_too_few_embeddings():
    with pytest.raises(InvalidInputError, match="minimum of 2"):
        check_embedding(TABLE[:1], minimum=2)


def test_embeddings_are_not_copied():
    assert np.shares_memory(check_embedding(TABLE), TABLE)
