"""Which classes a saved model may hold: denspu's own and some named others.

A file names classes; only those found here are ever imported or made. Everything else
is refused when a model is saved, before anything is written, and again when one is
loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from denspu.persistence import rules

ROOMS = (
    "augment",
    "classifiers",
    "density",
    "detectors",
    "encoders",
    "methods",
    "networks",
    "priors",
    "refinement",
    "selection",
)
"""Parts of denspu whose classes a model may hold."""

OWN = (
    "denspu._scores:HiddenPositive",
    "denspu._scores:Isotonic",
    "denspu._progress:Stage",
    "denspu._progress:Stages",
    "denspu.metrics._pu:Figure",
    "denspu.metrics._pu:PUReport",
    "denspu.metrics._decisions:ThresholdChoice",
    "denspu.training.hooks:History",
)
"""Classes of denspu from elsewhere."""

Rule = Callable[[Any], None]


def _under(
    module: str, names: str, rule: Rule = rules.checks_itself
) -> dict[str, Rule]:
    return {f"{module}:{name}": rule for name in names.split()}


SKLEARN: Mapping[str, Rule] = {
    **_under("sklearn.cluster", "KMeans", rules.centres),
    **_under("sklearn.compose", "ColumnTransformer"),
    **_under("sklearn.decomposition", "PCA TruncatedSVD"),
    **_under("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis"),
    **_under(
        "sklearn.ensemble",
        "ExtraTreesClassifier RandomForestClassifier",
        rules.forest_owner,
    ),
    **_under("sklearn.ensemble", "HistGradientBoostingClassifier", rules.boosting),
    **_under(
        "sklearn.feature_extraction.text",
        "CountVectorizer TfidfVectorizer",
        rules.words,
    ),
    **_under("sklearn.feature_extraction.text", "TfidfTransformer"),
    **_under("sklearn.impute", "MissingIndicator SimpleImputer"),
    **_under("sklearn.isotonic", "IsotonicRegression"),
    **_under("sklearn.kernel_approximation", "Nystroem"),
    **_under("sklearn.linear_model", "LogisticRegression"),
    **_under("sklearn.mixture", "GaussianMixture"),
    **_under("sklearn.naive_bayes", "GaussianNB"),
    **_under("sklearn.neighbors", "KernelDensity", rules.density),
    **_under(
        "sklearn.neighbors", "KNeighborsClassifier LocalOutlierFactor", rules.neighbours
    ),
    **_under("sklearn.pipeline", "FeatureUnion Pipeline"),
    **_under(
        "sklearn.preprocessing",
        "LabelEncoder MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder "
        "OrdinalEncoder RobustScaler StandardScaler",
    ),
    **_under("sklearn.svm", "LinearSVC"),
    **_under("sklearn.svm", "OneClassSVM SVC", rules.kernel_machine),
    **_under(
        "sklearn.tree", "DecisionTreeClassifier ExtraTreeClassifier", rules.tree_owner
    ),
}
"""Estimators of scikit-learn, under their public names, each with its rule."""

INSIDE: Mapping[str, Rule] = {
    **_under("numpy.random", "Generator RandomState"),  # checked before they are made
    **_under("scipy.sparse", "csr_array csr_matrix"),  # check_format looks at all
    **_under("sklearn._loss._loss", "CyHalfBinomialLoss"),
    **_under("sklearn._loss.link", "Interval LogitLink"),
    **_under("sklearn._loss.loss", "HalfBinomialLoss"),
    **_under("sklearn.ensemble._hist_gradient_boosting.binning", "_BinMapper"),
    **_under(
        "sklearn.ensemble._hist_gradient_boosting.predictor",
        "TreePredictor",
        rules.boosted_tree,
    ),
    **_under("sklearn.neighbors", "BallTree KDTree"),  # built again from their rows
    **_under("sklearn.tree._tree", "Tree", rules.tree),
}
"""What those estimators are made of."""

LAYERS: Mapping[str, Rule] = _under(
    "torch.nn",
    "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool1d AdaptiveMaxPool2d AvgPool1d "
    "AvgPool2d BatchNorm1d BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d "
    "ConvTranspose1d ConvTranspose2d Dropout Dropout1d Dropout2d ELU Embedding Flatten "
    "GELU GroupNorm Hardswish Identity InstanceNorm1d InstanceNorm2d LayerNorm "
    "LeakyReLU Linear LogSigmoid MaxPool1d MaxPool2d Mish ModuleDict ModuleList PReLU "
    "ReLU ReLU6 SELU Sequential SiLU Sigmoid Softmax Softplus Tanh Unflatten Upsample "
    "ZeroPad2d",
    rules.layer,
)
"""Layers of torch that networks, also a user's own, may be built of."""

OTHERS: Mapping[str, Rule] = {**SKLEARN, **INSIDE, **LAYERS}

OWN_RULES: Mapping[str, Rule] = {
    "denspu.detectors.forest:Forest": rules.forest,
    "denspu.detectors.isolation_forest:ExtendedIsolationForest": rules.detector_forest,
    "denspu.detectors.isolation_forest:IsolationForest": rules.detector_forest,
    "denspu.classifiers:VGG16Classifier": rules.image_side,
    "denspu.encoders.cae:CAEEncoder": rules.image_side,
    "denspu.encoders.contrastive:ContrastiveEncoder": rules.image_side,
}
"""Of our classes, those that lead compiled code or ask for memory by a number."""

MOVED: Mapping[str, str] = {
    "denspu._evidence:Evidence": "denspu.methods._evidence:Evidence",
    "denspu._rising:HiddenPositive": "denspu._scores:HiddenPositive",
    "denspu._rising:Isotonic": "denspu._scores:Isotonic",
    "denspu._stages:Stage": "denspu._progress:Stage",
    "denspu._stages:Stages": "denspu._progress:Stages",
    "denspu.augment.images:ImageAugment": "denspu.augment:ImageAugment",
    "denspu.augment.images:ImagePreset": "denspu.augment:ImagePreset",
    "denspu.augment.rows:RowAugment": "denspu.augment:RowAugment",
    "denspu.classifiers.backbone:BackboneClassifier": (
        "denspu.classifiers:BackboneClassifier"
    ),
    "denspu.classifiers.vgg16:VGG16Classifier": "denspu.classifiers:VGG16Classifier",
    "denspu.density.interpolation:LiteralVariance": "denspu.density:LiteralVariance",
    "denspu.density.interpolation:Midpoint": "denspu.density:Midpoint",
    "denspu.density.interpolation:Mixup": "denspu.density:Mixup",
    "denspu.density.none:NoDensity": "denspu.density:NoDensity",
    "denspu.density.sphere:GreatCircle": "denspu.density:GreatCircle",
    "denspu.detectors.extended_isolation_forest:ExtendedIsolationForest": (
        "denspu.detectors.isolation_forest:ExtendedIsolationForest"
    ),
    "denspu.detectors.forest.arrays:Forest": "denspu.detectors.forest:Forest",
    "denspu.detectors.knn:KNNDistance": "denspu.detectors.neighbours:KNNDistance",
    "denspu.detectors.local_outlier_factor:LocalOutlierFactor": (
        "denspu.detectors.classical:LocalOutlierFactor"
    ),
    "denspu.detectors.mahalanobis:Mahalanobis": (
        "denspu.detectors.classical:Mahalanobis"
    ),
    "denspu.detectors.one_class_svm:OneClassSVM": (
        "denspu.detectors.classical:OneClassSVM"
    ),
    "denspu.detectors.sphere_density:SphereDensity": (
        "denspu.detectors.neighbours:SphereDensity"
    ),
    "denspu.encoders.identity:IdentityEncoder": (
        "denspu.encoders.tabular:IdentityEncoder"
    ),
    "denspu.encoders.sentence:SentenceEncoder": "denspu.encoders.text:SentenceEncoder",
    "denspu.methods._calibration:Sigmoid": "denspu.methods._classical:Sigmoid",
    "denspu.methods._estimator:RowScale": "denspu.methods._classical:RowScale",
    "denspu.methods._kernel:Choice": "denspu.methods.upu:Choice",
    "denspu.methods._several:MeanLogit": "denspu.methods.self_pu:MeanLogit",
    "denspu.metrics._pu_threshold:ThresholdChoice": (
        "denspu.metrics._decisions:ThresholdChoice"
    ),
    "denspu.networks.cae:ConvAutoencoder": "denspu.encoders.cae:ConvAutoencoder",
    "denspu.networks.backbones:FlatMLP": "denspu.networks.backbones:MLP",
    "denspu.networks.contrastive:OnSphere": "denspu.networks.backbones:OnSphere",
    "denspu.networks.contrastive:Standardised": (
        "denspu.networks.backbones:Standardised"
    ),
    "denspu.networks.heads:ContrastiveModel": (
        "denspu.networks.backbones:ContrastiveModel"
    ),
    "denspu.networks.heads:OnSphere": "denspu.networks.backbones:OnSphere",
    "denspu.networks.heads:OneLogit": "denspu.networks.backbones:OneLogit",
    "denspu.networks.heads:Projector": "denspu.networks.backbones:Projector",
    "denspu.networks.heads:Standardised": "denspu.networks.backbones:Standardised",
    "denspu.networks.heads:WithMirror": "denspu.networks.backbones:WithMirror",
    "denspu.networks.kernel:GaussianBasis": "denspu.networks.backbones:GaussianBasis",
    "denspu.networks.kernel:KernelModel": "denspu.networks.backbones:KernelModel",
    "denspu.networks.mlp:MLP": "denspu.networks.backbones:MLP",
    "denspu.networks.mlp:Projector": "denspu.networks.backbones:Projector",
    "denspu.networks.pixels:PixelScale": "denspu.networks.backbones:PixelScale",
    "denspu.networks.resnet:ResNet": "denspu.networks.backbones:ResNet",
    "denspu.networks.resnet:ResidualBlock": "denspu.networks.backbones:ResidualBlock",
    "denspu.networks.vgg:VGG16": "denspu.networks.backbones:VGG16",
    "denspu.priors._report:PriorReport": "denspu.priors.estimate:PriorReport",
    "denspu.priors.bbe:BestBin": "denspu.priors.by_scores:BestBin",
    "denspu.priors.dedpul:DEDPUL": "denspu.priors.by_scores:DEDPUL",
    "denspu.priors.density_ratio:DensityRatioPrior": (
        "denspu.priors.by_scores:DensityRatioPrior"
    ),
    "denspu.priors.density_ratio:PriorEstimate": (
        "denspu.priors.by_scores:PriorEstimate"
    ),
    "denspu.priors.elkan_noto:ElkanNoto": "denspu.priors.by_scores:ElkanNoto",
    "denspu.priors.km2:KM2": "denspu.priors.by_features:KM2",
    "denspu.priors.mixture:Mixture": "denspu.priors.by_scores:Mixture",
    "denspu.priors.pen_l1:PenL1": "denspu.priors.by_features:PenL1",
    "denspu.priors.tice:TIcE": "denspu.priors.by_features:TIcE",
    "denspu.refinement.committee:Axes": "denspu.refinement.embedding:Axes",
    "denspu.refinement.committee:Committee": "denspu.refinement.embedding:Committee",
    "denspu.refinement.committee:Scale": "denspu.refinement.embedding:Scale",
    "denspu.refinement.margins:Scale": "denspu.refinement.embedding:Scale",
    "denspu.refinement.rows:Axes": "denspu.refinement.embedding:Axes",
    "denspu.selection.selectors:ByDistance": "denspu.selection:ByDistance",
    "denspu.selection.selectors:ByScore": "denspu.selection:ByScore",
    "denspu.selection.selectors:RandomLeftover": "denspu.selection:RandomLeftover",
    "denspu.selection.selectors:RandomUnlabeled": "denspu.selection:RandomUnlabeled",
    "denspu.training.history:History": "denspu.training.hooks:History",
}
"""Classes that older models name where they lay then → where they are now."""

NAMED = frozenset((*OWN, *OTHERS))

_OWN_NAME = re.compile(r"denspu\.(\w+)((?:\.\w+)*):(\w+)", re.ASCII)


def check(name: str, thing: Any) -> None:
    """Hold an object against the rule of its class; raise ``ValueError``."""
    rule = OTHERS.get(name) or OWN_RULES.get(name)
    if rule is not None:
        rule(thing)


def name_of(cls: type) -> str | None:
    """Return the name under which a class may be saved, or None if it may not."""
    own = f"{cls.__module__}:{cls.__qualname__}"
    known = [own] if own in NAMED or _OWN_NAME.fullmatch(own) else []
    package = cls.__module__.partition(".")[0]
    known += [
        name
        for name in NAMED
        if name.endswith(f":{cls.__name__}") and name.startswith(f"{package}.")
    ]
    return next((name for name in known if find(name) is cls), None)


def current(name: str) -> str:
    """Return the name that a class has today."""
    return MOVED.get(name, name)


def find(name: str) -> type | None:
    """Return the class of that name if models may hold it, else None.

    Nothing outside the list is imported, whatever the name says.
    """
    name = current(name)
    own = _OWN_NAME.fullmatch(name)
    if name not in NAMED and not (own and own[1] in ROOMS):
        return None
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute, None)
    except ModuleNotFoundError:
        return None
    if not isinstance(found, type):
        return None
    return found if name in NAMED or found.__module__ == module else None
