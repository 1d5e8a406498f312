"""What must hold of a stored object before compiled code follows its numbers.

NumPy, SciPy and torch check the bounds of what they are given; the compiled parts of
scikit-learn, libsvm and numba do not. A hostile file must not lead these outside their
arrays, so every class of another package that a model may hold has a rule here: a
function that raises ``ValueError``, or :func:`checks_itself`. Rules hold for saving
too: what could not be loaded is never written.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

FLOATS = ("float32", "float64")
LARGEST_SIDE = 4096
"""Of an image, a padding or a pooled grid inside a stored network."""


def require(holds: Any, what: str) -> None:
    """Raise if something cannot be right."""
    if not holds:
        raise ValueError(f"{what} cannot be right")


def is_array(value: Any, ndim: int, *dtypes: str) -> bool:
    """Tell whether a value is an array of one of these types, row after row."""
    return (
        type(value) is np.ndarray
        and value.ndim == ndim
        and str(value.dtype) in dtypes
        and bool(value.flags.c_contiguous)
    )


def checks_itself(thing: Any) -> None:
    """Let pass what only NumPy, SciPy, torch and Python code follow."""


def width_of(model: Any) -> int:
    """Return the number of columns a fitted estimator says it takes."""
    width = vars(model).get("n_features_in_")
    require(type(width) is int and width > 0, "number of columns")
    return int(width)


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


# --- scikit-learn --------------------------------------------------------------------


def tree(thing: Any) -> None:
    """Check children, features and values of a decision tree."""
    state = thing.__getstate__()
    nodes, count = state["nodes"], len(state["nodes"])
    left, right = nodes["left_child"], nodes["right_child"]
    here = np.arange(count)
    inner = left != -1
    require(count > 0, "nodes of a tree")
    require((np.minimum(left, right)[inner] > here[inner]).all(), "children of a tree")
    require((np.maximum(left, right) < count).all(), "children of a tree")
    feature = nodes["feature"][inner]
    require(((feature >= 0) & (feature < thing.n_features)).all(), "features of a tree")
    require(0 <= state["max_depth"] < count, "depth of a tree")


def tree_owner(model: Any) -> None:
    """Check that a tree looks at the columns its owner takes."""
    if hasattr(model, "tree_"):
        require(model.tree_.n_features == width_of(model), "features of a tree")


def forest_owner(model: Any) -> None:
    """Check that trees look at the columns their forest takes."""
    for member in getattr(model, "estimators_", []):
        require(hasattr(member, "tree_"), "trees of a forest")
        require(width_of(member) == width_of(model), "features of a tree")


def boosting(model: Any) -> None:
    """Check children and features of boosted trees; categories are not kept."""
    if not hasattr(model, "_predictors"):
        return
    width = width_of(model)
    require(vars(model).get("_preprocessor") is None, "preprocessor")
    for member in (m for members in model._predictors for m in members):
        boosted_tree(member)
        nodes = member.nodes
        require((nodes["feature_idx"] < width).all(), "features of a tree")


def boosted_tree(predictor: Any) -> None:
    """Check one boosted tree."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = predictor.nodes
    require(type(nodes) is np.ndarray, "nodes of a boosted tree")
    require(nodes.dtype == PREDICTOR_RECORD_DTYPE, "nodes of a boosted tree")
    require(nodes.ndim == 1 and len(nodes) > 0, "nodes of a boosted tree")
    require(not nodes["is_categorical"].any(), "categories of a boosted tree")
    inner = nodes["is_leaf"] == 0
    here = np.arange(len(nodes))[inner]
    for side in ("left", "right"):
        child = nodes[side][inner].astype(np.int64)
        inside = (child > here) & (child < len(nodes))
        require(inside.all(), "children of a boosted tree")
    require((nodes["feature_idx"][inner] >= 0).all(), "features of a tree")
    for held in (predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets):
        require(is_array(held, 2, "uint32"), "categories of a boosted tree")


def kernel_machine(model: Any) -> None:
    """Check all that libsvm reads of a fitted support vector machine."""
    if not hasattr(model, "support_vectors_"):
        return
    require(model.kernel in ("linear", "poly", "rbf", "sigmoid"), "kernel")
    require(model._sparse is False, "support vectors")
    held, counts = model.support_vectors_, model._n_support
    require(is_array(held, 2, "float64"), "support vectors")
    n_rows, width = held.shape
    one_class = not hasattr(model, "classes_")
    require(model._impl == ("one_class" if one_class else "c_svc"), "kind of machine")
    n_classes = 2 if one_class else len(model.classes_)
    require(width == width_of(model) == model.shape_fit_[1], "support vectors")
    require(is_array(counts, 1, "int32"), "support vectors")
    require((counts >= 0).all() and len(counts) == n_classes, "support vectors")
    require(one_class or int(counts.sum()) == n_rows, "support vectors")
    require(not one_class or counts[0] == n_rows, "support vectors")
    support = model.support_
    require(is_array(support, 1, "int32") and len(support) == n_rows, "support vectors")
    inside = (support >= 0) & (support < max(int(model.shape_fit_[0]), 0))
    require(inside.all(), "support vectors")
    pairs = n_classes * (n_classes - 1) // 2
    for name, shape in (
        ("_dual_coef_", (n_classes - 1, n_rows)),
        ("_intercept_", (pairs,)),
    ):
        value = vars(model)[name]
        require(is_array(value, len(shape), "float64"), "coefficients")
        require(value.shape == shape, "coefficients")
    for name in ("_probA", "_probB"):
        value = vars(model)[name]
        require(is_array(value, 1, "float64"), "coefficients")
        require(len(value) in (0, pairs), "coefficients")


def centres(model: Any) -> None:
    """Check the width of the centres of k-means."""
    held = vars(model).get("cluster_centers_")
    if held is not None:
        require(is_array(held, 2, *FLOATS), "centres")
        require(held.shape == (model.n_clusters, width_of(model)), "centres")


def neighbours(model: Any) -> None:
    """Check rows, tree and classes of models that look for near rows."""
    if not hasattr(model, "_fit_X"):
        return
    rows = model._fit_X
    dense = is_array(rows, 2, *FLOATS)
    require(dense or type(rows).__name__ in ("csr_array", "csr_matrix"), "rows")
    require(rows.shape[1] == width_of(model), "width of the rows")
    inside = model._tree
    require(inside is None or inside.data.shape == rows.shape, "neighbour tree")
    labels = getattr(model, "_y", None)
    if labels is not None:
        require(is_array(labels, 1, "int64", "int32"), "classes of the rows")
        known = (labels >= 0) & (labels < len(model.classes_))
        require(len(labels) == rows.shape[0] and known.all(), "classes of the rows")


def density(model: Any) -> None:
    """Check the width of the rows of a kernel density."""
    if hasattr(model, "tree_"):
        require(model.tree_.data.shape[1] == width_of(model), "width of the rows")


PATTERNS = (None, r"(?u)\b\w\w+\b", r"(?u)\b\w+\b")
"""Of scikit-learn and of denspu; another pattern can take for ever on a text."""


def words(model: Any) -> None:
    """Check columns of words, and that texts are read neither from files nor slowly."""
    require(model.input == "content", "input of a text encoder")
    require(model.token_pattern in PATTERNS, "token_pattern of a text encoder")
    held = vars(model).get("vocabulary_")
    if held is not None:
        columns = sorted(int(column) for column in held.values())
        require(columns == list(range(len(held))), "columns of the words")


# --- NumPy, torch, denspu ------------------------------------------------------------


def random_bits(kind: str, state: Any) -> None:
    """Check the place in the buffer of a random generator's state."""
    if kind == "MT19937":
        held = state["state"]
        require(0 <= held["pos"] <= 624, "position of a random generator")
        require(np.shape(held["key"]) == (624,), "state of a random generator")
    if kind == "Philox":
        require(0 <= state["buffer_pos"] <= 4, "position of a random generator")


def layer(module: Any) -> None:
    """Refuse sizes in a layer that would ask for all memory."""
    for name in ("output_size", "size", "scale_factor", "padding", "output_padding"):
        held = vars(module).get(name)
        for n in held if isinstance(held, tuple | list) else (held,):
            small = isinstance(n, str | None) or abs(n) <= LARGEST_SIDE
            require(small, f"{name} of a layer")


def image_side(part: Any) -> None:
    """Refuse the size of images in an encoder that would ask for all memory."""
    side = vars(part).get("image_size")
    small = side is None or (type(side) is int and 0 < side <= LARGEST_SIDE)
    require(small, "image_size")


def forest(thing: Any) -> None:
    """Check the arrays of denspu's forests, which compiled walks follow."""
    feature, threshold, path = thing.feature, thing.threshold, thing.path
    require(is_array(feature, 3, "uint32"), "features of the trees")
    require(is_array(threshold, 2, *FLOATS), "thresholds of the trees")
    require(is_array(path, 2, "float64"), "paths of the trees")
    shape = threshold.shape
    require(feature.shape[:2] == shape == path.shape, "trees")
    require(shape[1] & (shape[1] - 1) == 0 and shape[1] > 1, "depth of the trees")
    require((feature < thing.n_features).all(), "features of the trees")
    weight = thing.weight
    if weight is None:
        require(feature.shape[2] == 1, "weights")
    else:
        require(is_array(weight, 3, str(threshold.dtype)), "weights")
        require(weight.shape == feature.shape, "weights")


def detector_forest(detector: Any) -> None:
    """Check that a forest looks at the columns its detector takes."""
    if hasattr(detector, "forest_"):
        same = detector.forest_.n_features == width_of(detector)
        require(same, "features of the trees")
