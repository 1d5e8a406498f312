"""The one neighbour routine against brute force in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from denspu.detectors.neighbours import BLOCK_CELLS, Neighbours
from denspu.exceptions import InvalidParameterError


def brute(Q, R, metric, exclude_self=False):
    Q, R = Q.astype("f8"), R.astype("f8")
    if metric == "cosine":
        Q, R = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (Q, R))
        distance = 1 - Q @ R.T
    else:
        distance = np.sqrt(((Q[:, None] - R[None]) ** 2).sum(-1))
    if exclude_self:
        np.fill_diagonal(distance, np.inf)
    return distance


def search(Q, R, k, metric="euclidean", **kw):
    found = list(Neighbours(R, metric).search(Q, k, **kw))
    return (np.concatenate([getattr(f, name) for f in found])
            for name in ("distance", "index"))  # fmt: skip


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("exclude_self", [False, True])
def test_neighbours_equal_brute_force(metric, dtype, exclude_self):
    Z = np.random.default_rng(0).normal(size=(120, 7)).astype(dtype)
    distance, index = search(Z, Z, 9, metric, exclude_self=exclude_self)
    exact = brute(Z, Z, metric, exclude_self)
    order = np.argsort(exact, axis=1)[:, :9]
    assert all(set(a) == set(b) for a, b in zip(index, order, strict=True))
    nearest = np.take_along_axis(exact, order, 1)
    np.testing.assert_allclose(distance, nearest, atol=2e-3 if dtype == "f4" else 1e-6)


@pytest.mark.parametrize("apart", [1e3])
def test_far_from_the_origin_and_from_each_other(apart):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 6)) + 1_000 + apart * rng.integers(0, 2, size=(300, 1))
    Z = Z.astype("f4")
    distance, index = search(Z, Z, 5, exclude_self=True)
    exact = brute(Z, Z, "euclidean", exclude_self=True)
    found = np.take_along_axis(exact, index, 1)
    np.testing.assert_allclose(found, np.sort(exact, axis=1)[:, :5], rtol=1e-3)
    np.testing.assert_allclose(distance, found, rtol=1e-3)


def test_near_ties_are_settled_in_double_precision():
    """Two candidates whose similarities are equal in single precision."""
    query = np.full((1, 2), 300.0, "f4")
    offset = np.array([[1.0000002, 1.0], [1.0, 1.0], [3.0, 0.0], [0.0, 4.0]])
    reference = offset.astype("f4")
    _, index = search(query, reference, 1)
    assert index[0, 0] == np.argmin(brute(query, reference, "euclidean")[0])
    close = np.array([[100.0, 100.0], [100.001, 100.0], [-100.0, 3.0]])
    distance, _ = search(close, close, 2)
    assert distance[0].tolist() == pytest.approx([0.0, 0.001], rel=1e-4)


@pytest.mark.parametrize("cells", [7])
def test_the_size_of_a_block_does_not_matter(cells, monkeypatch):
    Z = np.random.default_rng(3).normal(size=(25, 3))
    whole = [a.tolist() for a in search(Z, Z, 5)]
    monkeypatch.setitem(BLOCK_CELLS, "cpu", cells * 25)
    small = [a.tolist() for a in search(Z, Z, 5)]
    np.testing.assert_allclose(small[0], whole[0], atol=1e-7)
    assert small[1] == whole[1]


def test_hard_rows():
    Z = np.zeros((4, 2))
    with pytest.raises(InvalidParameterError, match=r"k=4 .* 3 reference"):
        list(Neighbours(Z).search(Z, 4, exclude_self=True))
    Z = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # a zero row has no direction
    distance, _ = search(Z, Z, 2, "cosine")
    assert np.isfinite(distance).all()
