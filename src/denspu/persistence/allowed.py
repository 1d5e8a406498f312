"""Which classes a saved model may hold: denspu's own and some named others.

A file names classes; only those found here are ever imported or made. Everything else
is refused when a model is saved, before anything is written, and again when one is
loaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module

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
"""Folders of denspu whose classes a model may hold."""

OWN = (
    "denspu._evidence:Evidence",
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

SKLEARN = (
    "sklearn.cluster:KMeans",
    "sklearn.compose:ColumnTransformer",
    "sklearn.decomposition:PCA",
    "sklearn.decomposition:TruncatedSVD",
    "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
    "sklearn.ensemble:ExtraTreesClassifier",
    "sklearn.ensemble:HistGradientBoostingClassifier",
    "sklearn.ensemble:RandomForestClassifier",
    "sklearn.feature_extraction.text:CountVectorizer",
    "sklearn.feature_extraction.text:TfidfTransformer",
    "sklearn.feature_extraction.text:TfidfVectorizer",
    "sklearn.impute:MissingIndicator",
    "sklearn.impute:SimpleImputer",
    "sklearn.isotonic:IsotonicRegression",
    "sklearn.kernel_approximation:Nystroem",
    "sklearn.linear_model:LogisticRegression",
    "sklearn.mixture:GaussianMixture",
    "sklearn.naive_bayes:GaussianNB",
    "sklearn.neighbors:KernelDensity",
    "sklearn.neighbors:KNeighborsClassifier",
    "sklearn.neighbors:LocalOutlierFactor",
    "sklearn.pipeline:FeatureUnion",
    "sklearn.pipeline:Pipeline",
    "sklearn.preprocessing:LabelEncoder",
    "sklearn.preprocessing:MaxAbsScaler",
    "sklearn.preprocessing:MinMaxScaler",
    "sklearn.preprocessing:Normalizer",
    "sklearn.preprocessing:OneHotEncoder",
    "sklearn.preprocessing:OrdinalEncoder",
    "sklearn.preprocessing:RobustScaler",
    "sklearn.preprocessing:StandardScaler",
    "sklearn.svm:LinearSVC",
    "sklearn.svm:OneClassSVM",
    "sklearn.svm:SVC",
    "sklearn.tree:DecisionTreeClassifier",
    "sklearn.tree:ExtraTreeClassifier",
)
"""Estimators of scikit-learn, under their public names."""

INSIDE = (
    "numpy.random:Generator",
    "numpy.random:RandomState",
    "scipy.sparse:csr_array",
    "scipy.sparse:csr_matrix",
    "sklearn._loss._loss:CyHalfBinomialLoss",
    "sklearn._loss.link:Interval",
    "sklearn._loss.link:LogitLink",
    "sklearn._loss.loss:HalfBinomialLoss",
    "sklearn.ensemble._hist_gradient_boosting.binning:_BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor:TreePredictor",
    "sklearn.neighbors:BallTree",
    "sklearn.neighbors:KDTree",
    "sklearn.tree._tree:Tree",
)
"""What those estimators are made of."""

LAYERS = tuple(
    f"torch.nn:{name}"
    for name in [
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
        "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d",
        "AvgPool1d",
        "AvgPool2d",
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose1d",
        "ConvTranspose2d",
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "ELU",
        "Embedding",
        "Flatten",
        "GELU",
        "GroupNorm",
        "Hardswish",
        "Identity",
        "InstanceNorm1d",
        "InstanceNorm2d",
        "LayerNorm",
        "LeakyReLU",
        "Linear",
        "LogSigmoid",
        "MaxPool1d",
        "MaxPool2d",
        "Mish",
        "ModuleDict",
        "ModuleList",
        "PReLU",
        "ReLU",
        "ReLU6",
        "SELU",
        "Sequential",
        "SiLU",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Tanh",
        "Unflatten",
        "Upsample",
        "ZeroPad2d",
    ]
)
"""Layers of torch that networks, also a user's own, may be built of."""

MOVED: Mapping[str, str] = {
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
    "denspu.encoders.identity:IdentityEncoder": (
        "denspu.encoders.tabular:IdentityEncoder"
    ),
    "denspu.methods._calibration:Sigmoid": "denspu.methods._classical:Sigmoid",
    "denspu.methods._estimator:RowScale": "denspu.methods._classical:RowScale",
    "denspu.methods._kernel:Choice": "denspu.methods.upu:Choice",
    "denspu.methods._several:MeanLogit": "denspu.methods.self_pu:MeanLogit",
    "denspu.metrics._pu_threshold:ThresholdChoice": (
        "denspu.metrics._decisions:ThresholdChoice"
    ),
    "denspu.networks.cae:ConvAutoencoder": "denspu.encoders.cae:ConvAutoencoder",
    "denspu.networks.contrastive:OnSphere": "denspu.networks.heads:OnSphere",
    "denspu.networks.contrastive:Standardised": "denspu.networks.heads:Standardised",
    "denspu.networks.kernel:GaussianBasis": "denspu.networks.backbones:GaussianBasis",
    "denspu.networks.kernel:KernelModel": "denspu.networks.backbones:KernelModel",
    "denspu.networks.mlp:MLP": "denspu.networks.backbones:MLP",
    "denspu.networks.mlp:Projector": "denspu.networks.heads:Projector",
    "denspu.networks.resnet:ResNet": "denspu.networks.backbones:ResNet",
    "denspu.networks.resnet:ResidualBlock": "denspu.networks.backbones:ResidualBlock",
    "denspu.networks.vgg:VGG16": "denspu.networks.backbones:VGG16",
    "denspu.priors._report:PriorReport": "denspu.priors.estimate:PriorReport",
    "denspu.priors.bbe:BestBin": "denspu.priors.by_scores:BestBin",
    "denspu.priors.dedpul:DEDPUL": "denspu.priors.by_scores:DEDPUL",
    "denspu.priors.elkan_noto:ElkanNoto": "denspu.priors.by_scores:ElkanNoto",
    "denspu.priors.km2:KM2": "denspu.priors.by_features:KM2",
    "denspu.priors.mixture:Mixture": "denspu.priors.by_scores:Mixture",
    "denspu.priors.pen_l1:PenL1": "denspu.priors.by_features:PenL1",
    "denspu.priors.tice:TIcE": "denspu.priors.by_features:TIcE",
    "denspu.refinement.margins:Scale": "denspu.refinement.committee:Scale",
    "denspu.refinement.rows:Axes": "denspu.refinement.committee:Axes",
    "denspu.selection.selectors:ByDistance": "denspu.selection:ByDistance",
    "denspu.selection.selectors:ByScore": "denspu.selection:ByScore",
    "denspu.selection.selectors:RandomLeftover": "denspu.selection:RandomLeftover",
    "denspu.selection.selectors:RandomUnlabeled": "denspu.selection:RandomUnlabeled",
    "denspu.training.history:History": "denspu.training.hooks:History",
}
"""Classes that older models name where they lay then → where they are now."""

NAMED = frozenset((*OWN, *SKLEARN, *INSIDE, *LAYERS))

_OWN_NAME = re.compile(r"denspu\.(\w+)((?:\.\w+)*):(\w+)", re.ASCII)


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
