"""The encoder that changes nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from denspu.encoders import IdentityEncoder
from denspu.exceptions import InvalidInputError, InvalidParameterError

X = np.array([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]])


def test_tables_pass_through():
    assert np.array_equal(IdentityEncoder().fit_transform(X), X)
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]})
    assert IdentityEncoder().fit_transform(frame).tolist() == [[1, 0.5, 1], [2, 1.5, 0]]


def test_float32_stays_float32():
    assert IdentityEncoder().fit_transform(X.astype(np.float32)).dtype == np.float32


def test_normalize_puts_rows_on_the_sphere_and_keeps_zero():
    Z = IdentityEncoder(normalize=True).fit_transform(X)
    assert np.allclose(Z, [[0.6, 0.8], [0, 0], [-1, 0]])


def test_images_are_scaled_and_flattened():
    images = np.array([[[0, 51], [102, 255]]], np.uint8)
    Z = IdentityEncoder().fit_transform(images)
    assert np.allclose(Z, [[0, 0.2, 0.4, 1]])


def test_the_pixel_range_is_the_one_seen_in_fit():
    encoder = IdentityEncoder().fit(np.full((1, 2, 2), 10.0) * [[0, 1], [1, 1]])
    assert encoder.transform(np.full((1, 2, 2), 5.0)).tolist() == [[0.5] * 4]


def test_words_are_refused_by_name():
    frame = pd.DataFrame({"n": [1, 2], "city": ["a", "b"]})
    with pytest.raises(
        InvalidInputError, match=r"Column\(s\) city .*encoder='tabular'"
    ):
        IdentityEncoder().fit_transform(frame)


def test_nan_is_refused():
    with pytest.raises(InvalidInputError, match="NaN"):
        IdentityEncoder().fit([[1.0, np.nan]])


def test_bad_parameter():
    with pytest.raises(InvalidParameterError, match="'normalize'"):
        IdentityEncoder(normalize="yes").fit(X)
