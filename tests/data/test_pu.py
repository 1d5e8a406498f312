from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denspu.data import make_pu
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError

SCENARIOS = ("one-sample", "two-sample")


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture
def y():
    return np.repeat([1, 0], [16, 24])


@st.composite
def truth(draw):
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=3, max_size=60)))
    y[0], y[-1] = 1, 0
    return y, draw(st.integers(1, int(y.sum()))), draw(st.integers(0, 10**6))


# --- what comes out -----------------------------------------------------------------


@given(truth(), st.sampled_from(SCENARIOS), st.sampled_from(["scar", "sar"]))
@settings(max_examples=60, deadline=None)
def test_exactly_n_labeled_distinct_true_positives(case, scenario, mechanism):
    y, n_labeled, seed = case
    X = np.arange(len(y), dtype=float)[:, None]
    data = make_pu(
        X,
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


def test_one_sample_leaves_rows_in_place_without_a_copy(X, y):
    data = make_pu(X, y, n_labeled=4, random_state=0)
    assert data.X is X
    assert (data.index == np.arange(40)).all()
    assert set(data.y.tolist()) == {0, 1}
    assert data.y.dtype.kind == "i"


def test_two_sample_puts_copies_in_front_of_the_whole_set(X, y):
    data = make_pu(X, y, n_labeled=4, scenario="two-sample", random_state=0)
    assert data.y.tolist() == [1] * 4 + [0] * 40
    assert (data.index[4:] == np.arange(40)).all()
    assert (X[data.index] == data.X).all()
    assert (np.diff(data.index[:4]) > 0).all()


def test_labeled_and_unlabeled_positions_part_the_rows(X, y):
    data = make_pu(X, y, n_labeled=4, random_state=0)
    both = np.concatenate([data.labeled_index, data.unlabeled_index])
    assert sorted(both.tolist()) == list(range(40))
    assert (data.y[data.labeled_index] == 1).all()


@given(truth())
@settings(max_examples=40, deadline=None)
def test_priors_have_their_closed_form(case):
    y, n_labeled, seed = case
    X, n, p = np.zeros((len(y), 1)), len(y), y.sum()
    one = make_pu(X, y, n_labeled=n_labeled, random_state=seed).oracle
    two = make_pu(
        X, y, n_labeled=n_labeled, scenario="two-sample", random_state=seed
    ).oracle
    assert one.prior == two.prior == pytest.approx(p / n)
    assert two.prior_in_unlabeled == pytest.approx(p / n)
    assert one.prior_in_unlabeled == pytest.approx((p - n_labeled) / (n - n_labeled))


def test_a_fraction_is_a_share_of_the_positives(X, y):
    assert make_pu(X, y, n_labeled=0.25).n_labeled == 4


# --- inputs of every form -----------------------------------------------------------


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_frames_keep_their_columns(X, y, scenario):
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(40) + 100)
    data = make_pu(frame, y, n_labeled=4, scenario=scenario, random_state=0)
    assert list(data.X.columns) == list("abc")
    assert (data.X.to_numpy() == X[data.index]).all()


@pytest.mark.parametrize("shape", [(40, 5, 4), (40, 5, 4, 3)])
@pytest.mark.parametrize("mechanism", ["scar", "sar"])
def test_images_keep_shape_and_dtype(y, shape, mechanism):
    images = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    data = make_pu(
        images,
        y,
        n_labeled=3,
        scenario="two-sample",
        mechanism=mechanism,
        random_state=0,
    )
    assert data.X.shape == (43, *shape[1:])
    assert data.X.dtype == np.uint8


def test_lists_stay_lists():
    texts = ["a", "bb", "ccc", "d"]
    one = make_pu(texts, [1, 1, 0, 0], n_labeled=1)
    two = make_pu(texts, [1, 1, 0, 0], n_labeled=1, scenario="two-sample")
    assert one.X is texts
    assert [texts[i] for i in two.index] == two.X


@pytest.mark.parametrize("true", [np.array([True] * 16 + [False] * 24), [1.0, 0] * 20])
def test_bools_and_floats_are_true_classes_too(X, true):
    data = make_pu(X, true, n_labeled=2)
    assert (data.oracle.labels == np.asarray(true)).all()


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


# --- randomness ---------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["scar", "sar"])
def test_same_seed_same_labels_and_another_seed_others(X, y, mechanism):
    def labels(seed):
        data = make_pu(X, y, n_labeled=6, mechanism=mechanism, random_state=seed)
        return data.y.tolist()

    assert labels(3) == labels(3)
    assert len({tuple(labels(seed)) for seed in range(6)}) > 1


def test_global_numpy_state_is_untouched(X, y):
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    make_pu(X, y, n_labeled=6, mechanism="sar", random_state=1)
    assert np.random.random() == expected  # noqa: NPY002


def test_scar_labels_every_positive_equally_often(X, y):
    counts = sum(make_pu(X, y, n_labeled=4, random_state=s).y for s in range(400))
    assert counts[16:].sum() == 0
    # 400 draws of 4 of 16: mean 100, standard deviation 8.7
    assert np.abs(counts[:16] - 100).max() < 40


# --- groups -------------------------------------------------------------------------


@given(truth(), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_a_groups_positives_are_labelled_together(case, n_groups):
    y, n_labeled, seed = case
    groups = np.random.default_rng(seed).integers(0, n_groups, len(y))
    X = np.zeros((len(y), 1))
    data = make_pu(X, y, n_labeled=n_labeled, groups=groups, random_state=seed)
    for group in set(groups.tolist()):
        labels = data.y[(groups == group) & (y == 1)]
        assert len(set(labels.tolist())) <= 1
    assert data.n_labeled >= n_labeled
    sizes = np.bincount(groups[data.labeled_index])
    assert data.n_labeled - sizes[sizes > 0].max() < n_labeled


def test_groups_travel_with_their_rows(X, y):
    names = np.array([f"p{i % 5}" for i in range(40)])
    data = make_pu(X, y, n_labeled=3, groups=names, scenario="two-sample")
    assert (data.groups == names[data.index]).all()
    assert make_pu(X, y, n_labeled=3).groups is None


# --- bad inputs, one by one ---------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"n_labeled": 17}, InvalidParameterError, "16 positives"),
        ({"n_labeled": 0}, InvalidParameterError, "n_labeled=0"),
        ({"n_labeled": 1.5}, InvalidParameterError, "n_labeled=1.5"),
        ({"scenario": "one_sample"}, InvalidParameterError, "mean 'one-sample'"),
        ({"mechanism": "scarr"}, InvalidParameterError, "mean 'scar'"),
        ({"propensity": np.ones(40)}, InvalidParameterError, "mechanism='sar'"),
        ({"positive": 2}, LabelError, r"names \{2\}"),
        ({"positive": "1"}, LabelError, r"\{'1'\}, which y does not hold"),
        ({"positive": []}, InvalidParameterError, "names no class"),
        ({"groups": [1, 2]}, InvalidInputError, "groups has shape"),
        ({"random_state": "x"}, InvalidParameterError, "random_state='x'"),
        ({"y": [1] * 39}, InvalidInputError, r"shape \(39,\)"),
        ({"y": np.ones((40, 1))}, InvalidInputError, r"shape \(40,\)"),
        ({"y": [0] * 40}, LabelError, "no positive"),
        ({"y": [0, 1, 2, 3] * 10}, LabelError, "positive=3"),
        ({"y": [-1, 1] * 20}, LabelError, r"\{-1, 1\}"),
        ({"y": ["0", "1"] * 20}, LabelError, "positive='1'"),
        ({"y": [0, np.nan] * 20}, LabelError, "NaN"),
        ({"y": np.array([0, None] * 20)}, LabelError, "None"),
        ({"y": np.array([0, "a"] * 20, dtype=object)}, LabelError, "mixes"),
        ({"y": [1] * 40, "n_labeled": 40}, InvalidInputError, "none left unlabelled"),
        ({"X": np.empty((0, 3)), "y": []}, InvalidInputError, "without rows"),
        ({"X": 3}, InvalidInputError, "int without rows"),
    ],
)
def test_bad_arguments_are_named(X, y, change, error, says):
    arguments = {"X": X, "y": y, "n_labeled": 4, **change}
    with pytest.raises(error, match=says):
        make_pu(arguments.pop("X"), arguments.pop("y"), **arguments)
