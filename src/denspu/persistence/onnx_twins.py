"""From a fitted model to a torch module that gives the same answers.

``twin(part)`` knows the fitted parts on embeddings, ``encoder_twin`` the encoders and
``model_twin`` whole methods. What has no twin is refused by name and with the reason.
The twin is checked against the model afterwards, so a part that is not what its class
says does no harm.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NoReturn

import numpy as np
import torch
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from torch import Tensor, nn

from denspu._rising import Isotonic
from denspu.base import Encoder, PUClassifier
from denspu.classifiers import BackboneClassifier, NetworkClassifier
from denspu.detectors import (
    DensityRatio,
    ExtendedIsolationForest,
    IsolationForest,
    KNNDistance,
    LocalOutlierFactor,
    Mahalanobis,
    OneClassSVM,
    SphereDensity,
)
from denspu.detectors.forest.arrays import average_path_length
from denspu.encoders import (
    CAEEncoder,
    ContrastiveEncoder,
    IdentityEncoder,
    TabularEncoder,
)
from denspu.exceptions import ModelFileError
from denspu.methods._calibration import Sigmoid
from denspu.methods._deep import DeepPU
from denspu.methods._embedding import EmbeddingPU
from denspu.methods._estimator import SURE, EstimatorPU
from denspu.methods.dens_pu import DensPU
from denspu.methods.elkan_noto import MARGIN, TIE, ElkanNoto
from denspu.methods.kldce import KLDCE
from denspu.methods.label_propagation import LEAST_SIMILARITY, LabelPropagation
from denspu.methods.one_class import OneClass
from denspu.methods.pu_bagging import PUBagging
from denspu.methods.spy import GaussianBayes
from denspu.methods.vpu import SURE as SURE_RATIO
from denspu.methods.vpu import VPU
from denspu.networks.contrastive import OnSphere
from denspu.networks.heads import WithMirror
from denspu.networks.kernel import KernelModel
from denspu.persistence import onnx_parts as parts
from denspu.persistence.onnx_parts import Chain, TreeArrays
from denspu.refinement import EmbeddingRefiner, NetworkRefiner, RankingRefiner
from denspu.refinement.committee import SURE as SURE_VOTES
from denspu.refinement.ranking import SURE as SURE_RANK

DENS_SURE = 1e-12
"""How far Dens-PU keeps a classifier's probabilities from 0 and 1."""


def refuse(part: Any, reason: str) -> NoReturn:
    """Raise with the name of what has no twin."""
    raise ModelFileError(f"{type(part).__name__} cannot be exported to ONNX: {reason}.")


# --- parts on embeddings -------------------------------------------------------------


@singledispatch
def twin(part: Any) -> nn.Module:
    """Return a module that gives a fitted part's answers for embeddings.

    Margins or log-odds for classifiers, normality for detectors.
    """
    refuse(part, "there is no graph for it")


@twin.register(SVC)
def _(part: SVC) -> nn.Module:
    return _kernel_machine(part, float(part.intercept_[0]))


@twin.register(OneClassSVM)
def _(part: OneClassSVM) -> nn.Module:
    machine = part.model_
    return _kernel_machine(machine, float(machine.intercept_[0] + machine.offset_[0]))


def _kernel_machine(machine: Any, offset: float) -> nn.Module:
    if machine.kernel not in ("rbf", "linear", "poly", "sigmoid"):
        refuse(machine, f"kernel={machine.kernel!r} is a function of its own")
    kernel = parts.Kernel(
        machine.support_vectors_,
        machine.kernel,
        machine._gamma,
        machine.degree,
        machine.coef0,
    )
    return Chain(kernel, parts.Linear(machine.dual_coef_, offset))


def mean_twin(members: list[Any]) -> nn.Module:
    """Return the mean answer of classifiers; Gaussian machines become one of all."""
    if not all(type(m) is SVC and m.kernel == "rbf" for m in members):
        return parts.Mean([twin(member) for member in members])
    gamma = [np.full(len(m.support_vectors_), m._gamma) for m in members]
    rows = np.concatenate([m.support_vectors_ for m in members])
    weights = np.concatenate([np.ravel(m.dual_coef_) for m in members])
    offset = float(np.mean([m.intercept_[0] for m in members]))
    kernel = parts.Kernel(rows, "rbf", np.concatenate(gamma))
    return Chain(kernel, parts.Linear(weights / len(members), offset))


@twin.register(LogisticRegression)
@twin.register(LinearSVC)
def _(part: Any) -> nn.Module:
    return parts.Linear(part.coef_, float(np.ravel(part.intercept_)[0]))


@twin.register(GaussianBayes)
def _(part: GaussianBayes) -> nn.Module:
    return parts.Gaussians(part.mean, part.var, part.offset)


@twin.register(GaussianNB)
def _(part: GaussianNB) -> nn.Module:
    prior = np.log(part.class_prior_)
    gaussians = parts.Gaussians(part.theta_, part.var_, float(prior[1] - prior[0]))
    return parts.LogOdds(Chain(gaussians, parts.Logistic()), SURE)


@twin.register(StandardScaler)
def _(part: StandardScaler) -> nn.Module:
    n = part.n_features_in_
    centre = np.zeros(n) if part.mean_ is None else part.mean_
    return parts.Affine(centre, np.ones(n) if part.scale_ is None else part.scale_)


@twin.register(Pipeline)
def _(part: Pipeline) -> nn.Module:
    return Chain(*(twin(step) for _, step in part.steps if step != "passthrough"))


@twin.register(HistGradientBoostingClassifier)
def _(part: HistGradientBoostingClassifier) -> nn.Module:
    trees = []
    for (predictor,) in part._predictors:
        nodes = predictor.nodes
        if nodes["is_categorical"].any():
            refuse(part, "its trees ask for categories")
        trees.append(
            _tree(
                nodes["is_leaf"].astype(bool),
                nodes["feature_idx"],
                nodes["num_threshold"],
                nodes["left"],
                nodes["right"],
                nodes["value"],
                int(nodes["depth"].max()),
            )
        )
    return parts.Trees(trees, offset=float(np.ravel(part._baseline_prediction)[0]))


def _tree(
    leaf: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    value: Any,
    deep: int,
) -> TreeArrays:
    """Return a tree whose leaves lead to themselves."""
    here = np.arange(len(leaf))
    return TreeArrays(
        np.where(leaf, 0, feature).astype(np.int64),
        np.where(leaf, 0.0, threshold),
        np.where(leaf, here, left).astype(np.int64),
        np.where(leaf, here, right).astype(np.int64),
        value,
        deep,
    )


def votes(part: Any) -> nn.Module:
    """Return a module for P(y = 1) of a classifier without margins."""
    column = list(part.classes_).index(1)
    if isinstance(part, KNeighborsClassifier):
        return _neighbour_votes(part, column)
    if isinstance(part, DecisionTreeClassifier):
        grown = [part.tree_]
    elif isinstance(part, ExtraTreesClassifier | RandomForestClassifier):
        grown = [estimator.tree_ for estimator in part.estimators_]
    else:
        refuse(part, "there is no graph for it")
    return parts.Trees(
        [_voting_tree(tree, column) for tree in grown],
        precision=torch.float32,  # scikit-learn compares rows in single precision
        mean=True,
    )


def _voting_tree(tree: Any, column: int) -> TreeArrays:
    counts = tree.value[:, 0, :]
    share = counts[:, column] / np.maximum(counts.sum(axis=1), 1e-300)
    return _tree(
        tree.children_left < 0,
        tree.feature,
        tree.threshold,
        tree.children_left,
        tree.children_right,
        share,
        int(tree.max_depth),
    )


def _neighbour_votes(part: KNeighborsClassifier, column: int) -> nn.Module:
    euclidean = part.effective_metric_ == "euclidean"
    if not euclidean or part.weights not in ("uniform", "distance"):
        refuse(part, f"metric={part.metric!r} and weights={part.weights!r} have none")
    nearest = parts.Nearest(part._fit_X, part.n_neighbors)
    values = (part._y == column).astype(np.float64)
    return parts.NearestVotes(nearest, values, part.weights == "distance")


@twin.register(ExtraTreesClassifier)
@twin.register(RandomForestClassifier)
@twin.register(DecisionTreeClassifier)
@twin.register(ExtraTreeClassifier)
@twin.register(KNeighborsClassifier)
def _(part: Any) -> nn.Module:
    return parts.LogOdds(votes(part), SURE)


# --- detectors -----------------------------------------------------------------------


@twin.register(Mahalanobis)
def _(part: Mahalanobis) -> nn.Module:
    return parts.Cloud(part.mean_, part.cholesky_)


@twin.register(IsolationForest)
@twin.register(ExtendedIsolationForest)
def _(part: Any) -> nn.Module:
    forest = part.forest_
    path = average_path_length(np.array([forest.n_samples]))[0]
    return parts.HeapForest(forest, forest.n_trees * path)


@twin.register(KNNDistance)
def _(part: KNNDistance) -> nn.Module:
    nearest = parts.Nearest(part.reference_, part.n_neighbors_, part.metric)
    return parts.NearestDistance(nearest, part.statistic)


@twin.register(SphereDensity)
def _(part: SphereDensity) -> nn.Module:
    return parts.SphereDensity(part.reference_, float(part.concentration_))


@twin.register(LocalOutlierFactor)
def _(part: LocalOutlierFactor) -> nn.Module:
    model = part.model_
    if model.effective_metric_ != "euclidean":
        refuse(part, f"metric={model.metric!r} has no graph")
    nearest = parts.Nearest(model._fit_X, model.n_neighbors_)
    reach = model._distances_fit_X_[:, model.n_neighbors_ - 1]
    return parts.LocalOutlierFactor(nearest, reach, model._lrd)


@twin.register(DensityRatio)
def _(part: DensityRatio) -> nn.Module:
    positives, unlabeled = part.positives_, part.unlabeled_
    if part.around_ == "rows":
        reference = np.concatenate([positives, unlabeled])
        nearest = parts.Nearest(reference, part.n_neighbors_, part.metric)
        return parts.ShareAmongRows(nearest, len(positives), part.represents_)
    return parts.ShareAroundPositives(
        positives, unlabeled, part.n_positives_, part.represents_, part.metric
    )


# --- networks ------------------------------------------------------------------------


class KernelAnswer(nn.Module):
    """Gaussian bumps times weights, with distances as ONNX can write them."""

    weights: Tensor

    def __init__(self, model: KernelModel) -> None:
        super().__init__()
        centres, width = model.basis.centres.double(), model.basis.width
        self.kernel = parts.Kernel(centres.numpy(), "rbf", 1 / (2 * width**2))
        self.register_buffer("weights", model.weights.double())

    def forward(self, x: Tensor) -> Tensor:
        """Return one answer a row."""
        return self.kernel(x.flatten(1)) @ self.weights[:-1] + self.weights[-1]


def network(module: nn.Module) -> nn.Module:
    """Return a network in evaluation mode on the CPU."""
    if isinstance(module, KernelModel):
        return KernelAnswer(module)
    return module.eval().cpu()


def pixels(part: Any, dtype: str, size: int | None = None) -> nn.Module:
    """Return how pixels reach a network, as ``networks.pixels.pack`` does it."""
    shape, eight = part.image_shape_, dtype == "uint8"
    resized = size is not None and shape[:2] != (size, size)
    low, high = (0.0, 255.0) if eight and not resized else _range(part)
    levels = 255 if eight else 65535
    return parts.Pixels(
        low,
        high,
        shape,
        size=size,
        antialias=True,
        levels=levels if resized or not eight else None,
    )


def _range(part: Any) -> tuple[float, float]:
    return part.scale_.low, part.scale_.high


# --- encoders ------------------------------------------------------------------------


def encoder_twin(encoder: Any, dtype: str) -> nn.Module:
    """Return a module that gives an encoder's embeddings of rows as they come in."""
    if isinstance(encoder, TabularEncoder):
        return _table(encoder)
    if isinstance(encoder, IdentityEncoder):
        steps: list[nn.Module] = []
        if encoder.input_kind_ == "image":
            steps.append(parts.FlatPixels(*_range(encoder)))
        return Chain(*steps, *([parts.Unit()] if encoder.normalize else []))
    if isinstance(encoder, ContrastiveEncoder):
        images = encoder.input_kind_ == "image"
        flips = images and encoder.preset_.flip
        return Chain(_contrastive_rows(encoder, dtype),
                     OnSphere(network(encoder.module_), flips))  # fmt: skip
    if isinstance(encoder, CAEEncoder):
        return Chain(
            _resized(encoder, encoder.image_size, encoder.channels),
            network(encoder.module_.encoder),
            nn.Flatten(),
        )
    if "text" in getattr(encoder, "inputs", ()):
        refuse(encoder, "texts become numbers by tables of words, outside the graph; "
               "embed them first and fit on the embeddings")  # fmt: skip
    if isinstance(encoder, Encoder):
        refuse(encoder, "there is no graph for it")
    refuse(encoder, "it is a class of your own; embed the rows first and fit on the "
           "embeddings")  # fmt: skip


def _contrastive_rows(encoder: ContrastiveEncoder, dtype: str) -> nn.Module:
    if encoder.input_kind_ == "image":
        return pixels(encoder, dtype, encoder.image_size)
    return Chain(_table(encoder.table_), parts.Cast(torch.float32))


def _resized(part: Any, size: int, channels: int) -> nn.Module:
    return parts.Pixels(*_range(part), part.image_shape_, size=size, channels=channels)


def _table(encoder: TabularEncoder) -> nn.Module:
    """Return the steps of a table of numbers: fill, scale, mark what was missing."""
    pipeline = encoder.pipeline_
    if encoder.fitted_on_frame_:
        pipeline = _number_columns(encoder)
    marked: Any = []
    if isinstance(pipeline, FeatureUnion):
        (_, pipeline), (_, indicator) = pipeline.transformer_list
        marked = indicator.features_
    imputer, scaler = (step for _, step in pipeline.steps)
    fill = np.nan_to_num(np.asarray(imputer.statistics_, dtype=np.float64))
    n = len(fill)
    if hasattr(scaler, "spread_"):
        scaled: nn.Module = parts.Affine(scaler.mean_, np.full(n, scaler.spread_))
    else:
        scaled = parts.Affine(scaler.mean_, scaler.scale_)
    return parts.Filled(fill, scaled, np.asarray(marked, dtype=np.int64))


def _number_columns(encoder: TabularEncoder) -> Any:
    for name, step, columns in encoder.pipeline_.transformers_:
        if name == "categories" and len(columns):
            names = encoder.feature_names_in_[columns[:8]]
            refuse(encoder, f"column(s) {', '.join(map(str, names))} hold categories, "
                   "and the graph takes numbers only; write them as numbers before "
                   "fit")  # fmt: skip
        if name == "numbers":
            found = step
    return found


# --- refiners and classifiers --------------------------------------------------------


class Committee(parts.Part):
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
            else parts.Product(axes.mean, axes.directions)
        )
        self.kinds = nn.ModuleList(_members(kind) for kind in scorer.kinds)
        for name in ("mean", "spread", "weight"):
            self.register_buffer(name, parts.constant(getattr(scale, name)))
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
    return parts.LogOdds(
        parts.Mean([votes(member) for member in members]), 1 - SURE_VOTES
    )


class Ranking(parts.Part):
    """A screen, and a closer look at what passes it."""

    screen_cut: Tensor
    floor: Tensor
    cut: Tensor

    def __init__(self, refiner: RankingRefiner) -> None:
        super().__init__()
        screen = [twin(model) for model in refiner.screen_]
        self.screen = parts.Mean(screen) if screen else None
        self.close: parts.Mean | None = None
        if refiner.learner_ != "screen":
            both = refiner.learner_ == "both"
            names = ("boosting", "forest") if both else (refiner.learner_,)
            self.close = parts.Mean(
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
        return parts.LogOdds(votes(model), SURE_RANK)

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


def refiner_twin(refiner: Any, encoder: Any, dtype: str) -> nn.Module:
    """Return a module from rows as they come in to a refiner's log-odds."""
    if isinstance(refiner, NetworkRefiner):
        encoder = refiner.encoder_
        rows = _contrastive_rows(encoder, dtype)
        answer = WithMirror(network(refiner.module_), encoder.preset_.flip)
        return parts.Line(Chain(rows, answer), refiner.cut_)
    if isinstance(refiner, EmbeddingRefiner):
        return Chain(encoder_twin(encoder, dtype), Committee(refiner))
    if isinstance(refiner, RankingRefiner):
        return Chain(encoder_twin(encoder, dtype), Ranking(refiner))
    refuse(refiner, "there is no graph for it")


def image_classifier(classifier: NetworkClassifier, dtype: str) -> nn.Module:
    """Return a module from images to the logits of a registered network."""
    if isinstance(classifier, BackboneClassifier):
        rows = pixels(classifier, dtype)
    else:
        rows = _resized(classifier, classifier.image_size, 3)
    return Chain(rows, network(classifier.module_))


# --- methods -------------------------------------------------------------------------


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
        answer = parts.LogOdds(votes(classifier), DENS_SURE)
    return Chain(encoder_twin(model.encoder_, dtype), answer)


class RatioOdds(parts.Part):
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


def _deep(model: DeepPU, dtype: str) -> nn.Module:
    if model.encoder is not None:
        embed = encoder_twin(model.encoder_, dtype)
        scale = parts.Affine(model.centre_, model.spread_)
        rows: nn.Module = Chain(embed, parts.Cast(torch.float32), scale)
    elif model.input_kind_ == "image":
        rows = pixels(model, dtype)
    else:
        rows = Chain(_table(model.table_), parts.Cast(torch.float32))
    logits = Chain(rows, network(model.module_))
    if isinstance(model, VPU):
        return RatioOdds(logits, float(model.top_))
    if type(model)._decide is not DeepPU._decide:
        refuse(model, "it decides in a way of its own")
    return parts.Line(logits, model.cut_)


def _on_embedding(model: EmbeddingPU, dtype: str) -> nn.Module:
    if (
        isinstance(model, EstimatorPU)
        and model.sees_ == "input"
        and getattr(model, "variant", None) != "em"
    ):
        return _scored(model, lambda part: image_classifier(part, dtype))
    rows = Chain(encoder_twin(model.encoder_, dtype), parts.Cast(torch.float64))
    if isinstance(model, LabelPropagation):
        centred = parts.Affine(model.centre_, np.ones(len(model.centre_)))
        nearest = parts.Nearest(model.reference_, model.n_neighbors_, model.metric)
        return Chain(rows, centred, parts.GraphValues(
            nearest, model.values_, model.width_, LEAST_SIMILARITY))  # fmt: skip
    scale = model.scale_
    scaled = parts.Affine(scale.centre, np.full(len(scale.centre), scale.spread))
    if isinstance(model, OneClass):
        detected = parts.Line(twin(model.detector_), model.cut_, model.spread_)
        return Chain(rows, scaled, detected)
    if isinstance(model, KLDCE):
        return Chain(rows, scaled, *_nystroem(model))
    if isinstance(model, EstimatorPU):
        return Chain(rows, scaled, _scored(model, twin))
    refuse(model, "there is no graph for it")


def _scored(model: Any, answer: Any) -> nn.Module:
    """Return what a method around a classifier makes of the rows it sees."""
    if isinstance(model, PUBagging):
        members = model.estimators_
        on_rows = answer is twin
        mean = mean_twin(members) if on_rows else parts.Mean(list(map(answer, members)))
        return parts.Line(mean, model.cut_)
    margin = answer(model.estimator_)
    if isinstance(model, ElkanNoto) and model.variant == "adjusted":
        return Adjusted(model, margin)
    return margin


def _nystroem(model: KLDCE) -> list[nn.Module]:
    weights = np.ravel(model.weights_)
    line = parts.Linear(weights[:-1], float(weights[-1]))
    if model.variant == "linear":
        return [line]
    kernel = model.kernel_
    landmarks = parts.Kernel(kernel.components_, "rbf", kernel.gamma)
    size = len(kernel.components_)
    return [landmarks, parts.Product(np.zeros(size), kernel.normalization_.T), line]


class Adjusted(parts.Part):
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
        probability = probability.clamp(self.low, self.high)
        odds = torch.log(probability) - torch.log1p(-probability)
        return odds + self.tie * torch.tanh(scores / self.spread)


def calibration_twin(found: Any) -> nn.Module:
    """Return a module for a map from scores to probabilities."""
    if isinstance(found, Isotonic):
        return parts.Steps(found.steps.X_thresholds_, found.steps.y_thresholds_)
    if isinstance(found, Sigmoid):
        slope = float(found.line.coef_[0, 0]) / found.spread
        return parts.Logistic(slope, float(found.line.intercept_[0]))
    return parts.Logistic()
