"""Fitted models → modules from rows as they come in to the same answers.

There are twins of the default's parts and of networks; all else is refused by name. A
twin is compared with its model before a file is kept (:mod:`~.export`).
"""

from __future__ import annotations

import importlib.util
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
from denspu.persistence.onnx.arithmetic import (
    Affine,
    Bumps,
    Cast,
    Filled,
    FlatPixels,
    Hidden,
    Line,
    LogOdds,
    Mean,
    NearestVotes,
    Part,
    Pixels,
    Product,
    RatioOdds,
    Trees,
    Unit,
)
from denspu.refinement import EmbeddingRefiner, NetworkRefiner, RankingRefiner
from denspu.refinement.embedding import SURE as SURE_VOTES
from denspu.refinement.ranking import SURE as SURE_RANK

OUTPUTS = ("score", "probability", "decision")
PACKAGES = ("onnx", "onnxscript", "onnxruntime")

NEXT = "Export dens_pu at its defaults or a method that trains a network"
EMBED = "Embed the rows first and fit on the embeddings"


def refuse(part: Any, reason: str, what_next: str = NEXT) -> NoReturn:
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


class Answers(Part):
    """Score, probability and decision of rows: a whole model as one module."""

    def __init__(self, model: PUClassifier, dtype: str) -> None:
        super().__init__()
        known = getattr(model, "posterior_", None)
        self.probability = nn.Sigmoid() if known is None else Hidden(known)
        self.score = model_twin(model, dtype)
        self._hold(cut=float(model.threshold_))
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
        network = isinstance(model.classifier_, NetworkClassifier)
        if model.classify_on_ == "input" and network:
            return image_classifier(model.classifier_, dtype)
        refuse(model.classifier_, "there is no graph for it")
    if isinstance(model, DeepPU):
        return _deep(model, dtype)
    refuse(model, "there is no graph for it")


def _deep(model: DeepPU, dtype: str) -> nn.Module:
    if model.encoder is not None:
        embed = encoder_twin(model.encoder_, dtype)
        scale = Affine(model.centre_, model.spread_)
        rows: nn.Module = nn.Sequential(embed, Cast(torch.float32), scale)
    elif model.input_kind_ == "image":
        rows = pixels(model, dtype)
    else:
        rows = nn.Sequential(table_twin(model.table_), Cast(torch.float32))
    logits = nn.Sequential(rows, network(model.module_))
    if isinstance(model, VPU):
        return RatioOdds(logits, float(model.top_), SURE_RATIO)
    if type(model)._decide is not DeepPU._decide:
        refuse(model, "it decides in a way of its own")
    return Line(logits, model.cut_)


# --- encoders and networks -----------------------------------------------------------


def encoder_twin(encoder: Any, dtype: str) -> nn.Module:
    """Return a module that gives an encoder's embeddings of rows as they come in."""
    if isinstance(encoder, TabularEncoder):
        return table_twin(encoder)
    if isinstance(encoder, IdentityEncoder):
        steps: list[nn.Module] = []
        if encoder.input_kind_ == "image":
            steps.append(FlatPixels(encoder.scale_.low, encoder.scale_.high))
        return nn.Sequential(*steps, *([Unit()] if encoder.normalize else []))
    if isinstance(encoder, ContrastiveEncoder):
        flips = encoder.input_kind_ == "image" and encoder.preset_.flip
        body = OnSphere(network(encoder.module_), flips)
        return nn.Sequential(contrastive_rows(encoder, dtype), body)
    if isinstance(encoder, CAEEncoder):
        rows = resized_pixels(encoder, encoder.image_size, encoder.channels)
        return nn.Sequential(rows, network(encoder.module_.encoder), nn.Flatten())
    refuse(encoder, "there is no graph for it", EMBED)


def contrastive_rows(encoder: ContrastiveEncoder, dtype: str) -> nn.Module:
    """Return how rows reach the network of a contrastive encoder."""
    if encoder.input_kind_ == "image":
        return pixels(encoder, dtype, encoder.image_size)
    return nn.Sequential(table_twin(encoder.table_), Cast(torch.float32))


def network(module: nn.Module) -> nn.Module:
    """Return a network in evaluation mode on the CPU."""
    if not isinstance(module, KernelModel):
        return module.eval().cpu()
    rows, width = module.basis.centres.double().numpy(), module.basis.width
    weights = module.weights.double().numpy()
    return Bumps(rows, 1 / (2 * width**2), weights[:-1], weights[-1])


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


def image_classifier(classifier: NetworkClassifier, dtype: str) -> nn.Module:
    """Return a module from images to the logits of a registered network."""
    if isinstance(classifier, BackboneClassifier):
        rows = pixels(classifier, dtype)
    else:
        rows = resized_pixels(classifier, classifier.image_size, 3)
    return nn.Sequential(rows, network(classifier.module_))


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
    return Filled(fill, Affine(*scaling(scaler)), np.asarray(marked, dtype=np.int64))


# --- refiners ------------------------------------------------------------------------


def refiner_twin(refiner: Any, encoder: Any, dtype: str) -> nn.Module:
    """Return a module from rows as they come in to a refiner's log-odds."""
    if isinstance(refiner, NetworkRefiner):
        encoder = refiner.encoder_
        answer = WithMirror(network(refiner.module_), encoder.preset_.flip)
        return Line(
            nn.Sequential(contrastive_rows(encoder, dtype), answer), refiner.cut_
        )
    if isinstance(refiner, EmbeddingRefiner):
        return nn.Sequential(encoder_twin(encoder, dtype), Committee(refiner))
    if isinstance(refiner, RankingRefiner):
        return nn.Sequential(encoder_twin(encoder, dtype), Ranking(refiner))
    refuse(refiner, "there is no graph for it")


class Committee(Part):
    """Columns of a committee of learners as one margin."""

    def __init__(self, refiner: EmbeddingRefiner) -> None:
        super().__init__()
        axes, scale, scorer = refiner.axes_, refiner.scale_, refiner.scorer_
        self.axes: nn.Module = nn.Identity()
        if axes.directions is not None:
            self.axes = Product(axes.mean, axes.directions)
        kinds = scorer.kinds
        self.kinds = nn.ModuleList(
            machines(members)
            if hasattr(members[0], "decision_function")
            else LogOdds(Mean([votes(member) for member in members]), 1 - SURE_VOTES)
            for members in kinds
        )
        self._hold(mean=scale.mean, spread=scale.spread, weight=scale.weight)
        self._hold(cut=scale.cut, slope=scale.slope)

    def forward(self, x: Tensor) -> Tensor:
        """Return log-odds."""
        x = self.axes(x)
        columns = torch.stack([kind(x).double() for kind in self.kinds], dim=1)
        margin = ((columns - self.mean) / self.spread * self.weight).sum(1)
        return self.slope * (margin - self.cut)


class Ranking(Part):
    """A screen, and a closer look at what passes it."""

    def __init__(self, refiner: RankingRefiner) -> None:
        super().__init__()
        screen = [boosting(model) for model in refiner.screen_]
        self.screen = Mean(screen) if screen else None
        close = []
        if refiner.learner_ in ("boosting", "both"):
            close += [boosting(model) for model in refiner.close_["boosting"]]
        if refiner.learner_ in ("forest", "both"):
            forests = refiner.close_["forest"]
            close += [LogOdds(votes(model), SURE_RANK) for model in forests]
        self.close = Mean(close) if close else None
        self._hold(floor=refiner.floor_, cut=refiner.cut_)
        self._hold(screen_cut=refiner.screen_cut_ if screen else 0.0)

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


def machines(members: list[Any]) -> nn.Module:
    """Return the mean margin of Gaussian kernel machines: one machine of all rows."""
    for member in members:
        if type(member) is not SVC or member.kernel != "rbf":
            refuse(member, "there is no graph for it")
    gamma = [np.full(len(m.support_vectors_), m._gamma) for m in members]
    rows = np.concatenate([m.support_vectors_ for m in members])
    weights = np.concatenate([np.ravel(m.dual_coef_) for m in members])
    offset = float(np.mean([m.intercept_[0] for m in members]))
    return Bumps(rows, np.concatenate(gamma), weights / len(members), offset)


def boosting(model: HistGradientBoostingClassifier) -> nn.Module:
    """Return a module for the log-odds of boosted trees."""
    names = ("is_leaf", "feature_idx", "num_threshold", "left", "right", "value")
    grown = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        leaf, *rest = (nodes[name] for name in names)
        grown.append((leaf.astype(bool), *rest, nodes["depth"].max()))
    return Trees(grown, offset=float(np.ravel(model._baseline_prediction)[0]))


def votes(model: Any) -> nn.Module:
    """Return a module for P(y = 1) of a classifier without margins."""
    column = list(model.classes_).index(1)
    if isinstance(model, KNeighborsClassifier):
        values = (model._y == column).astype(np.float64)
        weighted = model.weights == "distance"
        return NearestVotes(model._fit_X, model.n_neighbors, values, weighted)
    if not isinstance(model, ExtraTreesClassifier):
        refuse(model, "there is no graph for it")
    grown = []
    for tree in (member.tree_ for member in model.estimators_):
        counts = tree.value[:, 0, :]
        share = counts[:, column] / np.maximum(counts.sum(axis=1), 1e-300)
        left, right = tree.children_left, tree.children_right
        grown.append(
            (left < 0, tree.feature, tree.threshold, left, right, share, tree.max_depth)
        )
    # scikit-learn compares rows in single precision
    return Trees(grown, precision=torch.float32, mean=True)
