"""Trees as arrays: grown by their laws, scored alike by every engine."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.ensemble
import torch
from benchmarks._shared import peak_memory
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from denspu.detectors.forest import (
    Forest,
    average_path_length,
    depth_for,
    forest_scores,
    round_down,
)
from denspu.detectors.isolation_forest import build_forest, distinct_rows
from denspu.exceptions import MissingDependencyError

ENGINES = ("numba", "torch")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


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


# --- arrays ---------------------------------------------------------------------------


def test_a_row_goes_right_above_the_threshold_only():
    stump = (
        np.zeros((1, 2, 1), np.uint32),
        None,
        np.array([[np.inf, 0.0]]),
        np.array([[1.0, 2.0]]),
    )
    rows = np.array([[-1.0], [0.0], [np.nextafter(0, 1)], [5.0]])
    expected = -(2.0 ** (-np.array([1.0, 1.0, 2.0, 2.0]) / average_path_length(4)))
    for engine in ENGINES:
        found = forest_scores(Forest(*stump, 4, 1), rows, engine=engine)
        np.testing.assert_allclose(found, expected)
    alone = forest_scores(Forest(*stump, 1, 1), rows)  # a tree of one row says nothing
    assert alone.tolist() == [-0.5] * 4


def test_path_lengths_and_depths_in_closed_form():
    many = [
        2 * (np.log(m - 1) + 0.5772156649015329) - 2 * (m - 1) / m for m in (3, 256)
    ]
    found = average_path_length(np.array([0, 1, 2, 3, 256]))
    np.testing.assert_allclose(found, [0, 0, 1, *many])
    assert [depth_for(n) for n in (1, 2, 3, 255, 256, 257)] == [1, 1, 2, 8, 8, 9]


def test_rounding_down_keeps_every_comparison():
    exact = normal(2_000)
    down = round_down(exact)
    rows = np.concatenate([down, normal(2_000, seed=1).astype("f4")])
    assert (down.astype("f8") <= exact).all()
    for t, d in zip(exact[:200], down[:200], strict=True):
        np.testing.assert_array_equal(rows.astype("f8") > t, rows > d)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_copied_trees_score_like_scikit_learn(engine, dtype):
    X = normal(300, 6).astype(dtype)
    X[:, 5] = X[:, 5].round()  # ties
    theirs = sklearn.ensemble.IsolationForest(
        n_estimators=20, random_state=0, max_features=0.5
    ).fit(X)
    found = forest_scores(Forest.from_sklearn(theirs), X, engine=engine)
    np.testing.assert_allclose(found, theirs.score_samples(X), rtol=0, atol=1e-12)


# --- growing --------------------------------------------------------------------------


@pytest.mark.parametrize("directions", [1, 3])
def test_scores_equal_a_walk_by_hand(directions):
    Z = normal(60, 5)
    forest = grow(Z, n_directions=directions)
    for i in range(5):
        paths = [forest.path[t, walk(forest, t, Z[i])[1]] for t in range(20)]
        expected = -(2.0 ** (-np.mean(paths) / average_path_length(32)))
        for engine in ENGINES:
            found = forest_scores(forest, Z[i : i + 1], engine=engine)
            assert found[0] == pytest.approx(expected, abs=1e-12)


def test_path_is_depth_plus_what_the_leaf_still_hides():
    """Send the training rows down: leaf sizes and levels give the path lengths."""
    Z = normal(16, 3)
    forest = grow(Z, n_trees=5, max_samples=16)
    for t in range(5):
        ends = [walk(forest, t, row) for row in Z]
        for seen, leaf in ends:
            together = sum(other == leaf for _, other in ends)
            level = sum(np.isfinite(forest.threshold[t, n]) for n in seen)
            expected = level + average_path_length(together)
            assert forest.path[t, leaf] == pytest.approx(expected)


def test_features_and_thresholds_are_uniform():
    Z = normal(64, 6)
    Z[:, [1, 4]] = 7.0  # which are never chosen, for they do not vary
    counts = np.bincount(grow(Z, n_trees=3_000, max_samples=8).feature[:, 1, 0])
    assert counts[[1, 4]].tolist() == [0, 0]
    assert chisquare(counts[[0, 2, 3, 5]]).pvalue > 0.001
    forest = grow(np.array([[0.0], [1.0]]), n_trees=4_000, max_samples=2)
    assert kstest(forest.threshold[:, 1], "uniform").pvalue > 0.001


@pytest.mark.parametrize("directions", [1, 3])
def test_what_can_be_split_is_and_nothing_else(directions):
    Z = np.zeros((40, 500))
    Z[:, 123] = np.arange(40)
    forest = grow(Z, n_trees=10, n_directions=directions)
    assert (forest.feature[:, 1] == 123).any(axis=1).all()
    assert np.isfinite(forest.threshold[:, 1]).all()
    forest = grow(np.ones((30, 4)), n_directions=directions)
    assert np.isinf(forest.threshold).all()
    assert forest.path[:, 0] == pytest.approx(float(average_path_length(30)))
    narrow = grow(normal(200, 1), n_directions=directions)
    scores = forest_scores(narrow, np.array([[0.0], [9.0]]))
    assert scores[0] > scores[1] + 0.1


def test_same_seed_same_trees_whatever_the_threads_and_the_form():
    Z = normal(500, 4).astype("f4")
    one = grow(Z, n_trees=300, n_jobs=1)
    for other in (
        grow(Z, n_trees=300, n_jobs=2),
        grow(torch.from_numpy(Z), n_trees=300),
    ):
        for name in ("feature", "threshold", "path"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert not np.array_equal(one.threshold, grow(Z, seed=1, n_trees=300).threshold)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 5))
def test_sampled_rows_are_distinct(n, psi, seed):
    psi = min(n, psi)
    rows = distinct_rows(n, 7, psi, np.random.default_rng(seed))
    assert rows.shape == (7, psi)
    assert 0 <= rows.min() <= rows.max() < n
    assert all(len(set(row)) == psi for row in rows.tolist())


def test_every_row_is_equally_likely_to_be_sampled():
    rows = distinct_rows(40, 10_000, 8, np.random.default_rng(0))
    assert chisquare(np.bincount(rows.ravel(), minlength=40)).pvalue > 0.001


@pytest.mark.parametrize("scale", [3.7])
def test_positive_affine_rescaling_leaves_scores_unchanged(scale):
    Z = normal(400, 5)
    scaled = (Z + np.array([0.0, 1.0, -3.0, 10.0, 0.5])) * scale
    a, b = forest_scores(grow(Z), Z), forest_scores(grow(scaled), scaled)
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_float32_data_gives_float32_thresholds_below_the_maximum():
    Z = np.array([[1.0], [np.nextafter(np.float32(1), np.float32(2))]], "f4")
    forest = grow(Z, n_trees=50, max_samples=2)
    assert forest.threshold.dtype == np.float32
    assert (forest.threshold[:, 1] == 1.0).all()  # the two rows part


# --- scoring --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    return normal(5_000, 4, seed=1).astype("f4")


@pytest.mark.parametrize("directions", [1, 2])
def test_engines_order_batches_threads_and_layouts_do_not_matter(rows, directions):
    forest = grow(normal(300, 4).astype("f4"), n_trees=30, n_directions=directions)
    order = np.random.default_rng(2).permutation(len(rows))
    for engine in ENGINES:
        whole = forest_scores(forest, rows, engine=engine)
        shuffled = forest_scores(forest, rows[order], engine=engine)
        np.testing.assert_array_equal(shuffled, whole[order])
        alone = [
            forest_scores(forest, rows[i : i + 1], engine=engine) for i in range(9)
        ]
        np.testing.assert_array_equal(np.concatenate(alone), whole[:9])
    of_tensor = forest_scores(forest, torch.from_numpy(rows))
    numba = forest_scores(forest, rows, engine="numba", n_jobs=1)
    np.testing.assert_allclose(of_tensor, numba, rtol=0, atol=1e-12)
    wide = np.repeat(rows, 2, axis=1)[:, ::2]
    for other in (np.asfortranarray(rows), wide, rows.astype("f8")):
        np.testing.assert_array_equal(forest_scores(forest, other, n_jobs=2), numba)


def test_memory_maps_are_scored_in_bounded_memory(tmp_path):
    forest = grow(normal(300, 4).astype("f4"), n_trees=10)
    rows = np.lib.format.open_memmap(tmp_path / "z.npy", "w+", "f4", (400_000, 4))
    rows[:] = 1.0
    forest_scores(forest, rows[:100])
    found = {}
    with peak_memory(found):
        scores = forest_scores(forest, np.load(tmp_path / "z.npy", mmap_mode="r"))
    assert len(scores) == 400_000
    assert found["peak_mb"] < scores.nbytes / 2**20 + 3


def test_without_numba_the_torch_engine_takes_over(rows, monkeypatch):
    forest = grow(normal(300, 4))
    with_numba = forest_scores(forest, rows)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    np.testing.assert_allclose(forest_scores(forest, rows), with_numba, atol=1e-12)
    with pytest.raises(MissingDependencyError, match=r"denspu\[fast\]"):
        forest_scores(forest, rows, engine="numba")
