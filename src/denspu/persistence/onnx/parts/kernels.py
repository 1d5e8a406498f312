"""Answers by weights, kernels and Gaussian clouds."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from denspu.persistence.onnx.parts.basics import Part, constant


class Linear(Part):
    """Rows times weights plus a number."""

    weights: Tensor
    offset: Tensor

    def __init__(self, weights: Any, offset: float) -> None:
        super().__init__()
        self.register_buffer("weights", constant(np.ravel(weights)))
        self._numbers(offset=offset)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        return x.double() @ self.weights + self.offset


class Kernel(Part):
    """k(x, r) for each reference row r, as scikit-learn defines the kernels.

    ``gamma`` is one number, or one for each reference row.
    """

    centre: Tensor
    rows: Tensor
    gamma: Tensor
    coef0: Tensor

    def __init__(
        self,
        rows: Any,
        name: str,
        gamma: Any = 1.0,
        degree: int = 3,
        coef0: float = 0,
    ) -> None:
        super().__init__()
        held = constant(rows)
        centre = held.mean(0) if name == "rbf" else torch.zeros_like(held[0])
        self.register_buffer("centre", centre)
        self.register_buffer("rows", held - centre)
        self.name, self.degree = name, degree
        self.register_buffer("gamma", constant(gamma))
        self._numbers(coef0=coef0)

    def forward(self, x: Tensor) -> Tensor:
        """Return one column a reference row."""
        x = x.double() - self.centre
        if self.name == "rbf":
            return torch.exp(-self.gamma * squared_distances(x, self.rows))
        product = x @ self.rows.T
        if self.name == "linear":
            return product
        inner = self.gamma * product + self.coef0
        return inner.tanh() if self.name == "sigmoid" else inner**self.degree


def squared_distances(x: Tensor, rows: Tensor) -> Tensor:
    """Return |x - r|² by products; rows around 0 round least."""
    square = (x * x).sum(1, keepdim=True) + (rows * rows).sum(1)
    return (square - 2 * (x @ rows.T)).clamp_min(0)


class Gaussians(Part):
    """Log-odds of two clouds with independent columns."""

    means: Tensor
    variances: Tensor
    offset: Tensor

    def __init__(self, means: Any, variances: Any, offset: float) -> None:
        super().__init__()
        self.register_buffer("means", constant(means))
        self.register_buffer("variances", constant(variances))
        self._numbers(offset=offset)

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        x = x.double()
        logs = [
            -0.5 * (torch.log(self.variances[i]) + (x - self.means[i]) ** 2
                    / self.variances[i]).sum(1)
            for i in range(2)
        ]  # fmt: skip
        return logs[1] - logs[0] + self.offset


class Cloud(nn.Module):
    """Minus the Mahalanobis distance from a mean."""

    mean: Tensor
    whiten: Tensor

    def __init__(self, mean: Any, cholesky: Any) -> None:
        super().__init__()
        whiten = np.linalg.inv(np.asarray(cholesky, dtype=np.float64))
        self.register_buffer("mean", constant(mean))
        self.register_buffer("whiten", constant(whiten.T))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number a row."""
        whitened = (x.double() - self.mean) @ self.whiten
        return -(whitened * whitened).sum(1).sqrt()
