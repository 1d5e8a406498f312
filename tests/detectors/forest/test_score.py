"""Scoring: engines agree, chunks do not matter, memory maps are read as they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from denspu.benchmark import peak_memory
from denspu.detectors.forest import forest_scores
from denspu.detectors.forest_growth import build_forest
from denspu.exceptions import MissingDependencyError


@pytest.fixture
def forest():
    Z = np.random.default_rng(0).normal(size=(300, 4)).astype("f4")
    return build_forest(Z, n_trees=30, max_samples=64, rng=np.random.default_rng(0))


@pytest.fixture
def rows():
    return np.random.default_rng(1).normal(size=(5_000, 4)).astype("f4")


def test_engines_agree(forest, rows):
    numba = forest_scores(forest, rows, engine="numba")
    for Z in (rows, torch.from_numpy(rows)):
        found = forest_scores(forest, Z, engine="torch")
        np.testing.assert_allclose(found, numba, rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["numba", "torch"])
def test_order_and_batch_do_not_matter(forest, rows, engine):
    whole = forest_scores(forest, rows, engine=engine)
    order = np.random.default_rng(2).permutation(len(rows))
    shuffled = forest_scores(forest, rows[order], engine=engine)
    np.testing.assert_array_equal(shuffled, whole[order])
    alone = [forest_scores(forest, rows[i : i + 1], engine=engine)[0] for i in range(9)]
    np.testing.assert_array_equal(alone, whole[:9])


def test_threads_do_not_matter(forest, rows):
    one, two = (forest_scores(forest, rows, n_jobs=j) for j in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_other_layouts_give_the_same_scores(forest, rows):
    whole = forest_scores(forest, rows)
    np.testing.assert_array_equal(forest_scores(forest, np.asfortranarray(rows)), whole)
    wide = np.repeat(rows, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(forest_scores(forest, wide), whole)
    np.testing.assert_array_equal(forest_scores(forest, rows.astype("f8")), whole)


def test_memory_maps_are_scored_in_bounded_memory(forest, tmp_path):
    rows = np.lib.format.open_memmap(tmp_path / "z.npy", "w+", "f4", (400_000, 4))
    rows[:] = 1.0
    forest_scores(forest, rows[:100])
    found = {}
    with peak_memory(found):
        scores = forest_scores(forest, np.load(tmp_path / "z.npy", mmap_mode="r"))
    assert len(scores) == 400_000
    assert found["peak_mb"] < scores.nbytes / 2**20 + 3


def test_without_numba_the_torch_engine_takes_over(forest, rows, monkeypatch):
    with_numba = forest_scores(forest, rows)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    np.testing.assert_allclose(forest_scores(forest, rows), with_numba, atol=1e-12)
    with pytest.raises(MissingDependencyError, match=r"denspu\[fast\]"):
        forest_scores(forest, rows, engine="numba")
