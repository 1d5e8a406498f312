"""PU data from classes: who becomes positive, who gets a label."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denspu.data import make_pu
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError

X40 = np.random.default_rng(0).normal(size=(40, 3))
Y40 = np.repeat([1, 0], [16, 24])


@st.composite
def truth(draw):
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=3, max_size=60)))
    y[0], y[-1] = 1, 0
    return y, draw(st.integers(1, int(y.sum()))), draw(st.integers(0, 10**6))


# --- what comes out -----------------------------------------------------------------


@given(
    truth(),
    st.sampled_from(["one-sample", "two-sample"]),
    st.sampled_from(["scar", "sar"]),
)
@settings(max_examples=40, deadline=None)
def test_exactly_n_labeled_distinct_true_positives(case, scenario, mechanism):
    y, n_labeled, seed = case
    data = make_pu(
        np.arange(len(y), dtype=float)[:, None],
        y,
        n_labeled=n_labeled,
        scenario=scenario,
        mechanism=mechanism,
        random_state=seed,
    )
    chosen = data.index[data.labeled_index]
    assert len(set(chosen.tolist())) == n_labeled == data.n_labeled
    assert (y[chosen] == 1).all()
    assert (data.X[:, 0] == data.index).all()
    assert (data.oracle.labels == y[data.index]).all()
    assert (data.oracle.unlabeled_labels == y[data.index][data.unlabeled_index]).all()
    n, p = len(y), y.sum()
    assert data.oracle.prior == pytest.approx(p / n)
    taken = n_labeled if scenario == "one-sample" else 0
    assert data.oracle.prior_in_unlabeled == pytest.approx((p - taken) / (n - taken))


def test_rows_stay_in_place_or_copies_stand_in_front():
    one = make_pu(X40, Y40, n_labeled=0.25, random_state=0)
    assert one.X is X40
    assert one.n_labeled == 4
    assert one.index.tolist() == list(range(40))
    assert one.y.dtype.kind == "i"
    two = make_pu(X40, Y40, n_labeled=4, scenario="two-sample", random_state=0)
    assert two.y.tolist() == [1] * 4 + [0] * 40
    assert two.index[4:].tolist() == list(range(40))
    assert (np.diff(two.index[:4]) > 0).all()


def test_the_truth_is_behind_one_door():
    data = make_pu(X40, Y40, n_labeled=4, random_state=0)
    assert not np.shares_memory(data.y, data.oracle.labels)
    assert repr(data.oracle) == "<Oracle of 40 rows>"
    assert repr(data) == (
        "PUDataset(40 rows, n_labeled=4, scenario='one-sample', mechanism='scar')"
    )
    names = {field.name for field in dataclasses.fields(data)}
    assert names == {"X", "y", "index", "scenario", "mechanism", "oracle"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = data.oracle.labels


def test_frames_images_and_lists_keep_their_form():
    frame = pd.DataFrame(X40, columns=list("abc"), index=np.arange(40) + 100)
    data = make_pu(frame, Y40, n_labeled=4, scenario="two-sample", random_state=0)
    assert list(data.X.columns) == list("abc")
    assert (data.X.to_numpy() == X40[data.index]).all()
    images = np.random.default_rng(0).integers(0, 256, (40, 5, 4, 3), dtype=np.uint8)
    data = make_pu(
        images, Y40, n_labeled=3, scenario="two-sample", mechanism="sar", random_state=0
    )
    assert data.X.shape == (43, 5, 4, 3)
    assert data.X.dtype == np.uint8
    texts = ["a", "bb", "ccc", "d"]
    data = make_pu(texts, [True, True, False, False], n_labeled=1)
    assert data.X is texts
    data = make_pu(texts, [1.0, 1, 0, 0], n_labeled=1, scenario="two-sample")
    assert [texts[i] for i in data.index] == data.X


@pytest.mark.parametrize(
    ("classes", "positive", "expected"),
    [
        ([3, 7, 8, 3], 3, [1, 0, 0, 1]),
        ([3, 7, 8, 3], (3, 8), [1, 0, 1, 1]),
        (["cat", "dog", "cat", "eel"], "cat", [1, 0, 1, 0]),
        (["cat", "dog", "cat", "eel"], {"dog", "eel"}, [0, 1, 0, 1]),
        ([-1, 1, 1, -1], np.array([1]), [0, 1, 1, 0]),
        ([0, 1, 1, 0], 0, [1, 0, 0, 1]),
    ],
)
def test_positive_names_the_positive_classes(classes, positive, expected):
    data = make_pu([0, 1, 2, 3], classes, n_labeled=1, positive=positive)
    assert data.oracle.labels.tolist() == expected


def test_the_seed_decides_and_global_state_is_untouched():
    def labels(seed):
        data = make_pu(X40, Y40, n_labeled=6, mechanism="sar", random_state=seed)
        return data.y.tolist()

    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    assert labels(3) == labels(3)
    assert len({tuple(labels(seed)) for seed in range(6)}) > 1
    assert np.random.random() == expected  # noqa: NPY002


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"n_labeled": 17}, InvalidParameterError, "16 positives"),
        ({"n_labeled": 1.5}, InvalidParameterError, "n_labeled=1.5"),
        (
            {"scenario": "one_sample"},
            InvalidParameterError,
            "'one-sample' or 'two-sample'",
        ),
        ({"mechanism": "scarr"}, InvalidParameterError, "'scar' or 'sar'"),
        ({"propensity": np.ones(40)}, InvalidParameterError, "mechanism='sar'"),
        ({"positive": 2}, LabelError, r"names \{2\}"),
        ({"positive": []}, InvalidParameterError, "names no class"),
        ({"random_state": "x"}, InvalidParameterError, "random_state='x'"),
        ({"y": np.ones((40, 1))}, InvalidInputError, r"shape \(40,\)"),
        ({"y": [0] * 40}, LabelError, "no positive"),
        ({"y": [0, 1, 2, 3] * 10}, LabelError, "positive=3"),
        ({"y": [0, np.nan] * 20}, LabelError, "NaN"),
        ({"y": np.array([0, "a"] * 20, dtype=object)}, LabelError, "mixes"),
        ({"y": [1] * 40, "n_labeled": 40}, InvalidInputError, "none left unlabelled"),
        ({"X": np.empty((0, 3)), "y": []}, InvalidInputError, "without rows"),
        ({"X": 3}, InvalidInputError, "int without rows"),
    ],
)
def test_bad_arguments_are_named(change, error, says):
    arguments = {"X": X40, "y": Y40, "n_labeled": 4, **change}
    with pytest.raises(error, match=says):
        make_pu(arguments.pop("X"), arguments.pop("y"), **arguments)


# --- who gets a label ---------------------------------------------------------------


def times_labelled(weights, n_labeled, n=1500):
    """Return how often each set of positives is labelled."""
    y = [1] * len(weights) + [0]
    sets = {}
    for seed in range(n):
        data = make_pu(
            np.zeros((len(y), 1)),
            y,
            n_labeled=n_labeled,
            mechanism="sar",
            propensity=[*weights, 1],
            random_state=seed,
        )
        chosen = tuple(data.labeled_index.tolist())
        sets[chosen] = sets.get(chosen, 0) + 1 / n
    return sets


def test_rows_are_drawn_one_after_the_other_by_weight():
    first = times_labelled([1.0, 2.0, 5.0], 1)
    assert first[0,] == pytest.approx(1 / 8, abs=0.03)
    assert first[2,] == pytest.approx(5 / 8, abs=0.04)
    pairs = times_labelled([1.0, 2.0, 5.0], 2)
    assert pairs[0, 1] == pytest.approx(1 / 8 * 2 / 7 + 2 / 8 * 1 / 6, abs=0.02)


def test_sar_labels_the_far_end_of_the_first_direction():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) * [10, 1]
    y = np.repeat([1, 0], 300)
    words = pd.DataFrame({"word": ["x"] * 600, "a": X[:, 0], "b": X[:, 1]})
    for rows in (X, words):  # a frame counts by its numbers
        sar = make_pu(rows, y, n_labeled=60, mechanism="sar", random_state=0)
        assert X[sar.labeled_index, 0].mean() > 7
    scar = make_pu(X, y, n_labeled=60, random_state=0)
    flat = make_pu(np.ones((600, 2)), y, n_labeled=60, mechanism="sar", random_state=0)
    assert flat.y.tolist() == scar.y.tolist()


@pytest.mark.parametrize(
    ("propensity", "says"),
    [
        ([1.0, 1.0], r"shape \(2,\); one number a row"),
        ([1.0, 0.0, 0.0, 1.0], "0.0 for row 1"),
        ([0.0, np.inf, 1.0, 1.0], "inf for row 1"),
        (["a", "b", "c", "d"], "not numeric"),
    ],
)
def test_bad_propensities_are_named(propensity, says):
    with pytest.raises(InvalidParameterError, match=says):
        make_pu(
            np.ones((4, 1)),
            [0, 1, 0, 1],
            n_labeled=1,
            mechanism="sar",
            propensity=propensity,
        )


@pytest.mark.parametrize("X", [["some", "text"], np.array([[0.0], [np.nan]])])
def test_the_default_propensity_needs_numbers(X):
    with pytest.raises(InvalidInputError, match="Pass propensity="):
        make_pu(X, [1, 1], n_labeled=1, mechanism="sar")
