"""Maps from scores to probabilities as modules."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from denspu._scores import HiddenPositive, Isotonic
from denspu.methods._classical import Sigmoid
from denspu.persistence.onnx.parts.basics import Part
from denspu.persistence.onnx.parts.scores import Logistic, Steps
from denspu.persistence.onnx.refusal import refuse


def calibration_twin(found: Any) -> nn.Module:
    """Return a module for a map from scores to shares of rows with a label."""
    if isinstance(found, Isotonic):
        return Steps(found.steps.X_thresholds_, found.steps.y_thresholds_)
    if isinstance(found, Sigmoid):
        slope = float(found.line.coef_[0, 0]) / found.spread
        return Logistic(slope, float(found.line.intercept_[0]))
    return Logistic()


def posterior_twin(found: Any) -> nn.Module:
    """Return a module for a model's map from scores to P(y = 1), if it has one."""
    if found is None:
        return Logistic()
    if isinstance(found, HiddenPositive):
        return Hidden(found)
    refuse(found, "there is no graph for this calibration")


class Hidden(Part):
    """P(y = 1) of rows of U by their score (:class:`denspu._scores.HiddenPositive`)."""

    factor: Tensor

    def __init__(self, found: HiddenPositive) -> None:
        super().__init__()
        self.share = calibration_twin(found.share)
        self._numbers(factor=found.factor)

    def forward(self, score: Tensor) -> Tensor:
        """Return probabilities."""
        share = self.share(score)
        return (self.factor * (share / (1 - share).clamp_min(1e-12))).clamp_max(1)
