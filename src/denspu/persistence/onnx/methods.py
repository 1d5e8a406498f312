"""Fitted methods → modules from rows as they come in to the decision function.

What has no twin is refused by name and with the reason. The twin is checked against
the model afterwards, so a part that is not what its class says does no harm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from denspu.classifiers import NetworkClassifier
from denspu.methods._base import PUClassifier
from denspu.methods._classical import EmbeddingPU, EstimatorPU
from denspu.methods._deep import DeepPU
from denspu.methods.dens_pu import DensPU
from denspu.methods.elkan_noto import MARGIN, TIE, ElkanNoto
from denspu.methods.kldce import KLDCE
from denspu.methods.label_propagation import LEAST_SIMILARITY, LabelPropagation
from denspu.methods.one_class import OneClass
from denspu.methods.pu_bagging import PUBagging
from denspu.methods.vpu import SURE as SURE_RATIO
from denspu.methods.vpu import VPU
from denspu.persistence.onnx.calibration import calibration_twin
from denspu.persistence.onnx.encoders import encoder_twin
from denspu.persistence.onnx.learners import mean_twin, twin, votes
from denspu.persistence.onnx.networks import image_classifier, network, pixels
from denspu.persistence.onnx.parts.basics import Cast, Chain, Mean, Part
from denspu.persistence.onnx.parts.kernels import Kernel, Linear
from denspu.persistence.onnx.parts.neighbours import GraphValues, Nearest
from denspu.persistence.onnx.parts.rows import Affine, Product
from denspu.persistence.onnx.parts.scores import Line, LogOdds, log_odds
from denspu.persistence.onnx.refiners import refiner_twin
from denspu.persistence.onnx.refusal import refuse
from denspu.persistence.onnx.tables import float_table

DENS_SURE = 1e-12
"""How far Dens-PU keeps a classifier's probabilities from 0 and 1."""


def model_twin(model: PUClassifier, dtype: str) -> nn.Module:
    """Return a module from rows as they come in to the model's decision function."""
    if model.input_kind_ == "text":
        refuse(model, "it takes texts, which become numbers by tables of words, "
               "outside the graph; embed them first and fit on the embeddings"
               )  # fmt: skip
    if isinstance(model, DensPU):
        return _dens_pu(model, dtype)
    if isinstance(model, DeepPU):
        return _deep(model, dtype)
    if isinstance(model, EmbeddingPU):
        return _on_embedding(model, dtype)
    refuse(model, "there is no graph for it")


def _dens_pu(model: DensPU, dtype: str) -> nn.Module:
    if hasattr(model, "refiner_"):
        return refiner_twin(model.refiner_, model.encoder_, dtype)
    classifier = model.classifier_
    if model.classify_on_ == "input":
        if isinstance(classifier, NetworkClassifier):
            return image_classifier(classifier, dtype)
        return twin(classifier)
    if hasattr(classifier, "decision_function"):
        answer = twin(classifier)
    else:
        answer = LogOdds(votes(classifier), DENS_SURE)
    return Chain(encoder_twin(model.encoder_, dtype), answer)


# --- methods that train a network ----------------------------------------------------


def _deep(model: DeepPU, dtype: str) -> nn.Module:
    if model.encoder is not None:
        embed = encoder_twin(model.encoder_, dtype)
        scale = Affine(model.centre_, model.spread_)
        rows: nn.Module = Chain(embed, Cast(torch.float32), scale)
    elif model.input_kind_ == "image":
        rows = pixels(model, dtype)
    else:
        rows = float_table(model.table_)
    logits = Chain(rows, network(model.module_))
    if isinstance(model, VPU):
        return RatioOdds(logits, float(model.top_))
    if type(model)._decide is not DeepPU._decide:
        refuse(model, "it decides in a way of its own")
    return Line(logits, model.cut_)


class RatioOdds(Part):
    """Log-odds of Φ / max Φ, a straight line where that is near 1 (VPU)."""

    top: Tensor
    sure: Tensor
    rest: Tensor

    def __init__(self, part: nn.Module, top: float) -> None:
        super().__init__()
        self.part = part
        self._numbers(top=top, sure=float(np.log(SURE_RATIO)), rest=1 - SURE_RATIO)

    def forward(self, x: Tensor) -> Tensor:
        """Return log-odds."""
        ratio = nn.functional.logsigmoid(self.part(x).double()) - self.top
        low = torch.minimum(ratio, self.sure)
        return low - torch.log1p(-torch.exp(low)) + (ratio - low) / self.rest


# --- methods on embeddings -----------------------------------------------------------


def _on_embedding(model: EmbeddingPU, dtype: str) -> nn.Module:
    if (
        isinstance(model, EstimatorPU)
        and model.sees_ == "input"
        and getattr(model, "variant", None) != "em"
    ):
        return _scored(model, lambda part: image_classifier(part, dtype))
    rows = Chain(encoder_twin(model.encoder_, dtype), Cast(torch.float64))
    if isinstance(model, LabelPropagation):
        centred = Affine(model.centre_, np.ones(len(model.centre_)))
        nearest = Nearest(model.reference_, model.n_neighbors_, model.metric)
        return Chain(rows, centred, GraphValues(
            nearest, model.values_, model.width_, LEAST_SIMILARITY))  # fmt: skip
    scale = model.scale_
    scaled = Affine(scale.centre, np.full(len(scale.centre), scale.spread))
    if isinstance(model, OneClass):
        detected = Line(twin(model.detector_), model.cut_, model.spread_)
        return Chain(rows, scaled, detected)
    if isinstance(model, KLDCE):
        return Chain(rows, scaled, *_nystroem(model))
    if isinstance(model, EstimatorPU):
        return Chain(rows, scaled, _scored(model, twin))
    refuse(model, "there is no graph for it")


def _nystroem(model: KLDCE) -> list[nn.Module]:
    weights = np.ravel(model.weights_)
    line = Linear(weights[:-1], float(weights[-1]))
    if model.variant == "linear":
        return [line]
    kernel = model.kernel_
    landmarks = Kernel(kernel.components_, "rbf", kernel.gamma)
    size = len(kernel.components_)
    return [landmarks, Product(np.zeros(size), kernel.normalization_.T), line]


def _scored(model: Any, answer: Any) -> nn.Module:
    """Return what a method around a classifier makes of the rows it sees."""
    if isinstance(model, PUBagging):
        members = model.estimators_
        on_rows = answer is twin
        mean = mean_twin(members) if on_rows else Mean(list(map(answer, members)))
        return Line(mean, model.cut_)
    margin = answer(model.estimator_)
    if isinstance(model, ElkanNoto) and model.variant == "adjusted":
        return Adjusted(model, margin)
    return margin


class Adjusted(Part):
    """Elkan and Noto's g(x) / c as log-odds."""

    c: Tensor
    ratio: Tensor
    spread: Tensor
    low: Tensor
    high: Tensor
    tie: Tensor

    def __init__(self, model: ElkanNoto, margin: nn.Module) -> None:
        super().__init__()
        self.margin = margin
        self.map = calibration_twin(model.calibration_)
        self.one_sample = model.scenario == "one-sample"
        self._numbers(
            c=model.label_frequency_,
            ratio=model.ratio_,
            spread=model.spread_,
            low=MARGIN,
            high=1 - MARGIN,
            tie=TIE,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return log-odds."""
        scores = self.margin(x)
        g = self.map(scores)
        if self.one_sample:
            probability = g / self.c
        else:
            probability = (self.ratio * g / (1 - g).clamp_min(1e-12)).clamp_max(1)
        odds = log_odds(probability, self.low, self.high)
        return odds + self.tie * torch.tanh(scores / self.spread)
