"""Tables with numbers, categories, gaps and surprises."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from denspu.encoders import TabularEncoder
from denspu.encoders.tabular import SharedScaler
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


def test_columns_get_mean_0_and_variance_1():
    X = np.random.default_rng(0).normal([0, 100], [1, 50], size=(40, 2))
    Z = TabularEncoder(scale="column").fit_transform(X)
    assert np.allclose(Z, np.column_stack([standard(X[:, 0]), standard(X[:, 1])]))


def test_common_scale_equals_its_twin():
    X = np.random.default_rng(0).normal([0, 5], [1, 3], size=(40, 2))
    Z = TabularEncoder(scale="common").fit_transform(X)
    spread = np.sqrt(X.var(axis=0).mean())
    assert np.allclose(Z, (X - X.mean(axis=0)) / spread)


@pytest.mark.parametrize(
    ("ranges", "chosen"),
    [
        ([1, 1, 1], "common"),
        ([1, 2, 2], "common"),
        ([10, 5, 5], "common"),  # the median range is half of the largest
        ([10, 4.9, 4.9], "column"),
        ([1, 1, 1000], "column"),
        ([0, 1, 1000], "column"),  # two columns of unlike range
        ([0, 0, 3], "common"),  # constant columns have no say
        ([0, 0, 0], "column"),
    ],
)
def test_scale_rule(ranges, chosen):
    X = np.array([[0.0, 0.0, 0.0], ranges])
    encoder = TabularEncoder().fit(X)
    assert encoder.scale_ == chosen
    assert encoder.facts() == {"scale": chosen}


def test_scale_rule_looks_through_gaps():
    X = np.array([[0.0, np.nan], [1.0, np.nan], [np.nan, np.nan]])
    assert TabularEncoder().fit(X).scale_ == "common"


def test_gaps_become_the_median_and_are_marked():
    X = np.array([[1.0, 5.0], [2.0, 6.0], [np.nan, 7.0], [30.0, 8.0]])
    Z = TabularEncoder(scale="column").fit_transform(X)
    filled = np.where(np.isnan(X[:, 0]), 2.0, X[:, 0])
    assert Z.shape == (4, 3)
    assert np.allclose(Z[:, 0], standard(filled))
    assert Z[:, 2].tolist() == [0, 0, 1, 0]
    plain = TabularEncoder(scale="column", missing_indicator=False).fit_transform(X)
    assert np.allclose(plain, Z[:, :2])


def test_new_gaps_use_the_learned_median():
    encoder = TabularEncoder(scale="column").fit([[1.0], [2.0], [9.0]])
    assert np.allclose(encoder.transform([[np.nan]]), encoder.transform([[2.0]]))


def test_constant_and_empty_columns_stay_finite():
    X = np.array([[1.0, np.nan, 0.0], [1.0, np.nan, 1.0]])
    for scale in ("column", "common"):
        Z = TabularEncoder(scale=scale).fit_transform(X)
        assert np.isfinite(Z).all()
        assert len(Z) == 2


def test_all_constant_with_a_common_scale():
    assert SharedScaler().fit_transform(np.ones((3, 2))).tolist() == [[0, 0]] * 3


def test_labels_do_not_change_the_map(blobs):
    encoder = TabularEncoder()
    assert np.array_equal(
        encoder.fit(blobs.X, blobs.y).transform(blobs.X),
        encoder.fit(blobs.X).transform(blobs.X),
    )


# --- frames ---------------------------------------------------------------------------


def test_frame_with_everything(frame):
    Z = TabularEncoder().fit_transform(frame)
    # age, steps, "age was missing"; city a, b, missing; size l, s
    assert Z.shape == (4, 8)
    assert np.allclose(Z[:, 1], standard(frame["steps"]))
    assert Z[:, 3:].tolist() == [
        [1, 0, 0, 0, 1],
        [0, 1, 0, 1, 0],
        [0, 0, 1, 0, 1],
        [1, 0, 0, 0, 1],
    ]


def test_frame_of_numbers_equals_the_array():
    X = np.random.default_rng(0).normal(size=(10, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    assert np.allclose(
        TabularEncoder().fit_transform(frame), TabularEncoder().fit_transform(X)
    )


def test_pandas_missing_integers_and_text():
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


def test_unseen_categories_are_no_category(frame):
    encoder = TabularEncoder().fit(frame)
    new = frame.assign(city="atlantis")
    assert encoder.transform(new)[:, 3:6].sum() == 0
    assert encoder.transform(new)[:, 6:].sum() == 4


def test_unseen_categories_join_the_rare_ones():
    rare = pd.DataFrame({"c": list("aaaabbbbcde")})
    encoder = TabularEncoder(max_categories=3).fit(rare)
    Z = encoder.transform(pd.DataFrame({"c": list("abcdez")}))
    assert Z.tolist() == [[1, 0, 0], [0, 1, 0]] + [[0, 0, 1]] * 4


def test_only_categories():
    Z = TabularEncoder().fit_transform(pd.DataFrame({"c": ["x", "y", "x"]}))
    assert Z.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_dates_are_refused_by_name(frame):
    frame["born"] = pd.Timestamp("2020-01-01")
    with pytest.raises(InvalidInputError, match=r"'born' \(datetime64.*neither") as e:
        TabularEncoder().fit(frame)
    assert "age" not in str(e.value)


def test_columns_by_name_after_a_frame(frame):
    encoder = TabularEncoder().fit(frame)
    with pytest.raises(InvalidInputError, match="same order"):
        encoder.transform(frame[["steps", "age", "city", "size"]])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_an_array_after_a_frame_is_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 3.0]})
    encoder = TabularEncoder().fit(frame)
    with pytest.raises(InvalidInputError, match="fitted on a DataFrame"):
        encoder.transform(frame.to_numpy())


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_a_frame_after_an_array_is_read_as_one():
    X = np.array([[1.0, 2.0], [3.0, 1.0]])
    encoder = TabularEncoder().fit(X)
    assert np.array_equal(encoder.transform(pd.DataFrame(X)), encoder.transform(X))


def test_infinity_is_refused():
    with pytest.raises(InvalidInputError, match="infinity"):
        TabularEncoder().fit([[1.0, np.inf]])


@pytest.mark.parametrize(
    "settings", [{"scale": "row"}, {"max_categories": 1}, {"missing_indicator": 1}]
)
def test_bad_parameters(settings):
    with pytest.raises(InvalidParameterError, match=next(iter(settings))):
        TabularEncoder(**settings).fit([[1.0]])


def test_a_gap_is_a_gap_however_it_came():
    encoder = TabularEncoder().fit(pd.DataFrame({"c": ["x", "y", None]}))
    for gap in (None, np.nan, pd.NA):
        column = pd.Series(["x", gap], dtype=object)
        assert encoder.transform(pd.DataFrame({"c": column})).tolist() == [
            [1, 0, 0],
            [0, 0, 1],
        ]


def test_the_callers_frame_is_left_alone(frame):
    before = frame.copy()
    TabularEncoder().fit(frame).transform(frame)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_gaps_weigh_the_same_whatever_the_unit(unit):
    rng = np.random.default_rng(0)
    X = rng.random((200, 4)) * unit
    X[rng.random(X.shape) < 0.1] = np.nan
    Z = TabularEncoder(scale="common").fit_transform(X)
    assert Z.shape == (200, 8)
    assert Z[:, :4].std() == pytest.approx(1, rel=0.1)
    np.testing.assert_array_equal(Z[:, 4:], np.isnan(X))


def test_a_column_of_numbers_and_words_is_refused_by_name():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "code": [1, "x", None]}, dtype=object)
    frame["a"] = frame["a"].astype(float)
    with pytest.raises(InvalidInputError, match=r"'code' mixes int and str"):
        TabularEncoder().fit(frame)
