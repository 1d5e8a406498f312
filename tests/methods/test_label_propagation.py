"""Label propagation: paths, islands, both ways of spreading, rows never seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from denspu.methods.label_propagation import (
    LabelPropagation,
    farthest,
    llgc,
    path_distance,
)


def chain(similarities, n):
    """Return rows in a line, each joined to the next."""
    i = np.arange(len(similarities))
    one_way = csr_array((np.asarray(similarities, float), (i, i + 1)), shape=(n, n))
    return csr_array(one_way + one_way.T)


def test_paths_by_hand():
    graph = chain([1.0, 0.5, 0.25], 4)  # lengths 1, 2, 4
    np.testing.assert_allclose(path_distance(graph, np.array([0])), [0, 1, 3, 7])
    both = path_distance(graph, np.array([0, 3]))
    np.testing.assert_allclose(both, [3.5, 3.5, 3.5, 3.5])


def test_a_row_without_a_path_is_infinitely_far():
    graph = chain([1.0, 1.0], 5)  # rows 3 and 4 are alone
    distance = path_distance(graph, np.array([0]))
    assert distance.tolist() == [0, 1, 2, np.inf, np.inf]
    free = np.array([False, True, True, True, True])
    assert farthest(distance, free, 2).tolist() == [3, 4]
    assert farthest(distance, free, 3).tolist() == [2, 3, 4]


def test_a_positive_on_an_island_does_not_make_all_rows_equal():
    graph = chain([1.0, 1.0], 4)  # row 3, a positive, is alone
    distance = path_distance(graph, np.array([0, 3]))
    np.testing.assert_allclose(distance, [2, 2.5, 3, 2])


def test_an_island_of_positives_that_were_not_drawn_is_not_negative():
    """Rows 4 to 6 hold a positive that is no source, 7 and 8 none."""
    graph = chain([1, 1, 1, 0, 1, 1, 0, 1], 9)
    graph.eliminate_zeros()
    distance = path_distance(graph, np.array([0, 4]), np.array([0]))
    assert distance.tolist() == [0, 1, 2, 3, 6, 6, 6, np.inf, np.inf]


def test_the_number_of_sources_is_limited_and_seeded(data, monkeypatch):
    from denspu.methods import label_propagation

    started = []
    original = label_propagation.dijkstra

    def watched(lengths, *, indices, **settings):
        started.append(list(indices))
        return original(lengths, indices=indices, **settings)

    monkeypatch.setattr(label_propagation, "dijkstra", watched)
    monkeypatch.setattr(label_propagation, "MOST_SOURCES", 10)
    for seed in (1, 1, 2):
        model = LabelPropagation(random_state=seed).fit(data.X, data.y)
        assert np.mean(data.truth[model.negative_index_] == 0) > 0.95
    assert [len(s) for s in started] == [10, 10, 10]
    assert data.y[started[0]].all()
    assert started[0] == started[1] != started[2]


def test_llgc_agrees_with_its_closed_form():
    rng = np.random.default_rng(0)
    W = np.triu(rng.random((8, 8)), 1)
    W = W + W.T
    start = np.array([1.0, -1, 0, 0, 0, 0, 0, 0])
    D = np.diag(1 / np.sqrt(W.sum(axis=1)))
    closed = 0.3 * np.linalg.solve(np.eye(8) - 0.7 * D @ W @ D, start)
    found, _ = llgc(csr_array(W), start, 0.7, 1e-12, 10_000)
    np.testing.assert_allclose(found, closed, atol=1e-9)


@pytest.fixture
def data(make_blobs):
    return make_blobs(seed=10, n_labeled=40, n_hidden=60, n_negative=100, far=3.0)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_rows_never_seen_are_answered(data, make_blobs, metric):
    model = LabelPropagation(metric=metric).fit(data.X, data.y)
    new = make_blobs(seed=11, n_labeled=40, n_hidden=60, n_negative=100, far=3.0)
    assert np.mean(model.predict(new.X) == new.truth) > 0.85


def test_negatives_are_pure_and_as_many_as_asked(data):
    for ratio, count in ((0.5, 20), (1.0, 40), (10.0, 80)):
        model = LabelPropagation(negative_ratio=ratio).fit(data.X, data.y)
        assert len(model.negative_index_) == count
        assert np.mean(data.truth[model.negative_index_] == 0) > 0.95
    known = np.arange(len(data.y)) >= len(data.y) - 5
    model.fit(data.X, data.y, known_negative=known)
    assert known[model.negative_index_].sum() == 5


def test_settings_reach_the_fit(data):
    plain = LabelPropagation().fit(data.X, data.y)
    for other in ({"alpha": 0.2}, {"n_neighbors": 3}, {"max_iter": 1}):
        changed = LabelPropagation(**other).fit(data.X, data.y)
        assert not np.allclose(plain.values_, changed.values_)
    loose = LabelPropagation(tol=0.1).fit(data.X, data.y)
    assert loose.n_iter_ < plain.n_iter_
