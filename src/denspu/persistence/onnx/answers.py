"""A whole model as one module: score, probability and decision of rows."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from denspu.methods._base import PUClassifier
from denspu.persistence.onnx.calibration import posterior_twin
from denspu.persistence.onnx.methods import model_twin
from denspu.persistence.onnx.parts.basics import Part

OUTPUTS = ("score", "probability", "decision")


def answers_twin(model: PUClassifier, dtype: str) -> Answers:
    """Return a module that answers as the model does, or raise with the reason."""
    probability = posterior_twin(getattr(model, "posterior_", None))
    score = model_twin(model, dtype)
    return Answers(score, probability, float(model.threshold_)).eval()


class Answers(Part):
    """Score, probability and decision of rows."""

    cut: Tensor

    def __init__(self, score: nn.Module, probability: nn.Module, cut: float) -> None:
        super().__init__()
        self.score, self.probability = score, probability
        self._numbers(cut=cut)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return three columns."""
        score = self.score(rows).double()
        called = (score > self.cut).to(torch.int64)
        return score, self.probability(score), called
