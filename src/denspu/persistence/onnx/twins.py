"""Fitted models → modules from rows as they come in to the same answers.

There are twins of the default's parts and of networks; all else is refused by name. A
twin is compared with its model before a file is kept (:mod:`~.export`). One more
estimator of scikit-learn is one function and its line in a table at the end.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
import torch
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from torch import Tensor, nn

from denspu.classifiers import BackboneClassifier, NetworkClassifier
from denspu.encoders import (
    CAEEncoder,
    ContrastiveEncoder,
    IdentityEncoder,
    TabularEncoder,
)
from denspu.exceptions import MissingDependencyError, ModelFileError
from denspu.methods._base import PUClassifier
from denspu.methods._deep import DeepPU
from denspu.methods.dens_pu import DensPU
from denspu.methods.vpu import SURE as SURE_RATIO
from denspu.methods.vpu import VPU
from denspu.networks.backbones import KernelModel, OnSphere, WithMirror
from denspu.persistence.onnx import arithmetic
from denspu.persistence.onnx.arithmetic import Formula, Pixels
from denspu.refinement import EmbeddingRefiner, NetworkRefiner, RankingRefiner
from denspu.refinement.embedding import SURE as SURE_VOTES
from denspu.refinement.ranking import SURE as SURE_RANK

OUTPUTS = ("score", "probability", "decision")
PACKAGES = ("onnx", "onnxscript", "onnxruntime")

NEXT = "Export DensPU(refiner='embedding') or a method that trains a network"
EMBED = "Embed the rows first and fit on the embeddings"


def refuse(
    part: Any, reason: str = "there is no graph for it", what_next: str = NEXT
) -> NoReturn:
    """Raise with the name of what has no twin, and the next step."""
    name = type(part).__name__
    raise ModelFileError(f"{name} cannot be exported to ONNX: {reason}. {what_next}.")


def require_onnx() -> None:
    """Raise if the extra is not installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"Exporting to ONNX needs {', '.join(missing)}: pip install 'denspu[onnx]'."
        )


class Answers(nn.Module):
    """Score, probability and decision of rows: a whole model as one module."""

    cut: Tensor

    def __init__(self, model: PUClassifier, dtype: str) -> None:
        super().__init__()
        known = getattr(model, "posterior_", None)
        self.probability = nn.Sigmoid() if known is None else arithmetic.hidden(known)
        self.score = model_twin(model, dtype)
        self.register_buffer("cut", arithmetic.constant(model.threshold_))
        self.eval()

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return three columns."""
        score = self.score(rows).double()
        called = (score > self.cut).to(torch.int64)
        return score, self.probability(score), called


def model_twin(model: PUClassifier, dtype: str) -> nn.Module:
    """Return a module from rows as they come in to the model's decision function."""
    if isinstance(model, DensPU):
        if hasattr(model, "refiner_"):
            return refiner_twin(model.refiner_, model.encoder_, dtype)
        part = model.classifier_
        if model.classify_on_ != "input" or not isinstance(part, NetworkClassifier):
            refuse(part)
        if isinstance(part, BackboneClassifier):
            return nn.Sequential(pixels(part, dtype), network(part.module_))
        rows = resized_pixels(part, part.image_size, 3)
        return nn.Sequential(rows, network(part.module_))
    if isinstance(model, DeepPU):
        return deep_twin(model, dtype)
    refuse(model)


def deep_twin(model: DeepPU, dtype: str) -> nn.Module:
    """Return a module for a method that trains a network."""
    if model.encoder is not None:
        embed = encoder_twin(model.encoder_, dtype)
        scale = arithmetic.affine(model.centre_, model.spread_)
        rows: nn.Module = nn.Sequential(embed, arithmetic.single(), scale)
    else:
        rows = network_rows(model, dtype)
    logits = nn.Sequential(rows, network(model.module_))
    if isinstance(model, VPU):
        return arithmetic.ratio_odds(logits, float(model.top_), SURE_RATIO)
    if type(model)._decide is not DeepPU._decide:
        refuse(model, "it decides in a way of its own")
    return arithmetic.minus(logits, model.cut_)


# --- encoders and networks -----------------------------------------------------------


def encoder_twin(encoder: Any, dtype: str) -> nn.Module:
    """Return a module that gives an encoder's embeddings of rows as they come in."""
    if isinstance(encoder, TabularEncoder):
        return table_twin(encoder)
    if isinstance(encoder, IdentityEncoder):
        steps: list[nn.Module] = []
        if encoder.input_kind_ == "image":
            scale = encoder.scale_
            steps.append(arithmetic.flat_pixels(scale.low, scale.high))
        if encoder.normalize:
            steps.append(arithmetic.unit())
        return nn.Sequential(*steps)
    if isinstance(encoder, ContrastiveEncoder):
        flips = encoder.input_kind_ == "image" and encoder.preset_.flip
        body = OnSphere(network(encoder.module_), flips)
        return nn.Sequential(network_rows(encoder, dtype, encoder.image_size), body)
    if isinstance(encoder, CAEEncoder):
        rows = resized_pixels(encoder, encoder.image_size, encoder.channels)
        return nn.Sequential(rows, network(encoder.module_.encoder), nn.Flatten())
    refuse(encoder, what_next=EMBED)


def network_rows(part: Any, dtype: str, size: int | None = None) -> nn.Module:
    """Return how rows reach the network of a method or an encoder."""
    if part.input_kind_ == "image":
        return pixels(part, dtype, size)
    return nn.Sequential(table_twin(part.table_), arithmetic.single())


def network(module: nn.Module) -> nn.Module:
    """Return a network in evaluation mode on the CPU."""
    if not isinstance(module, KernelModel):
        return module.eval().cpu()
    rows, width = module.basis.centres.double().numpy(), module.basis.width
    weights = module.weights.double().numpy()
    return arithmetic.bumps(rows, 1 / (2 * width**2), weights[:-1], weights[-1])


def pixels(part: Any, dtype: str, size: int | None = None) -> nn.Module:
    """Return how pixels reach a network, as ``networks.backbones.pack`` does it."""
    shape, eight = part.image_shape_, dtype == "uint8"
    whole = size is None or shape[:2] == (size, size)
    low, high = (0.0, 255.0) if eight and whole else (part.scale_.low, part.scale_.high)
    levels = None if eight and whole else 255 if eight else 65535
    return Pixels(low, high, shape, size=size, antialias=True, levels=levels)


def resized_pixels(part: Any, size: int, channels: int) -> nn.Module:
    """Return pixels at one size, in floats that are not rounded."""
    low, high = part.scale_.low, part.scale_.high
    return Pixels(low, high, part.image_shape_, size=size, channels=channels)


# --- tables --------------------------------------------------------------------------


def number_steps(encoder: TabularEncoder) -> tuple[Any, Any, Any]:
    """Return imputer, scaler and indicator of gaps (or None) of a table's numbers."""
    pipeline, indicator = encoder.pipeline_, None
    if encoder.fitted_on_frame_:
        for name, _, columns in encoder.pipeline_.transformers_:
            if name == "categories" and len(columns):
                names = ", ".join(map(str, encoder.feature_names_in_[columns[:8]]))
                refuse(encoder, f"column(s) {names} hold categories, and the graph "
                       "takes numbers", "Write them as numbers before fit")  # fmt: skip
        pipeline = encoder.pipeline_.named_transformers_["numbers"]
    if hasattr(pipeline, "transformer_list"):
        (_, pipeline), (_, indicator) = pipeline.transformer_list
    imputer, scaler = (step for _, step in pipeline.steps)
    return imputer, scaler, indicator


def scaling(scaler: Any) -> tuple[Any, Any]:
    """Return what a fitted scaler subtracts from each column and divides it by."""
    spread = getattr(scaler, "spread_", None)
    if spread is None:
        return scaler.mean_, scaler.scale_
    return scaler.mean_, np.full(len(scaler.mean_), spread)


def table_twin(encoder: TabularEncoder) -> nn.Module:
    """Return the steps of a table of numbers: fill, scale, mark what was missing."""
    imputer, scaler, indicator = number_steps(encoder)
    fill = np.nan_to_num(np.asarray(imputer.statistics_, dtype=np.float64))
    marked = [] if indicator is None else indicator.features_
    return arithmetic.filled(fill, arithmetic.affine(*scaling(scaler)), marked)


# --- refiners ------------------------------------------------------------------------


def refiner_twin(refiner: Any, encoder: Any, dtype: str) -> nn.Module:
    """Return a module from rows as they come in to a refiner's log-odds."""
    if isinstance(refiner, NetworkRefiner):
        encoder = refiner.encoder_
        rows = network_rows(encoder, dtype, encoder.image_size)
        answer = WithMirror(network(refiner.module_), encoder.preset_.flip)
        return arithmetic.minus(nn.Sequential(rows, answer), refiner.cut_)
    if isinstance(refiner, EmbeddingRefiner):
        return nn.Sequential(encoder_twin(encoder, dtype), *committee(refiner))
    if isinstance(refiner, RankingRefiner):
        return nn.Sequential(encoder_twin(encoder, dtype), ranking(refiner))
    refuse(refiner)


def committee(refiner: EmbeddingRefiner) -> list[nn.Module]:
    """Return the axes, if any, and the columns of a committee as one margin."""
    axes, scale = refiner.axes_, refiner.scale_

    def formula(held: Formula, x: Tensor) -> Tensor:
        columns = torch.stack([kind(x).double() for kind in held.kinds], dim=1)
        margin = ((columns - held.mean) / held.spread * held.weight).sum(1)
        return held.slope * (margin - held.cut)

    kinds = nn.ModuleList(
        estimators_twin(members, 1 - SURE_VOTES) for members in refiner.scorer_.kinds
    )
    numbers = ("mean", "spread", "weight", "cut", "slope")
    judged = Formula(formula, kinds=kinds, **{n: getattr(scale, n) for n in numbers})
    if axes.directions is None:
        return [judged]
    return [arithmetic.product(axes.mean, axes.directions), judged]


def ranking(refiner: RankingRefiner) -> nn.Module:
    """Return a screen, and a closer look at what passes it."""
    screen = [estimators_twin([model], SURE_RANK) for model in refiner.screen_]
    close = [
        estimators_twin([model], SURE_RANK)
        for learner in ("boosting", "forest")
        if refiner.learner_ in (learner, "both")
        for model in refiner.close_[learner]
    ]
    if not screen or not close:
        return arithmetic.minus(arithmetic.mean(close or screen), refiner.cut_)

    def formula(held: Formula, x: Tensor) -> Tensor:
        scores = held.screen(x)
        below = scores + held.floor - held.screen_cut
        passed = scores >= held.screen_cut
        return torch.where(passed, held.close(x), below) - held.cut

    return Formula(
        formula,
        screen=arithmetic.mean(screen),
        close=arithmetic.mean(close),
        floor=refiner.floor_,
        cut=refiner.cut_,
        screen_cut=refiner.screen_cut_,
    )


# --- estimators of scikit-learn ------------------------------------------------------


def estimators_twin(members: list[Any], sure: float) -> nn.Module:
    """Return the mean margin of estimators of one class, or log-odds of their chance.

    A chance, P(y = 1), is kept inside (``sure``, 1 - ``sure``).
    """
    kind = type(members[0])
    if kind is SVC:
        return machines(members)
    if kind in MARGINS:
        return arithmetic.mean([MARGINS[kind](member) for member in members])
    if kind in CHANCES:
        chance = arithmetic.mean([CHANCES[kind](member) for member in members])
        return arithmetic.log_odds(chance, sure)
    refuse(members[0])


def machines(members: list[SVC]) -> nn.Module:
    """Return the mean margin of Gaussian kernel machines: one machine of all rows."""
    for member in members:
        if member.kernel != "rbf":
            refuse(member)
    gamma = [np.full(len(m.support_vectors_), m._gamma) for m in members]
    rows = np.concatenate([m.support_vectors_ for m in members])
    weights = np.concatenate([np.ravel(m.dual_coef_) for m in members])
    offset = float(np.mean([m.intercept_[0] for m in members]))
    return arithmetic.bumps(rows, np.concatenate(gamma), weights / len(members), offset)


def boosting(model: HistGradientBoostingClassifier) -> nn.Module:
    """Return a module for the log-odds of boosted trees."""
    names = ("is_leaf", "feature_idx", "num_threshold", "left", "right", "value")
    grown = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        leaf, *rest = (nodes[name] for name in names)
        grown.append((leaf.astype(bool), *rest, nodes["depth"].max()))
    offset = float(np.ravel(model._baseline_prediction)[0])
    return arithmetic.walked_trees(grown, offset=offset)


def neighbours(model: KNeighborsClassifier) -> nn.Module:
    """Return a module for the share of near rows with y = 1."""
    values = (model._y == list(model.classes_).index(1)).astype(np.float64)
    weighted = model.weights == "distance"
    return arithmetic.nearest_votes(model._fit_X, model.n_neighbors, values, weighted)


def forest(model: ExtraTreesClassifier) -> nn.Module:
    """Return a module for the mean share of y = 1 in the leaves of a forest."""
    column = list(model.classes_).index(1)
    grown = []
    for tree in (member.tree_ for member in model.estimators_):
        counts = tree.value[:, 0, :]
        share = counts[:, column] / np.maximum(counts.sum(axis=1), 1e-300)
        left, right = tree.children_left, tree.children_right
        grown.append(
            (left < 0, tree.feature, tree.threshold, left, right, share, tree.max_depth)
        )
    # scikit-learn compares rows in single precision
    return arithmetic.walked_trees(grown, precision=torch.float32, averaged=True)


MARGINS: Mapping[type, Callable[[Any], nn.Module]] = {
    HistGradientBoostingClassifier: boosting,
}
"""Estimators with a decision function."""

CHANCES: Mapping[type, Callable[[Any], nn.Module]] = {
    KNeighborsClassifier: neighbours,
    ExtraTreesClassifier: forest,
}
"""Estimators that only know probabilities."""
