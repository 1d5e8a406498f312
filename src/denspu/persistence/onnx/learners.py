"""Fitted classifiers and detectors on embeddings → modules with their answers.

``twin(part)`` knows them by class; one more is one more function registered here.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

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
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from torch import nn

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
from denspu.detectors.forest import average_path_length
from denspu.methods._classical import SURE
from denspu.methods.spy import GaussianBayes
from denspu.persistence.onnx.parts import kernels, neighbours, trees
from denspu.persistence.onnx.parts.basics import Chain, Mean
from denspu.persistence.onnx.parts.rows import Affine
from denspu.persistence.onnx.parts.scores import Logistic, LogOdds
from denspu.persistence.onnx.refusal import refuse


@singledispatch
def twin(part: Any) -> nn.Module:
    """Return a module that gives a fitted part's answers for embeddings.

    Margins or log-odds for classifiers, normality for detectors.
    """
    refuse(part, "there is no graph for it")


# --- linear and kernel classifiers ---------------------------------------------------


@twin.register(LogisticRegression)
@twin.register(LinearSVC)
def _(part: Any) -> nn.Module:
    return kernels.Linear(part.coef_, float(np.ravel(part.intercept_)[0]))


@twin.register(SVC)
def _(part: SVC) -> nn.Module:
    return _kernel_machine(part, float(part.intercept_[0]))


def _kernel_machine(machine: Any, offset: float) -> nn.Module:
    if machine.kernel not in ("rbf", "linear", "poly", "sigmoid"):
        refuse(machine, f"kernel={machine.kernel!r} is a function of its own")
    kernel = kernels.Kernel(
        machine.support_vectors_,
        machine.kernel,
        machine._gamma,
        machine.degree,
        machine.coef0,
    )
    return Chain(kernel, kernels.Linear(machine.dual_coef_, offset))


def mean_twin(members: list[Any]) -> nn.Module:
    """Return the mean answer of classifiers; Gaussian machines become one of all."""
    if not all(type(m) is SVC and m.kernel == "rbf" for m in members):
        return Mean([twin(member) for member in members])
    gamma = [np.full(len(m.support_vectors_), m._gamma) for m in members]
    rows = np.concatenate([m.support_vectors_ for m in members])
    weights = np.concatenate([np.ravel(m.dual_coef_) for m in members])
    offset = float(np.mean([m.intercept_[0] for m in members]))
    kernel = kernels.Kernel(rows, "rbf", np.concatenate(gamma))
    return Chain(kernel, kernels.Linear(weights / len(members), offset))


@twin.register(GaussianBayes)
def _(part: GaussianBayes) -> nn.Module:
    return kernels.Gaussians(part.mean, part.var, part.offset)


@twin.register(GaussianNB)
def _(part: GaussianNB) -> nn.Module:
    prior = np.log(part.class_prior_)
    gaussians = kernels.Gaussians(part.theta_, part.var_, float(prior[1] - prior[0]))
    return LogOdds(Chain(gaussians, Logistic()), SURE)


# --- steps before a classifier -------------------------------------------------------


@twin.register(StandardScaler)
def _(part: StandardScaler) -> nn.Module:
    n = part.n_features_in_
    centre = np.zeros(n) if part.mean_ is None else part.mean_
    return Affine(centre, np.ones(n) if part.scale_ is None else part.scale_)


@twin.register(Pipeline)
def _(part: Pipeline) -> nn.Module:
    return Chain(*(twin(step) for _, step in part.steps if step != "passthrough"))


# --- trees and neighbours ------------------------------------------------------------


@twin.register(HistGradientBoostingClassifier)
def _(part: HistGradientBoostingClassifier) -> nn.Module:
    grown = []
    for (predictor,) in part._predictors:
        nodes = predictor.nodes
        if nodes["is_categorical"].any():
            refuse(part, "its trees ask for categories")
        grown.append(trees.boosted_tree(nodes))
    return trees.Trees(grown, offset=float(np.ravel(part._baseline_prediction)[0]))


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
    return trees.Trees(
        [trees.voting_tree(tree, column) for tree in grown],
        precision=torch.float32,  # scikit-learn compares rows in single precision
        mean=True,
    )


def _neighbour_votes(part: KNeighborsClassifier, column: int) -> nn.Module:
    euclidean = part.effective_metric_ == "euclidean"
    if not euclidean or part.weights not in ("uniform", "distance"):
        refuse(part, f"metric={part.metric!r} and weights={part.weights!r} have none")
    nearest = neighbours.Nearest(part._fit_X, part.n_neighbors)
    values = (part._y == column).astype(np.float64)
    return neighbours.NearestVotes(nearest, values, part.weights == "distance")


@twin.register(ExtraTreesClassifier)
@twin.register(RandomForestClassifier)
@twin.register(DecisionTreeClassifier)
@twin.register(KNeighborsClassifier)
def _(part: Any) -> nn.Module:
    return LogOdds(votes(part), SURE)


# --- detectors -----------------------------------------------------------------------


@twin.register(OneClassSVM)
def _(part: OneClassSVM) -> nn.Module:
    machine = part.model_
    return _kernel_machine(machine, float(machine.intercept_[0] + machine.offset_[0]))


@twin.register(Mahalanobis)
def _(part: Mahalanobis) -> nn.Module:
    return kernels.Cloud(part.mean_, part.cholesky_)


@twin.register(IsolationForest)
@twin.register(ExtendedIsolationForest)
def _(part: Any) -> nn.Module:
    forest = part.forest_
    path = average_path_length(np.array([forest.n_samples]))[0]
    return trees.HeapForest(forest, forest.n_trees * path)


@twin.register(KNNDistance)
def _(part: KNNDistance) -> nn.Module:
    nearest = neighbours.Nearest(part.reference_, part.n_neighbors_, part.metric)
    return neighbours.NearestDistance(nearest, part.statistic)


@twin.register(SphereDensity)
def _(part: SphereDensity) -> nn.Module:
    return neighbours.SphereDensity(part.reference_, float(part.concentration_))


@twin.register(LocalOutlierFactor)
def _(part: LocalOutlierFactor) -> nn.Module:
    model = part.model_
    if model.effective_metric_ != "euclidean":
        refuse(part, f"metric={model.metric!r} has no graph")
    nearest = neighbours.Nearest(model._fit_X, model.n_neighbors_)
    reach = model._distances_fit_X_[:, model.n_neighbors_ - 1]
    return neighbours.LocalOutlierFactor(nearest, reach, model._lrd)


@twin.register(DensityRatio)
def _(part: DensityRatio) -> nn.Module:
    positives, unlabeled = part.positives_, part.unlabeled_
    if part.around_ == "rows":
        reference = np.concatenate([positives, unlabeled])
        nearest = neighbours.Nearest(reference, part.n_neighbors_, part.metric)
        return neighbours.ShareAmongRows(nearest, len(positives), part.represents_)
    return neighbours.ShareAroundPositives(
        positives, unlabeled, part.n_positives_, part.represents_, part.metric
    )
