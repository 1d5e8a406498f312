"""A perceptron for tables and vectors."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn


class MLP(nn.Module):
    """Fully connected layers with batch normalisation between them.

    Parameters
    ----------
    n_inputs : int
    width : int
        Units of each hidden layer, and the length of the embedding.
    depth : int
        Hidden layers.
    """

    def __init__(self, n_inputs: int, *, width: int = 256, depth: int = 3) -> None:
        super().__init__()
        self.n_features = width
        layers: list[nn.Module] = []
        for _ in range(depth):
            layers += [
                nn.Linear(n_inputs, width, bias=False),
                nn.BatchNorm1d(width),
                nn.ReLU(),
            ]
            n_inputs = width
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Return one embedding a row: N×F → N×D."""
        return cast(Tensor, self.layers(x))


class Projector(nn.Module):
    """The small head on which a contrastive loss is taken; thrown away afterwards."""

    def __init__(self, n_features: int, n_outputs: int = 128) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features, n_features, bias=False),
            nn.BatchNorm1d(n_features),
            nn.ReLU(),
            nn.Linear(n_features, n_outputs),
        )

    def forward(self, z: Tensor) -> Tensor:
        """Return the projection: N×D → N×outputs."""
        return cast(Tensor, self.layers(z))
