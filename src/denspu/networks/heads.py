"""One logit on top of a network, for an image or for it and its mirror."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn


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
