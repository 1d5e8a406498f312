"""The one nearest-neighbour search, by chunked matrix products, and its detectors.

Similarities of a block of queries with all reference rows are one matrix product, on
the CPU or a GPU; the k largest are kept and the block is dropped, so memory does not
grow with the queries. Single precision orders almost all neighbours right; where the
k-th and the next are closer than rounding, the candidates are compared again in double
precision.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor

from denspu._machine import in_threads, n_threads, resolve_device
from denspu._parameters import About, Number, OneOf, Whole, check_parameters, setting
from denspu._random import Randomness
from denspu._typing import FloatArray, IntArray, RandomState
from denspu._validation import validate_embedding, validate_labels
from denspu.base import Detector, forget
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError

Metric = Literal["euclidean", "cosine"]

BLOCK_CELLS = {"cpu": 1 << 25, "cuda": 1 << 29}
"""(queries x reference rows) held at once."""

EXACT_CELLS = 1 << 22
"""(queries x k x features) held at once for exact distances."""

SAFE = 1e4
"""A squared distance this many times its rounding is as good as exact."""

SPARE = 16
"""Candidates on each side of the k-th that are compared again where in doubt."""


@dataclass(frozen=True, eq=False)
class Found:
    """The neighbours of one block of queries, nearest first."""

    rows: slice
    """Which queries."""
    distance: FloatArray
    """(queries, k): euclidean, or 1 - cosine."""
    index: IntArray
    """(queries, k): row numbers in the reference."""


class Neighbours:
    """Reference rows ready to be searched; for ``"cosine"`` divided by their length."""

    def __init__(
        self, reference: Any, metric: Metric = "euclidean", device: Any = "cpu"
    ) -> None:
        self.device = torch.device(device)
        self.metric = metric
        rows = self._to_tensor(reference)
        self.centre = rows.new_zeros(())
        if metric == "euclidean":  # far from the origin products lose digits
            mean = rows.mean(0)
            far = mean.square().sum() > rows.var(0, correction=0).sum()
            self.centre = mean if far else torch.zeros_like(mean)
        self._hold(rows)

    def _hold(self, rows: Tensor) -> None:
        """Keep the rows with -|r|²/2 as one more column (0 for cosine)."""
        rows = self._prepare(rows)
        square = (rows**2).sum(1, keepdim=True)
        self.longest = square.max().sqrt()
        last = torch.zeros_like(square) if self.metric == "cosine" else -square / 2
        self.table = torch.cat([rows, last], dim=1)
        self._buffer: Tensor | None = None

    @property
    def rows(self) -> Tensor:
        """Return the reference rows as they are compared."""
        return self.table[:, :-1]

    def aligned(self, reference: Any) -> Self:
        """Return other reference rows whose similarities compare with these."""
        other = copy.copy(self)
        other._hold(self._to_tensor(reference).to(self.table.dtype))
        return other

    def __len__(self) -> int:
        return len(self.table)

    def _to_tensor(self, Z: Any) -> Tensor:
        if not isinstance(Z, Tensor):
            Z = np.ascontiguousarray(Z)
            Z = torch.from_numpy(Z if Z.flags.writeable else Z.copy())
        return Z.to(self.device)

    def _prepare(self, rows: Tensor) -> Tensor:
        """Centre (less rounding) or put on the sphere."""
        if self.metric == "euclidean":
            return rows - self.centre
        length = rows.norm(dim=1, keepdim=True)
        return rows / length.clamp_min(torch.finfo(rows.dtype).tiny)

    def blocks(
        self, queries: Any, cells: int | None = None
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of prepared queries that fit the memory bound."""
        cells = cells or BLOCK_CELLS.get(self.device.type, BLOCK_CELLS["cpu"])
        step = max(1, cells // max(1, len(self)))
        for start in range(0, len(queries), step):
            rows = slice(start, min(start + step, len(queries)))
            block = self._to_tensor(queries[rows]).to(self.table.dtype)
            yield rows, self._prepare(block)

    def similarity(self, block: Tensor) -> Tensor:
        """Return q·r - |r|²/2 (euclidean) or q·r (cosine): larger is nearer.

        The next call writes over the answer: fresh memory for every block would cost
        more than the product.
        """
        one = torch.ones_like(block[:, :1])
        size = len(block) * len(self.table)
        if self._buffer is None or len(self._buffer) < size:
            self._buffer = block.new_empty(size)
        out = self._buffer[:size].view(len(block), len(self.table))
        return torch.matmul(torch.cat([block, one], dim=1), self.table.T, out=out)

    def search(
        self, queries: Any, k: int, *, exclude_self: bool = False
    ) -> Iterator[Found]:
        """Yield the ``k`` nearest reference rows of each query, block by block.

        With ``exclude_self`` the queries are the reference rows themselves, and each is
        left out of its own neighbours.
        """
        available = len(self) - exclude_self
        if not 1 <= k <= available:
            raise InvalidParameterError(
                f"k={k} neighbours were asked for and there are {available} reference "
                "rows to choose from."
            )
        for rows, block in self.blocks(queries):
            similar = self.similarity(block)
            if exclude_self:
                own = torch.arange(rows.start, rows.stop, device=self.device)
                similar.scatter_(1, own[:, None], -torch.inf)
            value, index = self._settle(block, similar, k, available)
            distance = self._distance(block, value.double(), index)
            yield Found(rows, distance.cpu().numpy(), index.cpu().numpy())

    def _settle(
        self, block: Tensor, similar: Tensor, k: int, available: int
    ) -> tuple[Tensor, Tensor]:
        """Return the k largest similarities and their rows, rounding undone."""
        top = similar.topk(min(k + SPARE, available), dim=1)
        value, index = top.values[:, :k], top.indices[:, :k]
        if value.dtype == torch.float64 or top.values.shape[1] == k:
            return value, index
        rounding, first = self._rounding(block), max(0, k - SPARE)
        close = value[:, -1] - top.values[:, k] <= rounding
        wide = value[:, -1] - top.values[:, -1] <= rounding
        wide |= (value[:, first] - top.values[:, k] <= rounding) & (first > 0)
        value, index = value.clone(), index.clone()
        near = (close & ~wide).nonzero().flatten()
        if len(near):  # only the candidates around the k-th are in doubt
            candidates = top.indices[near][:, first:]
            best = self._exact(block[near], candidates).topk(k - first, dim=1)
            index[near, first:] = candidates.gather(1, best.indices)
            value[near, first:] = best.values.to(value.dtype)
        far = (close & wide).nonzero().flatten()
        if len(far):  # rounding hides the order: compare with every row again
            best = self._in_double(block[far], similar[far]).topk(k, dim=1)
            value[far], index[far] = best.values.to(value.dtype), best.indices
        return value, index

    def _in_double(self, block: Tensor, similar: Tensor) -> Tensor:
        """Return similarities with all rows in double precision."""
        exact = torch.cat([block, torch.ones_like(block[:, :1])], 1).double()
        exact = exact @ self.table.double().T
        if self.metric == "euclidean":  # the last column was rounded
            exact -= self.table[:, -1].double()
            exact -= self.rows.double().square().sum(1) / 2
        return exact.masked_fill_(similar == -torch.inf, -torch.inf)

    def _rounding(self, block: Tensor) -> Tensor:
        """Return a bound on the rounding of each query's similarities."""
        scale = block.norm(dim=1) * self.longest + self.longest**2
        return scale * torch.finfo(block.dtype).eps * block.shape[1] ** 0.5

    def _exact(self, block: Tensor, index: Tensor) -> Tensor:
        """Return similarities with chosen rows in double precision."""
        out = torch.empty(index.shape, dtype=torch.float64, device=index.device)
        step = max(1, EXACT_CELLS // (index.shape[1] * block.shape[1]))
        for start in range(0, len(block), step):
            part = slice(start, start + step)
            rows = self.rows[index[part]].double()  # (queries, candidates, d)
            out[part] = torch.einsum("qcd,qd->qc", rows, block[part].double())
            if self.metric == "euclidean":
                out[part] -= rows.square().sum(-1) / 2
        return out

    def _distance(self, block: Tensor, value: Tensor, index: Tensor) -> Tensor:
        """Return distances; those that rounding would spoil come from differences."""
        length = (block.double() ** 2).sum(1, keepdim=True)
        # On the sphere 1 - cos is half the squared distance.
        square = (2 if self.metric == "cosine" else length) - 2 * value
        doubtful = square < SAFE * self._rounding(block)[:, None]
        for part in doubtful.nonzero().split(EXACT_CELLS // block.shape[1] + 1):
            query, place = part[:, 0], part[:, 1]
            difference = self.rows[index[query, place]].double() - block[query]
            square[query, place] = difference.square().sum(1)
        square = square.clamp_min(0)
        return square / 2 if self.metric == "cosine" else square.sqrt()


class KNNDistance(Detector):
    """Distance to the nearest rows."""

    about = About(
        key="knn", paper="Ramaswamy et al. 2000, Mining outliers from large data sets"
    )

    n_neighbors: int = setting(
        10, Whole(1), doc="Neighbours (all other rows, where there are fewer)."
    )
    metric: Metric = setting("euclidean", OneOf("euclidean", "cosine"))
    statistic: Literal["mean", "kth"] = setting(
        "mean",
        OneOf("mean", "kth"),
        doc="The mean distance of the neighbours, or that of the farthest.",
    )
    device: str = setting("auto")

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        if len(Z) < 2:
            raise InvalidInputError(
                "KNNDistance compares a row with others, so it needs at least 2 rows. "
                "Got 1 sample."
            )
        self.reference_ = Z
        self.n_neighbors_ = min(self.n_neighbors, len(Z) - 1)

    def _score(self, Z: FloatArray) -> FloatArray:
        return self._distances(Z, exclude_self=False)

    def _scores_by_others(self, Z: FloatArray) -> FloatArray:
        return self._distances(Z, exclude_self=True)

    def _distances(self, Z: FloatArray, exclude_self: bool) -> FloatArray:
        device = resolve_device(self.device)
        neighbours = Neighbours(self.reference_, self.metric, device)
        out = np.empty(len(Z))
        found = neighbours.search(Z, self.n_neighbors_, exclude_self=exclude_self)
        for block in found:
            distance = block.distance
            far = distance[:, -1] if self.statistic == "kth" else distance.mean(1)
            out[block.rows] = -far
        return out


CONCENTRATIONS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
AUTO_ROWS = 2_000
"""Rows used to choose the concentration."""


class SphereDensity(Detector):
    """Kernel density of directions (von Mises-Fisher).

    The log of mean exp(κ cos) over the training rows; rows are divided by their length
    first. Up to the constant of the kernel this is the log density of a von
    Mises-Fisher mixture.
    """

    about = About(
        key="sphere_density",
        paper="Hall et al. 1987, Kernel density estimation with spherical data",
    )

    concentration: float | Literal["auto"] = setting(
        "auto",
        OneOf("auto"),
        Number(0, closed="neither"),
        doc='Sharpness κ; ``"auto"``: that under which training rows are likeliest.',
    )
    device: str = setting("auto")

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        self.reference_ = Z
        self.concentration_ = self.concentration
        if self.concentration == "auto":
            sample = Z[:: max(1, len(Z) // AUTO_ROWS)]
            self.concentration_ = self._likeliest(sample)

    def _likeliest(self, Z: FloatArray) -> float:
        if len(Z) < 2:
            return CONCENTRATIONS[0]
        likelihood = [
            self._log_density(Z, Z, kappa, exclude_self=True).mean()
            + log_kernel_constant(kappa, Z.shape[1])
            for kappa in CONCENTRATIONS
        ]
        return CONCENTRATIONS[int(np.argmax(likelihood))]

    def _score(self, Z: FloatArray) -> FloatArray:
        return self._log_density(Z, self.reference_, float(self.concentration_))

    def _scores_by_others(self, Z: FloatArray) -> FloatArray:
        if len(Z) < 2:
            return self._score(Z)
        return self._log_density(Z, Z, float(self.concentration_), exclude_self=True)

    def _log_density(
        self,
        Z: FloatArray,
        reference: FloatArray,
        kappa: float,
        exclude_self: bool = False,
    ) -> FloatArray:
        neighbours = Neighbours(reference, "cosine", resolve_device(self.device))
        out = np.empty(len(Z))
        count = len(reference) - exclude_self
        for rows, block in neighbours.blocks(Z):
            cosine = neighbours.similarity(block)
            if exclude_self:
                own = torch.arange(rows.start, rows.stop, device=cosine.device)
                cosine.scatter_(1, own[:, None], -torch.inf)
            total = torch.logsumexp(kappa * cosine.double(), dim=1)
            out[rows] = total.cpu().numpy() - np.log(count)
        return out


def log_kernel_constant(kappa: float, d: int) -> float:
    """Return log of the von Mises-Fisher constant κ^(d/2-1) / ((2π)^(d/2) I(κ)).

    The Bessel function of large order is taken from its uniform expansion.
    """
    order = d / 2 - 1
    root = np.sqrt(order**2 + kappa**2)
    log_bessel = root + order * np.log(kappa / (order + root)) - 0.5 * np.log(
        2 * np.pi * root
    )  # fmt: skip
    return float(order * np.log(kappa) - d / 2 * np.log(2 * np.pi) - log_bessel)


# --- positives among the nearest ------------------------------------------------------

COUNT_CELLS = {"cpu": 1 << 23}
"""(queries x reference rows) held at once while counting: what caches hold."""

EXPECTED_POSITIVES = 5
"""``around="rows"`` needs about this many positives among its neighbours by chance."""


class DensityRatio(Detector):
    """Share of labelled positives among the nearest of P and U.

    Under SCAR the share is near the label frequency inside the positive region and
    near zero outside. The surroundings of a row are either its nearest rows of P ∪ U,
    or, where positives are rare, the ball that holds its nearest few positives. Above
    ``max_unlabeled`` rows a random sample stands for U, and each of its rows counts
    for as many as it represents, so that the cost of scoring a row stays bounded.
    """

    about = About(key="density_ratio")
    needs_unlabeled: ClassVar[bool] = True

    around: Literal["auto", "rows", "positives"] = setting(
        "auto",
        OneOf("auto", "rows", "positives"),
        doc='``"rows"``: the share of P among the ``n_neighbors`` nearest of P ∪ U.\n'
        '``"positives"``: ``n_positives`` against the rows of U that are nearer\n'
        'than the ``n_positives``-th nearest positive. ``"auto"``: ``"rows"`` where\n'
        "these would hold 5 positives by chance.",
    )
    n_neighbors: int | Literal["auto"] = setting(
        "auto",
        OneOf("auto"),
        Whole(1),
        doc='``"auto"`` is 1 % of the reference rows, from 10 to 500.',
    )
    n_positives: int = setting(10, Whole(1), doc="At most all other positives.")
    metric: Metric = setting("euclidean", OneOf("cosine", "euclidean"))
    max_unlabeled: int | None = setting(
        20_000, OneOf(None), Whole(1), doc="Unlabelled rows kept as reference."
    )
    random_state: RandomState = setting(None, doc="Draws the sample of U.")
    device: str = setting("auto")

    def fit(self, Z: Any, y: Any = None) -> Self:
        """Remember P and U; ``y`` is 1 for labelled positives and 0 for others."""
        check_parameters(self)
        if y is None:
            raise LabelError(
                "DensityRatio compares positives with unlabelled rows and requires y "
                "to be passed, but the target y is None: 1 for labelled positives, 0 "
                "for unlabelled rows."
            )
        Z = validate_embedding(self, Z, reset=True)
        positive = validate_labels(y, len(Z))
        forget(self, "training_scores_")
        unlabeled = np.flatnonzero(~positive)
        n_unlabeled = len(unlabeled)
        if self.max_unlabeled is not None and n_unlabeled > self.max_unlabeled:
            rng = Randomness(self.random_state).numpy("reference")
            unlabeled = rng.choice(unlabeled, self.max_unlabeled, replace=False)
            unlabeled.sort()
        self.positives_ = Z[positive]
        self.unlabeled_ = Z[unlabeled]
        self.represents_ = n_unlabeled / len(unlabeled)
        n_reference = len(self.positives_) + len(unlabeled)
        wanted = self.n_neighbors
        if wanted == "auto":
            wanted = int(np.clip(n_reference // 100, 10, 500))
        self.n_neighbors_ = min(wanted, n_reference - 1)
        self.n_positives_ = min(self.n_positives, len(self.positives_) - 1)
        by_chance = self.n_neighbors_ * len(self.positives_) / n_reference
        self.around_ = self.around
        if self.around == "auto":
            enough = by_chance >= EXPECTED_POSITIVES and self.represents_ == 1
            self.around_ = "rows" if enough else "positives"
        self.threshold_ = self._initial_threshold(Z[positive])
        return self

    def _fit(self, Z: FloatArray, randomness: Randomness) -> None:
        raise InvalidInputError("DensityRatio is fitted with labels.")

    def _score(self, Z: FloatArray) -> FloatArray:
        return self._share(Z, own=0)

    def _scores_by_others(self, Z: FloatArray) -> FloatArray:
        """Score the labelled positives without counting each for itself."""
        return self._share(Z, own=1)

    def _share(self, Z: FloatArray, own: int) -> FloatArray:
        share = self._among_rows if self.around_ == "rows" else self._around_positives
        return share(Z, own, resolve_device(self.device))

    def _among_rows(self, Z: FloatArray, own: int, device: torch.device) -> FloatArray:
        """Return #P / (#P + #U) among the nearest, U weighted by what it stands for."""
        k, n_positive = self.n_neighbors_, len(self.positives_)
        reference = np.concatenate([self.positives_, self.unlabeled_])
        out = np.empty(len(Z))
        neighbours = Neighbours(reference, self.metric, device)
        for block in neighbours.search(Z, k, exclude_self=bool(own)):
            labelled = (block.index < n_positive).sum(1)
            out[block.rows] = labelled / (labelled + (k - labelled) * self.represents_)
        return out

    def _around_positives(
        self, Z: FloatArray, own: int, device: torch.device
    ) -> FloatArray:
        """Return j / (j + #U) within the distance of the j-th nearest positive."""
        j = self.n_positives_
        unlabeled = Neighbours(self.unlabeled_, self.metric, device)
        positives = unlabeled.aligned(self.positives_)
        out = np.empty(len(Z))
        for rows, block in unlabeled.blocks(Z, cells=COUNT_CELLS.get(device.type)):
            near = positives.similarity(block).topk(j + own, dim=1).values
            square = (block**2).sum(1)
            itself = square if self.metric == "cosine" else square / 2
            itself = itself * (1 - 4 * torch.finfo(block.dtype).eps)
            inside, copies = count_at_least(
                unlabeled.similarity(block), near[:, -1].contiguous(), itself
            )
            # A sampled row would count for many others, one not sampled for none: so
            # no row counts for itself. Of its copies in U one is left out.
            inside -= (copies > 0) & (inside > 0)
            out[rows] = j / (j + inside * self.represents_)
        return out


ROWS_AT_ONCE = 32


def count_at_least(
    values: Tensor, low: Tensor, high: Tensor
) -> tuple[FloatArray, FloatArray]:
    """Return how many entries of each row are at least ``low``, and at least ``high``.

    On a CPU with numba this is one pass over the values in compiled code, several times
    faster than comparing and summing tensors.
    """
    if values.device.type != "cpu" or importlib.util.find_spec("numba") is None:
        reached = ((values >= bound[:, None]).sum(1) for bound in (low, high))
        first, second = (count.double().cpu().numpy() for count in reached)
        return first, second
    table, least, most = values.numpy(), low.numpy(), high.numpy()
    out = np.empty((2, len(table)))

    def work(start: int) -> None:
        rows = slice(start, start + ROWS_AT_ONCE)
        _compiled()(table[rows], least[rows], most[rows], out[:, rows])

    in_threads(work, range(0, len(table), ROWS_AT_ONCE), n_threads(None))
    return out[0], out[1]


@cache
def _compiled() -> Any:
    import numba

    @numba.njit(nogil=True, error_model="numpy")
    def count(values: Any, low: Any, high: Any, out: Any) -> None:
        for i in range(len(low)):
            row, least, most = values[i], low[i], high[i]
            above_low = above_high = 0
            for j in range(len(row)):
                above_low += row[j] >= least
                above_high += row[j] >= most
            out[0, i], out[1, i] = above_low, above_high

    return count
