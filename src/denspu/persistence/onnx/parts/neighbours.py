"""Answers by the nearest reference rows, and by all of them on the sphere."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from denspu.persistence.onnx.parts.basics import Part, constant
from denspu.persistence.onnx.parts.kernels import squared_distances
from denspu.persistence.onnx.parts.rows import Unit

Metric = Literal["euclidean", "cosine"]


class Nearest(nn.Module):
    """Distances and numbers of the nearest reference rows, nearest first."""

    centre: Tensor
    rows: Tensor

    def __init__(self, rows: Any, k: int, metric: Metric = "euclidean") -> None:
        super().__init__()
        held = constant(rows)
        held = Unit()(held) if metric == "cosine" else held
        self.metric, self.k = metric, k
        self.register_buffer("centre", held.mean(0))
        self.register_buffer("rows", held - self.centre)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return two tensors of k columns; cosine distances are 1 - cos."""
        x = x.double()
        x = (Unit()(x) if self.metric == "cosine" else x) - self.centre
        far = squared_distances(x, self.rows)
        index = far.topk(self.k, dim=1, largest=False).indices
        square = (self.rows[index] - x[:, None]).square().sum(-1)
        # On the sphere 1 - cos is half the squared distance.
        return (square / 2 if self.metric == "cosine" else square.sqrt()), index


class NearestDistance(nn.Module):
    """Minus the mean distance of the neighbours, or that of the farthest."""

    def __init__(self, nearest: Nearest, statistic: str) -> None:
        super().__init__()
        self.nearest, self.farthest = nearest, statistic == "kth"

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        far = self.nearest(x)[0]
        return -(far.amax(1) if self.farthest else far.mean(1))


class NearestVotes(nn.Module):
    """Share of the neighbours' values, alike or weighted by 1 / distance."""

    values: Tensor

    def __init__(self, nearest: Nearest, values: Any, weighted: bool) -> None:
        super().__init__()
        self.nearest, self.weighted = nearest, weighted
        self.register_buffer("values", constant(values))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row; copies of a row outvote all others."""
        far, index = self.nearest(x)
        weight = torch.ones_like(far)
        if self.weighted:
            same = (far == 0).double()
            any_same = same.amax(1, keepdim=True)
            safe = torch.where(far == 0, torch.ones_like(far), far)
            weight = torch.where(any_same > 0, same, 1 / safe)
        return (weight * self.values[index]).sum(1) / weight.sum(1)


class GraphValues(Part):
    """Values of the nearest rows of a graph, weighted by similarity."""

    values: Tensor
    width: Tensor
    least: Tensor

    def __init__(
        self, nearest: Nearest, values: Any, width: float, least: float
    ) -> None:
        super().__init__()
        self.nearest = nearest
        self._numbers(width=width, least=least)
        self.register_buffer("values", constant(values))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        far, index = self.nearest(x)
        if self.nearest.metric == "cosine":
            similar = 1 - far
        else:
            similar = torch.exp(-0.5 * (far / self.width) ** 2)
        weight = similar.clamp_min(self.least)
        return (weight * self.values[index]).sum(1) / weight.sum(1)


class LocalOutlierFactor(Part):
    """Minus the local outlier factor of new rows, as scikit-learn counts it."""

    reach: Tensor
    density: Tensor
    least: Tensor

    def __init__(self, nearest: Nearest, reach: Any, density: Any) -> None:
        super().__init__()
        self.nearest = nearest
        self.register_buffer("reach", constant(reach))
        self.register_buffer("density", constant(density))
        self._numbers(least=1e-10)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        far, index = self.nearest(x)
        reached = torch.maximum(far, self.reach[index]).mean(1)
        own = 1 / (reached + self.least)
        return -(self.density[index] / own[:, None]).mean(1)


class SphereDensity(Part):
    """Log of the kernel density on the sphere."""

    rows: Tensor
    kappa: Tensor
    count: Tensor

    def __init__(self, rows: Any, kappa: float) -> None:
        super().__init__()
        self.register_buffer("rows", Unit()(constant(rows)))
        self._numbers(kappa=kappa, count=float(np.log(len(rows))))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        cosine = Unit()(x.double()) @ self.rows.T
        return torch.logsumexp(self.kappa * cosine, dim=1) - self.count


class ShareAmongRows(Part):
    """#P / (#P + #U) among the nearest of both."""

    represents: Tensor

    def __init__(self, nearest: Nearest, n_positive: int, represents: float) -> None:
        super().__init__()
        self.nearest, self.n_positive = nearest, n_positive
        self._numbers(represents=represents)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        index = self.nearest(x)[1]
        labelled = (index < self.n_positive).double().sum(1)
        rest = self.nearest.k - labelled
        return labelled / (labelled + rest * self.represents)


class ShareAroundPositives(Part):
    """j / (j + #U) within the distance of the j-th nearest positive."""

    positives: Tensor
    unlabeled: Tensor
    centre: Tensor
    represents: Tensor
    slack: Tensor

    def __init__(
        self, positives: Any, unlabeled: Any, j: int, represents: float, metric: Metric
    ) -> None:
        super().__init__()
        self.j, self.metric = j, metric
        slack = 4 * torch.finfo(torch.float64).eps
        self._numbers(represents=represents, slack=slack)
        held = constant(positives), constant(unlabeled)
        centre = held[1].mean(0)
        for name, rows in zip(("positives", "unlabeled"), held, strict=True):
            rows = Unit()(rows) if metric == "cosine" else rows - centre
            self.register_buffer(name, rows)
        self.register_buffer("centre", centre)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row; of its own copies in U one is left out."""
        x = x.double()
        x = Unit()(x) if self.metric == "cosine" else x - self.centre
        near = self._similarity(x, self.positives).topk(self.j, dim=1).values
        square = (x * x).sum(1, keepdim=True)
        itself = square if self.metric == "cosine" else square / 2
        similar = self._similarity(x, self.unlabeled)
        inside = (similar >= near[:, -1:]).double().sum(1)
        bound = itself - self.slack * itself
        copies = (similar >= bound).double().sum(1)
        one_less = ((copies > 0) & (inside > 0)).double()
        return self.j / (self.j + (inside - one_less) * self.represents)

    def _similarity(self, x: Tensor, rows: Tensor) -> Tensor:
        product = x @ rows.T
        if self.metric == "cosine":
            return product
        return product - (rows * rows).sum(1) / 2
