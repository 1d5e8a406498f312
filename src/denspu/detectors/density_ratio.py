"""Where labelled positives are dense relative to everything: no prior, no training."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor

from denspu._machine import in_threads, n_threads, resolve_device
from denspu._parameters import About, OneOf, Whole, check_parameters, setting
from denspu._random import Randomness
from denspu._typing import FloatArray, RandomState
from denspu._validation import validate_embedding, validate_labels
from denspu.base import Detector, forget
from denspu.detectors.neighbours import Metric, Neighbours
from denspu.exceptions import InvalidInputError, LabelError

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
