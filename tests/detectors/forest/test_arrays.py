"""Trees as arrays: the heap's meaning, and scikit-learn's trees copied into it."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.ensemble

from denspu.detectors.forest import (
    Forest,
    average_path_length,
    depth_for,
    forest_scores,
    round_down,
)


def stump(threshold=0.0, left=1.0, right=2.0):
    """Return one tree with one split of feature 0."""
    return Forest(
        feature=np.zeros((1, 2, 1), np.uint32),
        weight=None,
        threshold=np.array([[np.inf, threshold]]),
        path=np.array([[left, right]]),
        n_samples=4,
        n_features=1,
    )


@pytest.mark.parametrize("engine", ["numba", "torch"])
def test_a_row_goes_right_above_the_threshold_only(engine):
    forest = stump()
    rows = np.array([[-1.0], [0.0], [np.nextafter(0, 1)], [5.0]])
    c = average_path_length(np.array([4]))[0]
    expected = -(2.0 ** (-np.array([1.0, 1.0, 2.0, 2.0]) / c))
    np.testing.assert_allclose(forest_scores(forest, rows, engine=engine), expected)


def test_average_path_length_in_closed_form():
    n = np.array([0, 1, 2, 3, 256])
    euler = 0.5772156649015329
    many = [2 * (np.log(m - 1) + euler) - 2 * (m - 1) / m for m in (3, 256)]
    np.testing.assert_allclose(average_path_length(n), [0, 0, 1, *many])


def test_depth_is_the_binary_logarithm_rounded_up():
    assert [depth_for(n) for n in (1, 2, 3, 255, 256, 257)] == [1, 1, 2, 8, 8, 9]


def test_rounding_down_keeps_every_comparison():
    rng = np.random.default_rng(0)
    exact = rng.normal(size=2_000)
    rows = np.concatenate([round_down(exact), rng.normal(size=2_000).astype("f4")])
    down = round_down(exact)
    assert (down.astype("f8") <= exact).all()
    for t, d in zip(exact[:200], down[:200], strict=True):
        np.testing.assert_array_equal(rows.astype("f8") > t, rows > d)


@pytest.mark.parametrize("engine", ["numba", "torch"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("settings", [{}, {"max_features": 0.5}, {"max_samples": 3}])
def test_copied_trees_score_like_scikit_learn(engine, dtype, settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)).astype(dtype)
    X[:, 5] = X[:, 5].round()  # ties
    theirs = sklearn.ensemble.IsolationForest(
        n_estimators=40, random_state=0, **settings
    ).fit(X)
    ours = Forest.from_sklearn(theirs)
    found = forest_scores(ours, X, engine=engine)
    np.testing.assert_allclose(found, theirs.score_samples(X), rtol=0, atol=1e-12)


def test_a_forest_of_one_row_says_nothing():
    forest = stump()
    alone = Forest(forest.feature, None, forest.threshold, forest.path, 1, 1)
    assert forest_scores(alone, np.zeros((3, 1))).tolist() == [-0.5] * 3
