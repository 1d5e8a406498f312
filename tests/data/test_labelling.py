from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from denspu.data import make_pu
from denspu.data._labelling import choose_groups, choose_rows, propensities
from denspu.exceptions import InvalidInputError, InvalidParameterError


def draw(weights, count, n_draws=4000):
    rng = np.random.default_rng(0)
    return [choose_rows(np.asarray(weights), count, rng) for _ in range(n_draws)]


def test_first_draw_is_in_proportion_to_the_weights():
    first = np.bincount([rows[0] for rows in draw([1.0, 2.0, 5.0], 1)]) / 4000
    assert first == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.03)


def test_pairs_have_the_law_of_successive_draws():
    # P({0, 1}) = 1/8 · 2/7 + 2/8 · 1/6, by drawing one after the other
    pairs = [set(rows.tolist()) == {0, 1} for rows in draw([1.0, 2.0, 5.0], 2)]
    assert np.mean(pairs) == pytest.approx(1 / 8 * 2 / 7 + 2 / 8 * 1 / 6, abs=0.015)


def test_groups_are_drawn_by_the_mean_weight_of_their_rows():
    rng = np.random.default_rng(0)
    weights = np.array([3.0, 1, 1, 1, 1])  # means 3 and 1; sums would be 3 and 4
    groups = np.array([0, 1, 1, 1, 1])
    first = [choose_groups(weights, groups, 1, rng).tolist() for _ in range(2000)]
    assert first.count([0]) / 2000 == pytest.approx(0.75, abs=0.04)


def test_groups_stop_as_soon_as_there_are_enough():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 2)
    assert len(choose_groups(np.ones(6), groups, 2, rng)) == 2
    assert len(choose_groups(np.ones(6), groups, 3, rng)) == 4


# --- propensities -------------------------------------------------------------------


def test_sar_labels_the_far_end_of_the_first_direction():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) * [10, 1]
    y = np.repeat([1, 0], 300)
    sar = make_pu(X, y, n_labeled=60, mechanism="sar", random_state=0)
    scar = make_pu(X, y, n_labeled=60, random_state=0)
    assert X[sar.labeled_index, 0].mean() > 7
    assert abs(X[scar.labeled_index, 0].mean()) < 5


def test_default_is_exp_of_twice_the_standardised_projection():
    t = np.array([-1.0, 0.0, 1.0, 4.0])
    positives = np.column_stack([3 * t, -4 * t])  # the largest loading is negative
    rows = np.arange(4)
    weights = propensities(None, positives, rows, 4)
    expected = np.exp(-2 * (t - t.mean()) / t.std())
    assert weights == pytest.approx(expected, rel=1e-6)


def test_default_looks_at_the_numbers_of_a_frame_only():
    values = np.array([0.0, 1.0, 3.0])
    frame = pd.DataFrame({"word": ["x", "y", "z"], "number": values})
    rows = np.arange(3)
    from_frame = propensities(None, frame, rows, 3)
    assert from_frame == pytest.approx(propensities(None, values[:, None], rows, 3))


@pytest.mark.parametrize("positives", [np.ones((5, 2)), np.ones((1, 2))])
def test_default_without_spread_is_scar(positives):
    rows = np.arange(len(positives))
    assert (propensities(None, positives, rows, len(rows)) == 1).all()


@pytest.mark.parametrize(
    "positives",
    [
        ["some", "text"],
        np.array([[0.0], [np.nan]]),
        pd.DataFrame({"word": ["x", "y"]}),
    ],
)
def test_default_refuses_what_is_not_a_number(positives):
    with pytest.raises(InvalidInputError, match="Pass propensity="):
        propensities(None, positives, np.arange(2), 2)


def test_an_array_has_one_number_for_every_row_of_x():
    # Row 2 is a negative: its zero is not looked at.
    weights = propensities([1.0, 5.0, 0.0, 7.0], None, np.array([1, 3]), 4)
    assert weights.tolist() == [5, 7]


def test_a_function_sees_the_positive_rows_alone():
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    seen = []

    def propensity(rows):
        seen.append(rows[:, 0].tolist())
        return np.where(rows[:, 0] > 3, 1e9, 1e-9)

    data = make_pu(X, [1, 0, 0, 1], n_labeled=1, mechanism="sar", propensity=propensity)
    assert seen == [[1.0, 4.0]]
    assert data.labeled_index.tolist() == [3]


@pytest.mark.parametrize(
    ("propensity", "says"),
    [
        ([1.0, 1.0], r"shape \(2,\); one number a row"),
        (lambda rows: np.ones(3), "one number a positive row"),
        ([1.0, 0.0, 1.0, 1.0], "0.0 for row 1"),
        ([1.0, np.nan, 1.0, 1.0], "nan for row 1"),
        ([1.0, np.inf, 1.0, 1.0], "inf for row 1"),
        (["a", "b", "c", "d"], "not numeric"),
    ],
)
def test_bad_propensities_are_named(propensity, says):
    with pytest.raises(InvalidParameterError, match=says):
        propensities(propensity, np.ones((2, 1)), np.array([1, 3]), 4)
