"""Growing trees: against a slow twin, and the laws they must obey."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from denspu.detectors.forest import average_path_length, forest_scores
from denspu.detectors.forest_growth import build_forest, distinct_rows


def grow(Z, seed=0, **kw):
    kw = {"n_trees": 20, "max_samples": 32, **kw}
    return build_forest(Z, rng=np.random.default_rng(seed), **kw)


def walk(forest, tree, row):
    """Return the heap numbers one row visits, by hand."""
    node, seen = 1, []
    for _ in range(forest.depth):
        seen.append(node)
        at = forest.feature[tree, node]
        weight = 1.0 if forest.weight is None else forest.weight[tree, node]
        node = 2 * node + int((weight * row[at]).sum() > forest.threshold[tree, node])
    return seen, node - (1 << forest.depth)


@pytest.mark.parametrize("directions", [1, 3])
def test_scores_equal_a_walk_by_hand(directions):
    Z = np.random.default_rng(1).normal(size=(60, 5))
    forest = grow(Z, n_directions=directions)
    c = average_path_length(np.array([32]))[0]
    for i in range(5):
        paths = [forest.path[t, walk(forest, t, Z[i])[1]] for t in range(20)]
        expected = -(2.0 ** (-np.mean(paths) / c))
        for engine in ("numba", "torch"):
            found = forest_scores(forest, Z[i : i + 1], engine=engine)
            assert found[0] == pytest.approx(expected, abs=1e-12)


def test_path_is_depth_plus_what_the_leaf_still_hides():
    """Send the training rows down: leaf sizes and levels give the path lengths."""
    Z = np.random.default_rng(2).normal(size=(16, 3))
    forest = grow(Z, n_trees=5, max_samples=16)
    for t in range(5):
        ends = [walk(forest, t, row) for row in Z]
        for seen, leaf in ends:
            together = sum(other == leaf for _, other in ends)
            level = sum(np.isfinite(forest.threshold[t, n]) for n in seen)
            expected = level + average_path_length(np.array([together]))[0]
            assert forest.path[t, leaf] == pytest.approx(expected)


def test_first_feature_is_uniform_among_those_that_vary():
    Z = np.random.default_rng(0).normal(size=(64, 6))
    Z[:, [1, 4]] = 7.0
    forest = grow(Z, n_trees=3_000, max_samples=8)
    counts = np.bincount(forest.feature[:, 1, 0], minlength=6)
    assert counts[[1, 4]].tolist() == [0, 0]
    assert chisquare(counts[[0, 2, 3, 5]]).pvalue > 0.001


def test_threshold_is_uniform_between_the_extremes():
    Z = np.array([[0.0], [1.0]])
    forest = grow(Z, n_trees=4_000, max_samples=2)
    assert kstest(forest.threshold[:, 1], "uniform").pvalue > 0.001


def test_one_varying_feature_among_many_is_found():
    Z = np.zeros((40, 500))
    Z[:, 123] = np.arange(40)
    forest = grow(Z, n_trees=10)
    assert (forest.feature[:, 1, 0] == 123).all()


@pytest.mark.parametrize("directions", [1, 3])
def test_equal_rows_cannot_be_split(directions):
    forest = grow(np.ones((30, 4)), n_directions=directions)
    assert np.isinf(forest.threshold).all()
    expected = average_path_length(np.array([30]))[0]
    assert forest.path[:, 0] == pytest.approx(expected)


@pytest.mark.parametrize("directions", [1, 4])
def test_planes_in_one_column_are_plain_trees(directions):
    Z = np.random.default_rng(0).normal(size=(200, 1))
    forest = grow(Z, n_directions=directions)
    scores = forest_scores(forest, np.array([[0.0], [9.0]]))
    assert scores[0] > scores[1] + 0.1


@pytest.mark.parametrize("directions", [1, 2])
def test_planes_find_the_one_varying_feature(directions):
    Z = np.zeros((40, 60))
    Z[:, 7] = np.arange(40)
    forest = grow(Z, n_trees=10, n_directions=directions)
    assert (forest.feature[:, 1] == 7).any(axis=1).all()
    assert np.isfinite(forest.threshold[:, 1]).all()


def test_binary_data_is_split_until_rows_are_equal():
    Z = np.random.default_rng(0).integers(0, 2, size=(64, 5)).astype(float)
    forest = grow(Z, n_trees=6, max_samples=64)
    for t in range(6):
        ends = [walk(forest, t, row)[1] for row in Z]
        for leaf in set(ends):
            together = Z[[e == leaf for e in ends]]
            deepest = forest.path[t, leaf] >= forest.depth
            assert deepest or len(np.unique(together, axis=0)) == 1


def test_same_seed_same_trees_whatever_the_threads():
    Z = np.random.default_rng(0).normal(size=(500, 4))
    one, two = (grow(Z, n_trees=300, n_jobs=j) for j in (1, 2))
    for name in ("feature", "threshold", "path"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    other = grow(Z, seed=1, n_trees=300)
    assert not np.array_equal(one.threshold, other.threshold)


def test_tensors_give_the_same_trees_as_arrays():
    Z = np.random.default_rng(0).normal(size=(200, 4)).astype("f4")
    one, two = grow(Z), grow(torch.from_numpy(Z))
    np.testing.assert_array_equal(one.threshold, two.threshold)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 5))
def test_sampled_rows_are_distinct(n, psi, seed):
    psi = min(n, psi)
    rows = distinct_rows(n, 7, psi, np.random.default_rng(seed))
    assert rows.shape == (7, psi)
    assert rows.min() >= 0
    assert rows.max() < n
    assert all(len(set(row)) == psi for row in rows.tolist())


def test_every_row_is_equally_likely_to_be_sampled():
    rows = distinct_rows(40, 4_000, 8, np.random.default_rng(0))
    assert chisquare(np.bincount(rows.ravel(), minlength=40)).pvalue > 0.001


@pytest.mark.parametrize("scale", [0.5, 3.7, 1e-3, 1e5])
def test_positive_affine_rescaling_leaves_scores_unchanged(scale):
    Z = np.random.default_rng(0).normal(size=(400, 5))
    shift = np.array([0.0, 1.0, -3.0, 10.0, 0.5])
    scaled = Z * scale + shift * scale
    a, b = forest_scores(grow(Z), Z), forest_scores(grow(scaled), scaled)
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_float32_data_gives_float32_thresholds_below_the_maximum():
    Z = np.array([[1.0], [np.nextafter(np.float32(1), np.float32(2))]], "f4")
    forest = grow(Z, n_trees=50, max_samples=2)
    assert forest.threshold.dtype == np.float32
    assert (forest.threshold[:, 1] == 1.0).all()  # the two rows part
