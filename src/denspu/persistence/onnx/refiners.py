"""Fitted refiners → modules from rows as they come in to log-odds."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from denspu.networks.heads import WithMirror
from denspu.persistence.onnx.encoders import contrastive_rows, encoder_twin
from denspu.persistence.onnx.learners import mean_twin, twin, votes
from denspu.persistence.onnx.networks import network
from denspu.persistence.onnx.parts.basics import Chain, Mean, Part, constant
from denspu.persistence.onnx.parts.rows import Product
from denspu.persistence.onnx.parts.scores import Line, LogOdds
from denspu.persistence.onnx.refusal import refuse
from denspu.refinement import EmbeddingRefiner, NetworkRefiner, RankingRefiner
from denspu.refinement.committee import SURE as SURE_VOTES
from denspu.refinement.ranking import SURE as SURE_RANK


def refiner_twin(refiner: Any, encoder: Any, dtype: str) -> nn.Module:
    """Return a module from rows as they come in to a refiner's log-odds."""
    if isinstance(refiner, NetworkRefiner):
        encoder = refiner.encoder_
        rows = contrastive_rows(encoder, dtype)
        answer = WithMirror(network(refiner.module_), encoder.preset_.flip)
        return Line(Chain(rows, answer), refiner.cut_)
    if isinstance(refiner, EmbeddingRefiner):
        return Chain(encoder_twin(encoder, dtype), Committee(refiner))
    if isinstance(refiner, RankingRefiner):
        return Chain(encoder_twin(encoder, dtype), Ranking(refiner))
    refuse(refiner, "there is no graph for it")


class Committee(Part):
    """Columns of a committee of learners as one margin."""

    mean: Tensor
    spread: Tensor
    weight: Tensor
    cut: Tensor
    slope: Tensor

    def __init__(self, refiner: EmbeddingRefiner) -> None:
        super().__init__()
        axes, scale = refiner.axes_, refiner.scale_
        scorer: Any = refiner.scorer_
        self.axes = (
            nn.Identity()
            if axes.directions is None
            else Product(axes.mean, axes.directions)
        )
        self.kinds = nn.ModuleList(_members(kind) for kind in scorer.kinds)
        for name in ("mean", "spread", "weight"):
            self.register_buffer(name, constant(getattr(scale, name)))
        self._numbers(cut=scale.cut, slope=scale.slope)

    def forward(self, x: Tensor) -> Tensor:
        """Return log-odds."""
        x = self.axes(x)
        columns = torch.stack([kind(x).double() for kind in self.kinds], dim=1)
        margin = ((columns - self.mean) / self.spread * self.weight).sum(1)
        return self.slope * (margin - self.cut)


def _members(members: list[Any]) -> nn.Module:
    if hasattr(members[0], "decision_function"):
        return mean_twin(members)
    return LogOdds(Mean([votes(member) for member in members]), 1 - SURE_VOTES)


class Ranking(Part):
    """A screen, and a closer look at what passes it."""

    screen_cut: Tensor
    floor: Tensor
    cut: Tensor

    def __init__(self, refiner: RankingRefiner) -> None:
        super().__init__()
        screen = [twin(model) for model in refiner.screen_]
        self.screen = Mean(screen) if screen else None
        self.close: Mean | None = None
        if refiner.learner_ != "screen":
            both = refiner.learner_ == "both"
            names = ("boosting", "forest") if both else (refiner.learner_,)
            self.close = Mean(
                [self._close(n, m) for n in names for m in refiner.close_[n]]
            )
        self._numbers(
            screen_cut=refiner.screen_cut_ if screen else 0.0,
            floor=refiner.floor_,
            cut=refiner.cut_,
        )

    @staticmethod
    def _close(name: str, model: Any) -> nn.Module:
        if name == "boosting":
            return twin(model)
        return LogOdds(votes(model), SURE_RANK)

    def forward(self, x: Tensor) -> Tensor:
        """Return log-odds."""
        if self.screen is None:
            assert self.close is not None
            return self.close(x) - self.cut
        scores = self.screen(x)
        if self.close is None:
            return scores - self.cut
        below = scores + self.floor - self.screen_cut
        passed = scores >= self.screen_cut
        return torch.where(passed, self.close(x), below) - self.cut
