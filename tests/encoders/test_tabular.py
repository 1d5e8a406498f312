"""Tables with numbers, categories, gaps and surprises; and rows left as they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from denspu.encoders import IdentityEncoder, TabularEncoder
from denspu.exceptions import InvalidInputError, InvalidParameterError


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [20.0, 30.0, np.nan, 40.0],
            "steps": [1000, 2000, 3000, 4000],
            "city": ["a", "b", None, "a"],
            "size": pd.Categorical(["s", "l", "s", "s"]),
        }
    )


def standard(column):
    column = np.asarray(column, dtype=float)
    return (column - column.mean()) / column.std()


# --- numbers --------------------------------------------------------------------------


def test_both_scales_equal_their_twins():
    X = np.random.default_rng(0).normal([0, 100], [1, 50], size=(40, 2))
    Z = TabularEncoder(scale="column").fit_transform(X)
    assert np.allclose(Z, np.column_stack([standard(X[:, 0]), standard(X[:, 1])]))
    Z = TabularEncoder(scale="common").fit_transform(X)
    assert np.allclose(Z, (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean()))
    frame = pd.DataFrame(X, columns=list("ab"))
    assert np.allclose(TabularEncoder(scale="common").fit_transform(frame), Z)


@pytest.mark.parametrize(
    ("ranges", "chosen"),
    [
        ([1, 2, 2], "common"),
        ([10, 4.9, 4.9], "column"),
        ([0, 1, 1000], "column"),  # two columns of unlike range
        ([0, 0, 0], "column"),
    ],
)
def test_scale_rule(ranges, chosen):
    encoder = TabularEncoder().fit(np.array([[0.0, 0.0, 0.0], ranges]))
    assert encoder.facts() == {"scale": chosen}


def test_gaps_become_the_median_and_are_marked():
    X = np.array([[1.0, 5.0], [2.0, 6.0], [np.nan, 7.0], [30.0, 8.0]])
    encoder = TabularEncoder(scale="column")
    Z = encoder.fit_transform(X)
    assert np.allclose(Z[:, 0], standard([1, 2, 2, 30]))
    assert Z[:, 2].tolist() == [0, 0, 1, 0]
    later = encoder.transform([[np.nan, 7.0], [2.0, 7.0]])
    assert np.array_equal(later[0, :2], later[1, :2])  # the learned median
    plain = TabularEncoder(scale="column", missing_indicator=False).fit_transform(X)
    assert np.allclose(plain, Z[:, :2])


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_gaps_weigh_the_same_whatever_the_unit(unit):
    rng = np.random.default_rng(0)
    X = rng.random((200, 4)) * unit
    X[rng.random(X.shape) < 0.1] = np.nan
    Z = TabularEncoder(scale="common").fit_transform(X)
    assert Z[:, :4].std() == pytest.approx(1, rel=0.1)
    np.testing.assert_array_equal(Z[:, 4:], np.isnan(X))


def test_constant_and_empty_columns_stay_finite():
    X = np.array([[1.0, np.nan, 0.0], [1.0, np.nan, 1.0], [1.0, np.nan, np.nan]])
    for scale in ("column", "common", "auto"):
        assert np.isfinite(TabularEncoder(scale=scale).fit_transform(X)).all()
    same = TabularEncoder(scale="common").fit_transform(np.ones((3, 2)))
    assert same.tolist() == [[0, 0]] * 3


# --- frames ---------------------------------------------------------------------------


def test_frame_with_everything(frame):
    before = frame.copy()
    encoder = TabularEncoder()
    Z = encoder.fit_transform(frame)
    # age, steps, "age was missing"; city a, b, missing; size l, s
    assert Z.shape == (4, 8)
    assert np.allclose(Z[:, 1], standard(frame["steps"]))
    assert Z[:, 3:].tolist() == [
        [1, 0, 0, 0, 1],
        [0, 1, 0, 1, 0],
        [0, 0, 1, 0, 1],
        [1, 0, 0, 0, 1],
    ]
    unseen = encoder.transform(frame.assign(city="atlantis"))
    assert unseen[:, 3:6].sum() == 0
    pd.testing.assert_frame_equal(frame, before)
    with pytest.raises(InvalidInputError, match="same order"):
        encoder.transform(frame[["steps", "age", "city", "size"]])


def test_kinds_of_columns_and_of_gaps():
    frame = pd.DataFrame(
        {
            "n": pd.array([1, 3, None, 5], dtype="Int64"),
            "f": pd.array([0.5, None, 1.5, 1.0], dtype="Float64"),
            "t": pd.array(["x", "y", "x", None], dtype="string"),
        }
    )
    Z = TabularEncoder().fit_transform(frame)
    assert Z.shape == (4, 7)
    assert np.isfinite(Z).all()
    encoder = TabularEncoder().fit(pd.DataFrame({"c": ["x", "y", None]}))
    for gap in (None, np.nan, pd.NA):
        column = pd.DataFrame({"c": pd.Series(["x", gap], dtype=object)})
        assert encoder.transform(column).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_unseen_categories_join_the_rare_ones():
    rare = pd.DataFrame({"c": list("aaaabbbbcde")})
    encoder = TabularEncoder(max_categories=3).fit(rare)
    Z = encoder.transform(pd.DataFrame({"c": list("abcdez")}))
    assert Z.tolist() == [[1, 0, 0], [0, 1, 0]] + [[0, 0, 1]] * 4


def test_columns_that_are_refused_by_name(frame):
    born = frame.assign(born=pd.Timestamp("2020-01-01"))
    with pytest.raises(InvalidInputError, match=r"'born' \(datetime64.*neither"):
        TabularEncoder().fit(born)
    mixed = frame.assign(code=pd.Series([1, "x", None, 2], dtype=object))
    with pytest.raises(InvalidInputError, match=r"'code' mixes int and str"):
        TabularEncoder().fit(mixed)
    with pytest.raises(InvalidInputError, match="infinity"):
        TabularEncoder().fit([[1.0, np.inf]])


@pytest.mark.filterwarnings("ignore:X ")
def test_an_array_and_a_frame():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 3.0]})
    with pytest.raises(InvalidInputError, match="fitted on a DataFrame"):
        TabularEncoder().fit(frame).transform(frame.to_numpy())
    encoder = TabularEncoder().fit(frame.to_numpy())
    found = [encoder.transform(X) for X in (frame, frame.to_numpy())]
    assert np.array_equal(*found)


@pytest.mark.parametrize("settings", [{"scale": "row"}, {"max_categories": 1}])
def test_bad_parameters(settings):
    with pytest.raises(InvalidParameterError, match=next(iter(settings))):
        TabularEncoder(**settings).fit([[1.0]])


# --- as they are ----------------------------------------------------------------------


def test_tables_pass_through():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]], np.float32)
    Z = IdentityEncoder().fit_transform(X)
    assert np.array_equal(Z, X)
    assert Z.dtype == np.float32
    sphere = IdentityEncoder(normalize=True).fit_transform(X)
    assert np.allclose(sphere, [[0.6, 0.8], [0, 0], [-1, 0]])
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]})
    assert IdentityEncoder().fit_transform(frame).tolist() == [[1, 0.5, 1], [2, 1.5, 0]]
    with pytest.raises(InvalidInputError, match=r"Column\(s\) city .*'tabular'"):
        IdentityEncoder().fit_transform(frame.assign(city="a"))
    with pytest.raises(InvalidInputError, match="NaN"):
        IdentityEncoder().fit([[1.0, np.nan]])
    with pytest.raises(InvalidParameterError, match="'normalize'"):
        IdentityEncoder(normalize="yes").fit(X)


def test_images_are_scaled_by_what_fit_saw_and_flattened():
    images = np.array([[[0, 51], [102, 255]]], np.uint8)
    assert np.allclose(IdentityEncoder().fit_transform(images), [[0, 0.2, 0.4, 1]])
    encoder = IdentityEncoder().fit(np.full((1, 2, 2), 10.0) * [[0, 1], [1, 1]])
    assert encoder.transform(np.full((1, 2, 2), 5.0)).tolist() == [[0.5] * 4]
