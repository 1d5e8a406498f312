"""Which classes a saved model may hold, and what must be true of each.

A file names classes; only those found here are ever imported or made: denspu's own and
some named others. Everything else is refused when a model is saved, before anything is
written, and again when one is loaded.

NumPy, SciPy and torch check the bounds of what they are given; the compiled parts of
scikit-learn, libsvm and numba do not. A hostile file must not lead these outside their
arrays, so every class of another package has a rule: a function that raises
``ValueError``, or ``_checks_itself``. Rules hold for saving too: what could not be
loaded is never written.

Most objects are their attributes. Compiled ones have a form of their own: how one is
taken apart into named values, and made again without its code.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from denspu.exceptions import ModelVersionWarning

Rule = Callable[[Any], None]
State = dict[str, Any]

FLOATS = ("float32", "float64")
LARGEST_SIDE = 4096
"""Of an image, a padding or a pooled grid inside a stored network."""


def require(holds: Any, what: str) -> None:
    """Raise if something cannot be right."""
    if not holds:
        raise ValueError(f"{what} cannot be right")


def _is_array(value: Any, shape: tuple[Any, ...], *dtypes: str) -> bool:
    """Tell whether a value is an array of one of these types, row after row.

    ``...`` in the shape stands for any length: no file can hold it.
    """
    return (
        type(value) is np.ndarray
        and str(value.dtype) in dtypes
        and bool(value.flags.c_contiguous)
        and value.ndim == len(shape)
        and all(n is ... or n == m for n, m in zip(shape, value.shape, strict=True))
    )


def _width(model: Any) -> int:
    """Return the number of columns a fitted estimator says it takes."""
    width = vars(model).get("n_features_in_")
    require(type(width) is int and width > 0, "number of columns")
    return int(width)


def _checks_itself(thing: Any) -> None:
    """Let pass what only NumPy, SciPy, torch and Python code follow."""


# --- rules for scikit-learn ----------------------------------------------------------


def _walk(nodes: Any, inner: Any, names: tuple[str, str, str], width: float) -> None:
    """Check that nodes lead onwards, and look at columns that are there."""
    here = np.arange(len(nodes))[inner]
    left, right, feature = (nodes[name][inner].astype(np.int64) for name in names)
    for child in (left, right):
        inside = (child > here) & (child < len(nodes))
        require(inside.all(), "children of a tree")
    require(((feature >= 0) & (feature < width)).all(), "features of a tree")


def _tree(thing: Any) -> None:
    state = thing.__getstate__()
    nodes = state["nodes"]
    inner = nodes["left_child"] != -1
    require(len(nodes) > 0, "nodes of a tree")
    require((inner == (nodes["right_child"] != -1)).all(), "children of a tree")
    _walk(nodes, inner, ("left_child", "right_child", "feature"), thing.n_features)
    require(0 <= state["max_depth"] < len(nodes), "depth of a tree")


def _tree_owner(model: Any) -> None:
    if hasattr(model, "tree_"):
        require(model.tree_.n_features == _width(model), "features of a tree")


def _forest_owner(model: Any) -> None:
    for member in getattr(model, "estimators_", []):
        require(hasattr(member, "tree_"), "trees of a forest")
        require(_width(member) == _width(model), "features of a tree")


def _boosting(model: Any) -> None:
    if hasattr(model, "_predictors"):
        require(vars(model).get("_preprocessor") is None, "preprocessor")
        for member in (m for members in model._predictors for m in members):
            _boosted_tree(member, _width(model))


def _boosted_tree(predictor: Any, width: float = np.inf) -> None:
    """Check one tree; splits by category are not kept."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = predictor.nodes
    require(type(nodes) is np.ndarray, "nodes of a boosted tree")
    require(nodes.dtype == PREDICTOR_RECORD_DTYPE, "nodes of a boosted tree")
    require(nodes.ndim == 1 and len(nodes) > 0, "nodes of a boosted tree")
    require((nodes["feature_idx"] < width).all(), "features of a tree")
    require(not nodes["is_categorical"].any(), "categories of a boosted tree")
    _walk(nodes, nodes["is_leaf"] == 0, ("left", "right", "feature_idx"), width)
    for held in (predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets):
        require(_is_array(held, (..., ...), "uint32"), "categories of a boosted tree")


def _kernel_machine(model: Any) -> None:
    """Check all that libsvm reads of a fitted support vector machine."""
    if not hasattr(model, "support_vectors_"):
        return
    one_class = not hasattr(model, "classes_")
    n_classes = 2 if one_class else len(model.classes_)
    pairs = n_classes * (n_classes - 1) // 2
    width, held, counts = _width(model), model.support_vectors_, model._n_support
    require(model.kernel in ("linear", "poly", "rbf", "sigmoid"), "kernel")
    require(model._impl == ("one_class" if one_class else "c_svc"), "kind of machine")
    require(model._sparse is False, "support vectors")
    require(_is_array(held, (..., width), "float64"), "support vectors")
    require(width == model.shape_fit_[1], "support vectors")
    require(_is_array(counts, (n_classes,), "int32"), "support vectors")
    require((counts >= 0).all(), "support vectors")
    n_rows = len(held)
    require(n_rows == int(counts[0] if one_class else counts.sum()), "support vectors")
    support = model.support_
    require(_is_array(support, (n_rows,), "int32"), "support vectors")
    inside = (support >= 0) & (support < int(model.shape_fit_[0]))
    require(inside.all(), "support vectors")
    weights = _is_array(model._dual_coef_, (n_classes - 1, n_rows), "float64")
    require(weights, "coefficients")
    require(_is_array(model._intercept_, (pairs,), "float64"), "coefficients")
    for value in (model._probA, model._probB):
        require(_is_array(value, (...,), "float64"), "coefficients")
        require(len(value) in (0, pairs), "coefficients")


def _centres(model: Any) -> None:
    held = vars(model).get("cluster_centers_")
    if held is not None:
        shape = (model.n_clusters, _width(model))
        require(_is_array(held, shape, *FLOATS), "centres")


def _neighbours(model: Any) -> None:
    """Check rows, tree and classes of models that look for near rows."""
    if not hasattr(model, "_fit_X"):
        return
    rows, inside, labels = model._fit_X, model._tree, getattr(model, "_y", None)
    dense = _is_array(rows, (..., ...), *FLOATS)
    require(dense or type(rows).__name__ in ("csr_array", "csr_matrix"), "rows")
    require(rows.shape[1] == _width(model), "width of the rows")
    require(inside is None or inside.data.shape == rows.shape, "neighbour tree")
    if labels is not None:
        shape = (rows.shape[0],)
        require(_is_array(labels, shape, "int64", "int32"), "classes of the rows")
        known = (labels >= 0) & (labels < len(model.classes_))
        require(known.all(), "classes of the rows")


def _density(model: Any) -> None:
    if hasattr(model, "tree_"):
        require(model.tree_.data.shape[1] == _width(model), "width of the rows")


PATTERNS = (None, r"(?u)\b\w\w+\b", r"(?u)\b\w+\b")
"""Of scikit-learn and of denspu; another pattern can take for ever on a text."""


def _words(model: Any) -> None:
    """Check columns of words, and that texts are read neither from files nor slowly."""
    require(model.input == "content", "input of a text encoder")
    require(model.token_pattern in PATTERNS, "token_pattern of a text encoder")
    held = vars(model).get("vocabulary_")
    if held is not None:
        columns = sorted(int(column) for column in held.values())
        require(columns == list(range(len(held))), "columns of the words")


# --- rules for torch and denspu ------------------------------------------------------


def _layer(module: Any) -> None:
    """Refuse sizes in a layer that would ask for all memory."""
    for name in ("output_size", "size", "scale_factor", "padding", "output_padding"):
        held = vars(module).get(name)
        for n in held if isinstance(held, tuple | list) else (held,):
            small = isinstance(n, str | None) or abs(n) <= LARGEST_SIDE
            require(small, f"{name} of a layer")


def _image_side(part: Any) -> None:
    """Refuse the size of images in an encoder that would ask for all memory."""
    side = vars(part).get("image_size")
    small = side is None or (type(side) is int and 0 < side <= LARGEST_SIDE)
    require(small, "image_size")


def _forest(thing: Any) -> None:
    """Check the arrays of denspu's forests, which compiled walks follow."""
    feature, threshold, weight = thing.feature, thing.threshold, thing.weight
    require(_is_array(threshold, (..., ...), *FLOATS), "thresholds of the trees")
    shape = threshold.shape
    require(shape[1] & (shape[1] - 1) == 0 and shape[1] > 1, "depth of the trees")
    require(_is_array(thing.path, shape, "float64"), "paths of the trees")
    require(_is_array(feature, (*shape, ...), "uint32"), "features of the trees")
    require((feature < thing.n_features).all(), "features of the trees")
    if weight is None:
        require(feature.shape[2] == 1, "weights")
    else:
        require(_is_array(weight, feature.shape, str(threshold.dtype)), "weights")


def _detector_forest(detector: Any) -> None:
    if hasattr(detector, "forest_"):
        same = detector.forest_.n_features == _width(detector)
        require(same, "features of the trees")


# --- forms of compiled objects -------------------------------------------------------


class Unsupported(ValueError):
    """An object holds something that cannot be kept; the text says what."""


def _tree_state(tree: Any) -> State:
    _, (n_features, n_classes, n_outputs), state = tree.__reduce__()
    sizes = {"n_features": int(n_features), "n_outputs": int(n_outputs)}
    return {**state, **sizes, "n_classes": np.asarray(n_classes)}


def _made_tree(cls: type, state: State) -> Any:
    count, n_classes = state["node_count"], state["n_classes"]
    require(len(state["nodes"]) == count > 0, "nodes of a tree")
    n_classes = np.ascontiguousarray(n_classes, dtype=np.intp)
    require(n_classes.shape == (state["n_outputs"],), "classes of a tree")
    require(n_classes.max() == state["values"].shape[-1], "classes of a tree")
    tree = cls(state["n_features"], n_classes, state["n_outputs"])
    kept = ("max_depth", "node_count", "nodes", "values")
    tree.__setstate__({name: state[name] for name in kept})
    return tree


METRICS = ("euclidean", "manhattan", "chebyshev")
"""Distances of a neighbour tree that can be kept."""


def _neighbour_tree_state(tree: Any) -> State:
    state = tree.__getstate__()
    metric = type(state[11]).__name__.removesuffix("Distance64").lower()
    if metric not in METRICS:
        raise Unsupported(
            f"uses another distance than {', '.join(METRICS)}, and cannot be kept"
        )
    return {
        "data": np.asarray(tree.data),
        "order": np.asarray(state[1]),
        "leaf_size": int(state[4]),
        "metric": metric,
        "weights": None if state[12] is None else np.asarray(state[12]),
    }


def _made_neighbour_tree(cls: type, state: State) -> Any:
    """Build the tree again from its rows."""
    require(state["metric"] in METRICS, "distance of a neighbour tree")
    given = {name: state[name] for name in ("leaf_size", "metric")}
    tree: Any = cls(state["data"], **given, sample_weight=state["weights"])
    if not np.array_equal(np.asarray(tree.__getstate__()[1]), state["order"]):
        warnings.warn(
            "A neighbour tree came out in another order than it was saved in: answers "
            "may differ in their last digits. Use the versions named in config.json.",
            ModelVersionWarning,
            stacklevel=2,
        )
    return tree


def _csr_state(matrix: Any) -> State:
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    return {**parts, "shape": tuple(map(int, matrix.shape))}


def _made_csr(cls: type, state: State) -> Any:
    parts = (state["data"], state["indices"], state["indptr"])
    matrix: Any = cls(parts, shape=state["shape"])
    matrix.check_format(full_check=True)
    return matrix


def _made_isotonic(cls: type, state: State) -> Any:
    model: Any = object.__new__(cls)
    set_attributes(model, state)
    if hasattr(model, "X_thresholds_"):
        model._build_f(model.X_thresholds_, model.y_thresholds_)
    return model


BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


def _generator_state(generator: Any) -> State:
    kind = type(generator.bit_generator).__name__
    if kind not in BIT_GENERATORS:
        raise Unsupported(f"draws from {kind}; kept are {', '.join(BIT_GENERATORS)}")
    return {"kind": kind, "state": generator.bit_generator.state}


def _made_generator(cls: type, state: State) -> Any:
    return cls(_random_bits(state["kind"], state["state"]))


def _random_state_state(generator: Any) -> State:
    state = generator.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise Unsupported("is a RandomState that does not draw from MT19937")
    return {"state": state}


def _made_random_state(cls: type, state: State) -> Any:
    generator = cls(_random_bits("MT19937", state["state"]))
    generator.set_state(state["state"])  # with the normal number in hand
    return generator


def _random_bits(kind: str, state: Any) -> Any:
    """Return bits to draw from; a place outside their buffer is refused."""
    require(kind in BIT_GENERATORS, "kind of a random generator")
    if kind == "MT19937":
        held = state["state"]
        require(0 <= held["pos"] <= 624, "position of a random generator")
        require(np.shape(held["key"]) == (624,), "state of a random generator")
    if kind == "Philox":
        require(0 <= state["buffer_pos"] <= 4, "position of a random generator")
    bits = getattr(np.random, kind)()
    bits.state = {name: state[name] for name in bits.state}
    return bits


def set_attributes(thing: Any, state: State) -> None:
    """Set the attributes of an object, and nothing that Python reads of its own."""
    for name, value in state.items():
        if not name.isidentifier() or name.startswith("__"):
            raise ValueError(f"{name!r} is no name of an attribute")
        thing.__dict__[name] = value


FORMS: Mapping[str, tuple[Callable[[Any], State], Callable[[type, State], Any]]] = {
    "numpy.random:Generator": (_generator_state, _made_generator),
    "numpy.random:RandomState": (_random_state_state, _made_random_state),
    "scipy.sparse:csr_array": (_csr_state, _made_csr),
    "scipy.sparse:csr_matrix": (_csr_state, _made_csr),
    "sklearn._loss._loss:CyHalfBinomialLoss": (
        lambda thing: {},
        lambda cls, state: cls(),
    ),
    "sklearn.isotonic:IsotonicRegression": (
        lambda model: {k: v for k, v in vars(model).items() if k != "f_"},
        _made_isotonic,
    ),
    "sklearn.neighbors:BallTree": (_neighbour_tree_state, _made_neighbour_tree),
    "sklearn.neighbors:KDTree": (_neighbour_tree_state, _made_neighbour_tree),
    "sklearn.tree._tree:Tree": (_tree_state, _made_tree),
}
"""How compiled objects are taken apart into named values, and made of them again."""


# --- the classes ---------------------------------------------------------------------


def _each(package: str, *rows: tuple[str, Rule, str]) -> dict[str, Rule]:
    return {
        f"{package}.{module}:{name}": rule
        for module, rule, names in rows
        for name in names.split()
    }


SKLEARN: Mapping[str, Rule] = _each(
    "sklearn",
    ("cluster", _centres, "KMeans"),
    ("compose", _checks_itself, "ColumnTransformer"),
    ("decomposition", _checks_itself, "PCA TruncatedSVD"),
    ("discriminant_analysis", _checks_itself, "LinearDiscriminantAnalysis"),
    ("ensemble", _forest_owner, "ExtraTreesClassifier RandomForestClassifier"),
    ("ensemble", _boosting, "HistGradientBoostingClassifier"),
    ("feature_extraction.text", _words, "CountVectorizer TfidfVectorizer"),
    ("feature_extraction.text", _checks_itself, "TfidfTransformer"),
    ("impute", _checks_itself, "MissingIndicator SimpleImputer"),
    ("isotonic", _checks_itself, "IsotonicRegression"),
    ("kernel_approximation", _checks_itself, "Nystroem"),
    ("linear_model", _checks_itself, "LogisticRegression"),
    ("mixture", _checks_itself, "GaussianMixture"),
    ("naive_bayes", _checks_itself, "GaussianNB"),
    ("neighbors", _density, "KernelDensity"),
    ("neighbors", _neighbours, "KNeighborsClassifier LocalOutlierFactor"),
    ("pipeline", _checks_itself, "FeatureUnion Pipeline"),
    ("preprocessing", _checks_itself, "LabelEncoder MaxAbsScaler MinMaxScaler"),
    ("preprocessing", _checks_itself, "Normalizer OneHotEncoder OrdinalEncoder"),
    ("preprocessing", _checks_itself, "RobustScaler StandardScaler"),
    ("svm", _checks_itself, "LinearSVC"),
    ("svm", _kernel_machine, "OneClassSVM SVC"),
    ("tree", _tree_owner, "DecisionTreeClassifier ExtraTreeClassifier"),
)
"""Estimators of scikit-learn, under their public names, each with its rule."""

INSIDE: Mapping[str, Rule] = {
    **_each("numpy", ("random", _checks_itself, "Generator RandomState")),
    **_each("scipy", ("sparse", _checks_itself, "csr_array csr_matrix")),
    **_each(
        "sklearn",
        ("_loss._loss", _checks_itself, "CyHalfBinomialLoss"),
        ("_loss.link", _checks_itself, "Interval LogitLink"),
        ("_loss.loss", _checks_itself, "HalfBinomialLoss"),
        ("ensemble._hist_gradient_boosting.binning", _checks_itself, "_BinMapper"),
        ("ensemble._hist_gradient_boosting.predictor", _boosted_tree, "TreePredictor"),
        ("neighbors", _checks_itself, "BallTree KDTree"),
        ("tree._tree", _tree, "Tree"),
    ),
}
"""What those estimators are made of; ``FORMS`` checks some before they are made."""

LAYERS: Mapping[str, Rule] = _each(
    "torch",
    (
        "nn",
        _layer,
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool1d AdaptiveMaxPool2d "
        "AvgPool1d AvgPool2d BatchNorm1d BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d "
        "ConvTranspose1d ConvTranspose2d Dropout Dropout1d Dropout2d ELU Embedding "
        "Flatten GELU GroupNorm Hardswish Identity InstanceNorm1d InstanceNorm2d "
        "LayerNorm LeakyReLU Linear LogSigmoid MaxPool1d MaxPool2d Mish ModuleDict "
        "ModuleList PReLU ReLU ReLU6 SELU Sequential SiLU Sigmoid Softmax Softplus "
        "Tanh Unflatten Upsample ZeroPad2d",
    ),
)
"""Layers of torch that networks, also a user's own, may be built of."""

ROOMS = (
    *("augment", "classifiers", "density", "detectors", "encoders", "methods"),
    *("networks", "priors", "refinement", "selection"),
)
"""Parts of denspu whose classes a model may hold."""

OWN: Mapping[str, Rule] = _each(
    "denspu",
    ("_share", _checks_itself, "HiddenPositive Isotonic"),
    ("_progress", _checks_itself, "Stage Stages"),
    ("metrics._pu", _checks_itself, "Figure PUReport"),
    ("metrics._decisions", _checks_itself, "ThresholdChoice"),
    ("training.hooks", _checks_itself, "History"),
)
"""Classes of denspu from elsewhere."""

OWN_RULES: Mapping[str, Rule] = _each(
    "denspu",
    ("detectors.forest", _forest, "Forest"),
    ("detectors.isolation_forest", _detector_forest, "ExtendedIsolationForest"),
    ("detectors.isolation_forest", _detector_forest, "IsolationForest"),
    ("classifiers", _image_side, "VGG16Classifier"),
    ("encoders.cae", _image_side, "CAEEncoder"),
    ("encoders.contrastive", _image_side, "ContrastiveEncoder"),
)
"""Of our classes, those that lead compiled code or ask for memory by a number."""

FOREIGN: Mapping[str, Rule] = {**SKLEARN, **INSIDE, **LAYERS}
NAMED = frozenset((*OWN, *FOREIGN))
RULES: Mapping[str, Rule] = {**OWN_RULES, **FOREIGN}

MOVED: Mapping[str, str] = {
    "_progress": "_stages",
    "_share": "_rising _scores",
    "augment": "augment.images augment.rows",
    "classifiers": "classifiers.backbone classifiers.vgg16",
    "density": "density.interpolation density.none density.sphere",
    "detectors.classical": (
        "detectors.local_outlier_factor detectors.mahalanobis detectors.one_class_svm"
    ),
    "detectors.forest": "detectors.forest.arrays",
    "detectors.isolation_forest": "detectors.extended_isolation_forest",
    "detectors.neighbours": (
        "detectors.density_ratio detectors.knn detectors.sphere_density"
    ),
    "encoders.cae": "networks.cae",
    "encoders.tabular": "encoders.identity",
    "encoders.text": "encoders.sentence",
    "methods._classical": "methods._calibration methods._estimator",
    "methods._evidence": "_evidence",
    "methods.self_pu": "methods._several",
    "methods.upu": "methods._kernel",
    "metrics._decisions": "metrics._pu_threshold",
    "networks.backbones": (
        "networks.contrastive networks.heads networks.kernel networks.mlp "
        "networks.pixels networks.resnet networks.vgg"
    ),
    "priors.by_features": "priors.km2 priors.pen_l1 priors.tice",
    "priors.by_scores": (
        "priors.bbe priors.dedpul priors.density_ratio priors.elkan_noto priors.mixture"
    ),
    "priors.estimate": "priors._report",
    "refinement.embedding": ("refinement.committee refinement.margins refinement.rows"),
    "selection": "selection.selectors",
    "training.hooks": "training.history",
}
"""Modules of denspu ← where older models say that their classes lie."""

RENAMED: Mapping[str, str] = {
    "denspu.networks.backbones:FlatMLP": "denspu.networks.backbones:MLP"
}
"""What older models call a class that moved alone → what it is called now."""

_NOW = {f"denspu.{old}": f"denspu.{new}" for new in MOVED for old in MOVED[new].split()}
_OWN_NAME = re.compile(r"denspu\.(\w+)(?:\.\w+)*:\w+", re.ASCII)


def check(name: str, thing: Any) -> None:
    """Hold an object against the rule of its class; raise ``ValueError``."""
    RULES.get(name, _checks_itself)(thing)


def take_back_settings(thing: Any) -> None:
    """Take back settings that would start processes, or read and write files."""
    held = getattr(thing, "__dict__", {})
    most = os.cpu_count() or 1
    for name, otherwise in (("n_jobs", None), ("_n_threads", 1)):
        value = held.get(name)
        if name in held and not (type(value) is int and -1 <= value <= most):
            held[name] = otherwise
    if "memory" in held and "steps" in held:  # a Pipeline's cache holds pickles
        held["memory"] = None


def name_of(cls: type) -> str | None:
    """Return the name under which a class may be saved, or None if it may not."""
    start, end = f"{cls.__module__.partition('.')[0]}.", f":{cls.__name__}"
    public = [n for n in NAMED if n.startswith(start) and n.endswith(end)]
    names = (f"{cls.__module__}:{cls.__qualname__}", *public)
    return next((name for name in names if find(name) is cls), None)


def current(name: str) -> str:
    """Return the name that a class has today."""
    module, mark, cls = name.partition(":")
    return RENAMED.get(name, f"{_NOW.get(module, module)}{mark}{cls}")


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
    known = isinstance(found, type) and (name in NAMED or found.__module__ == module)
    return found if known else None
