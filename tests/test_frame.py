"""The small table that stands in for a DataFrame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from denspu._frame import Frame
from denspu._validation import is_frame, take_rows
from denspu.encoders import IdentityEncoder, TabularEncoder
from denspu.exceptions import InvalidInputError

COLUMNS = {"n": [1, None, 3, 4], "w": ["a", "b", None, "a"], "b": [True, False] * 2}


@pytest.fixture
def frame():
    return Frame(COLUMNS)


def test_it_passes_for_a_frame(frame):
    assert is_frame(frame)
    assert frame.shape == (4, 3)
    assert frame["n"].dtype == frame["b"].dtype == np.float64
    assert frame["n"].isna().tolist() == [False, True, False, False]
    assert frame["w"].isna().tolist() == [False, False, True, False]


def test_rows_and_columns(frame):
    assert take_rows(frame, np.array([True, False, False, True]))["w"].tolist() == [
        "a",
        "a",
    ]
    assert take_rows(frame, np.array([3, 0]))["n"].tolist() == [4, 1]
    assert frame.take([2, 0])["n"].tolist() == [3, 1]
    assert frame.take([2, 0], axis=1).columns == ["b", "n"]
    assert Frame.stacked([frame, frame.iloc[:1]]).shape == (5, 3)


def test_arrays(frame):
    assert frame[["n", "b"]].to_numpy().dtype == np.float64
    assert np.asarray(frame).dtype == object
    copy = frame.copy(deep=False)
    copy["n"] = [0, 0, 0, 0]
    assert frame["n"].tolist()[0] == 1


def test_ragged_columns():
    with pytest.raises(InvalidInputError, match=r"different lengths: \[1, 2\]"):
        Frame({"a": [1], "b": [1, 2]})
    with pytest.raises(InvalidInputError, match="one value a row"):
        Frame({"a": [[1, 2], [3, 4]]})


def test_the_encoder_gives_what_it_gives_for_pandas(frame):
    ours = TabularEncoder().fit(frame)
    theirs = TabularEncoder().fit(pd.DataFrame(COLUMNS).astype({"b": float}))
    assert np.array_equal(
        ours.transform(frame),
        theirs.transform(pd.DataFrame(COLUMNS).astype({"b": float})),
    )


def test_columns_are_held_to_those_of_fit(frame):
    encoder = TabularEncoder().fit(frame)
    with pytest.raises(InvalidInputError, match=r"missing \['b'\], unknown \[\]"):
        encoder.transform(frame[["n", "w"]])
    with pytest.raises(InvalidInputError, match="same order"):
        encoder.transform(frame[["w", "n", "b"]])
    with pytest.raises(InvalidInputError, match=r"shape \(0, 3\)"):
        encoder.transform(frame.iloc[[]])


def test_gaps_are_refused_where_nobody_fills_them(frame):
    with pytest.raises(InvalidInputError, match=r"'n' \(NaN\)"):
        IdentityEncoder().fit(frame)
    numbers = frame[["b"]]
    assert IdentityEncoder().fit_transform(numbers).tolist() == [[1], [0], [1], [0]]
