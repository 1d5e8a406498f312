"""LP-PUL: paths in a neighbour graph find negatives, then labels spread along edges.

Carnevali, Geraldeli Rossi, Milios and de Andrade Lopes, "A graph-based approach for
positive and unlabeled learning", Information Sciences 2021. Spreading: Zhou et al.,
"Learning with Local and Global Consistency" (LLGC), 2003.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components, dijkstra

from denspu._parameters import About, Number, OneOf, Whole, setting
from denspu._random import Randomness
from denspu._typing import BoolArray, FloatArray, IntArray
from denspu._validation import PUInput
from denspu.detectors.neighbours import Metric, Neighbours
from denspu.methods._classical import EmbeddingPU
from denspu.methods._evidence import POSITIVE

SOURCES = 64
"""Positives from which paths are sought at once: memory is this many rows long."""

MOST_SOURCES = 500
"""Positives from which paths are sought in all; of more, so many are drawn."""

LEAST_SIMILARITY = 1e-3
"""Edges are at least this similar, so that none is infinitely long."""

NO_PATH = 2.0
"""A pair without a path counts as this many times the longest path there is."""

MOST_NEGATIVES = 0.5
"""Share of U that may be taken as reliable negatives."""


class LabelPropagation(EmbeddingPU):
    """Far rows of a neighbour graph are negative; labels spread along edges.

    Take the rows farthest from P along the graph as negatives, and spread labels.

    A new row is answered by its nearest rows in the graph: the mean of their values,
    weighted by similarity.

    Attributes
    ----------
    negative_index_ : array
        Numbers of the reliable negatives.
    distance_ : array
        Mean length of the paths from P, or from those of P that were drawn; infinite
        for rows that no positive reaches.
    values_ : array
        What spreading left at every row, above 0 for positive.
    n_iter_ : int
    """

    about = About(key="label_propagation", paper="Carnevali et al. 2021, LP-PUL")

    n_neighbors: int = setting(7, Whole(1), doc="Neighbours a row is joined to.")
    metric: Metric = setting(
        "cosine",
        OneOf("cosine", "euclidean"),
        doc="Rows are joined by their cosine, or by a Gaussian of their distance.",
    )
    negative_ratio: float = setting(
        1.0, POSITIVE, doc="Reliable negatives for each row of P, up to half of U."
    )
    alpha: float = setting(
        0.9,
        Number(0, 1, "neither"),
        doc="Share of a row's value from its neighbours; known rows may be outvoted.",
    )
    max_iter: int = setting(1000, Whole(1))
    tol: float = setting(
        1e-4,
        POSITIVE,
        doc="Rounds end when values change less, relative to the largest.",
    )

    def _learn(self, Z: FloatArray, data: PUInput, randomness: Randomness) -> None:
        self.centre_ = Z.mean(axis=0)
        self.reference_ = Z - self.centre_
        self.n_neighbors_ = min(self.n_neighbors, len(Z) - 1)
        distance, index = self._search(self.reference_, exclude_self=True)
        self.width_ = float(np.median(distance[:, -1])) or 1.0
        graph = symmetric_graph(self._similar(distance), index)
        positive = np.flatnonzero(data.positive)
        sources, rng = positive, randomness.numpy("sources")
        if len(positive) > MOST_SOURCES:
            sources = np.sort(rng.choice(positive, MOST_SOURCES, replace=False))
        self.distance_ = path_distance(graph, positive, sources)
        free = data.unlabeled & ~data.known_negative
        wanted = round(self.negative_ratio * len(positive))
        wanted = max(1, min(wanted, int(MOST_NEGATIVES * free.sum())))
        chosen = farthest(self.distance_, free, wanted)
        known = np.flatnonzero(data.known_negative)
        self.negative_index_ = np.union1d(chosen, known)
        start = data.positive.astype(np.float64)
        start[self.negative_index_] = -1.0
        self.values_, self.n_iter_ = llgc(
            graph, start, self.alpha, self.tol, self.max_iter
        )

    def _search(
        self, Z: FloatArray, exclude_self: bool = False
    ) -> tuple[FloatArray, IntArray]:
        """Return distances and numbers of the nearest rows of the graph."""
        k = self.n_neighbors_
        distance, index = np.empty((len(Z), k)), np.empty((len(Z), k), dtype=np.int64)
        reference = Neighbours(self.reference_, self.metric, self.device_)
        for found in reference.search(Z, k, exclude_self=exclude_self):
            distance[found.rows], index[found.rows] = found.distance, found.index
        return distance, index

    def _similar(self, distance: FloatArray) -> FloatArray:
        if self.metric == "cosine":
            similarity = 1 - distance
        else:
            similarity = np.exp(-0.5 * (distance / self.width_) ** 2)
        return np.asarray(np.maximum(similarity, LEAST_SIMILARITY))

    def _score(self, Z: FloatArray) -> FloatArray:
        distance, index = self._search(Z - self.centre_)
        weight = self._similar(distance)
        found = (weight * self.values_[index]).sum(axis=1)
        return np.asarray(found / weight.sum(axis=1))


def symmetric_graph(similarity: FloatArray, index: IntArray) -> csr_array:
    """Return a sparse graph that joins two rows if either is near the other."""
    n, k = index.shape
    rows = np.repeat(np.arange(n), k)
    one_way = csr_array((similarity.ravel(), (rows, index.ravel())), shape=(n, n))
    return csr_array(one_way.maximum(one_way.T))


def path_distance(
    graph: csr_array, positive: IntArray, sources: IntArray | None = None
) -> FloatArray:
    """Return each row's mean shortest path from the sources; edges are 1/similarity.

    A row that no positive reaches is infinitely far. One that some sources reach counts
    the others as twice the longest path, or a single island would make all rows equal.
    So does one on an island of positives that are not among the sources.
    """
    sources = positive if sources is None else sources
    _, island = connected_components(graph, directed=False)
    lengths = graph.copy()
    lengths.data = 1 / lengths.data
    total, missing = np.zeros(graph.shape[0]), np.zeros(graph.shape[0])
    longest = 0.0
    for start in range(0, len(sources), SOURCES):
        found = dijkstra(lengths, directed=False, indices=sources[start:][:SOURCES])
        reached = np.isfinite(found)
        longest = max(longest, float(found[reached].max()))
        total += np.where(reached, found, 0.0).sum(axis=0)
        missing += (~reached).sum(axis=0)
    mean = (total + missing * NO_PATH * longest) / len(sources)
    return np.asarray(np.where(np.isin(island, island[positive]), mean, np.inf))


def farthest(distance: FloatArray, free: BoolArray, count: int) -> IntArray:
    """Return the free rows with the largest distance."""
    rows = np.flatnonzero(free)
    order = np.argsort(-distance[rows], kind="stable")
    return np.sort(rows[order[:count]])


def llgc(
    graph: csr_array, start: FloatArray, alpha: float, tol: float, max_iter: int
) -> tuple[FloatArray, int]:
    """Return the limit of F ← αSF + (1-α)Y with S = D^-½ W D^-½, and the rounds."""
    degree = np.asarray(graph.sum(axis=1)).ravel()
    scale = diags_array(1 / np.sqrt(np.maximum(degree, 1e-12)))
    S = scale @ graph @ scale
    values = start
    for count in range(max_iter):
        new = alpha * (S @ values) + (1 - alpha) * start
        change, values = np.abs(new - values).max(), new
        if change <= tol * np.abs(values).max():
            return values, count + 1
    return values, max_iter
