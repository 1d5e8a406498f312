"""What goes around a network: a scale before it, one logit or a projection after it."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class OneLogit(nn.Module):
    """A body and one logit."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(cast(int, body.n_features), 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a row."""
        return cast(Tensor, self.head(self.body(x))).squeeze(1)


class WithMirror(nn.Module):
    """The mean logit of an image and its mirror."""

    def __init__(self, module: nn.Module, flips: bool) -> None:
        super().__init__()
        self.module = module
        self.flips = flips

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a row."""
        logits = cast(Tensor, self.module(x))
        if self.flips:
            logits = (logits + self.module(x.flip(3))) / 2
        return logits


class Standardised(nn.Module):
    """A network behind the mean and spread of its input, channel by channel."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.n_features = cast(int, network.n_features)
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("std", torch.ones(()))

    def look_at(self, rows: Tensor) -> None:
        """Learn the scale of images; rows of a table are standardised already."""
        if rows.ndim != 4:
            return
        self.mean = rows.mean((0, 2, 3))[:, None, None]
        self.std = rows.std((0, 2, 3))[:, None, None].clamp_min(1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """Return features of rows."""
        return cast(Tensor, self.network((x - self.mean) / self.std))


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


class ContrastiveModel(nn.Module):
    """Network and projection head."""

    def __init__(self, network: nn.Module, n_projection: int) -> None:
        super().__init__()
        self.body = Standardised(network)
        self.projector = Projector(self.body.n_features, n_projection)

    def forward(self, x: Tensor) -> Tensor:
        """Return projections of rows."""
        return cast(Tensor, self.projector(self.body(x)))


class OnSphere(nn.Module):
    """Features divided by their length, averaged over an image and its mirror."""

    def __init__(self, body: nn.Module, flips: bool) -> None:
        super().__init__()
        self.body = body
        self.flips = flips

    def forward(self, x: Tensor) -> Tensor:
        """Return embeddings of length 1."""
        z = self.body(x)
        if self.flips:
            z = z + self.body(x.flip(3))
        return F.normalize(z.float(), dim=1)
