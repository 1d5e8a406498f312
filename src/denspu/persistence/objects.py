"""Taking objects apart into named values, and making them again without their code.

Most objects are their attributes. Compiled ones of scikit-learn and NumPy have a form
of their own here. No constructor with an effect, no ``__reduce__`` and no
``__setstate__`` of Python code runs.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from denspu.exceptions import ModelVersionWarning
from denspu.persistence.rules import random_bits, require

State = dict[str, Any]

CHILDREN = {"_parameters": nn.Parameter, "_buffers": Tensor, "_modules": nn.Module}

CACHES: Mapping[str, tuple[str, ...]] = {"denspu.augment:ImageAugment": ("_axes",)}
"""Attributes that are filled again when needed: dictionaries of device tensors."""


class Unsupported(ValueError):
    """An object holds something that cannot be kept; the text says what."""


def take_apart(name: str, thing: Any) -> State:
    """Return the values an object is made of; ``name`` is that of its class."""
    if name in _FORMS:
        return _FORMS[name][0](thing)
    if isinstance(thing, nn.Module):
        return _module_state(thing)
    state = _attributes(thing)
    for cache in CACHES.get(name, ()):
        state.pop(cache, None)
    return state


def put_together(name: str, cls: type, state: State) -> Any:
    """Return the object made of those values."""
    if name in _FORMS:
        return _FORMS[name][1](cls, state)
    thing: Any = object.__new__(cls)
    if isinstance(thing, nn.Module):
        nn.Module.__init__(thing)
        _check_module(state)
    state.update({cache: {} for cache in CACHES.get(name, ())})
    _set_attributes(thing, state)
    _add_new_parameters(thing)
    return thing


# --- Python objects ------------------------------------------------------------------


def _slots(cls: type) -> list[str]:
    found: list[str] = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return [slot for slot in found if not slot.startswith("__")]


def _attributes(thing: Any) -> State:
    try:
        object.__new__(type(thing))
    except TypeError:
        raise Unsupported("has no plain attributes") from None
    state = {s: getattr(thing, s) for s in _slots(type(thing)) if hasattr(thing, s)}
    return {**state, **getattr(thing, "__dict__", {})}


def _set_attributes(thing: Any, state: State) -> None:
    slots = set(_slots(type(thing)))
    for name, value in state.items():
        if not name.isidentifier() or name.startswith("__"):
            raise ValueError(f"{name!r} is no name of an attribute")
        if name in slots:
            object.__setattr__(thing, name, value)
        else:
            thing.__dict__[name] = value


def _add_new_parameters(thing: Any) -> None:
    """Give an estimator of ours the parameters it had not yet when it was saved."""
    if not isinstance(thing, BaseEstimator) or not type(thing).__module__.startswith(
        "denspu."
    ):
        return
    for name, parameter in inspect.signature(type(thing)).parameters.items():
        if parameter.default is not parameter.empty and not hasattr(thing, name):
            setattr(thing, name, parameter.default)


def _module_state(module: nn.Module) -> State:
    state = dict(vars(module))
    kept = ("training", *CHILDREN, "_non_persistent_buffers_set")
    for name, empty in vars(nn.Module()).items():
        if name not in kept and state.pop(name, empty) != empty:
            hooks = name.strip("_").replace("_", " ")
            raise Unsupported(f"has {hooks}, which are code")
    return state | {name: dict(state[name]) for name in CHILDREN}


def _check_module(state: State) -> None:
    for name, kind in CHILDREN.items():
        held = state[name]
        require(type(held) is dict, name)
        require(all(v is None or isinstance(v, kind) for v in held.values()), name)


# --- compiled objects ----------------------------------------------------------------


def _tree_state(tree: Any) -> State:
    _, (n_features, n_classes, n_outputs), state = tree.__reduce__()
    return {
        **state,
        "n_features": int(n_features),
        "n_classes": np.asarray(n_classes),
        "n_outputs": int(n_outputs),
    }


def _tree(cls: type, state: State) -> Any:
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
    wanted = type(state[11]).__name__.removesuffix("Distance64").lower()
    if wanted not in METRICS:
        raise Unsupported(
            f"uses another distance than {', '.join(METRICS)}, and cannot be kept"
        )
    return {
        "data": np.asarray(tree.data),
        "order": np.asarray(state[1]),
        "leaf_size": int(state[4]),
        "metric": wanted,
        "weights": None if state[12] is None else np.asarray(state[12]),
    }


def _neighbour_tree(cls: type, state: State) -> Any:
    require(state["metric"] in METRICS, "distance of a neighbour tree")
    tree: Any = cls(
        state["data"],
        leaf_size=state["leaf_size"],
        metric=state["metric"],
        sample_weight=state["weights"],
    )
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


def _csr(cls: type, state: State) -> Any:
    parts = (state["data"], state["indices"], state["indptr"])
    matrix: Any = cls(parts, shape=state["shape"])
    matrix.check_format(full_check=True)
    return matrix


def _isotonic(cls: type, state: State) -> Any:
    model: Any = object.__new__(cls)
    _set_attributes(model, state)
    if hasattr(model, "X_thresholds_"):
        model._build_f(model.X_thresholds_, model.y_thresholds_)
    return model


BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


def _generator_state(generator: Any) -> State:
    kind = type(generator.bit_generator).__name__
    if kind not in BIT_GENERATORS:
        raise Unsupported(f"draws from {kind}; kept are {', '.join(BIT_GENERATORS)}")
    return {"kind": kind, "state": generator.bit_generator.state}


def _generator(cls: type, state: State) -> Any:
    require(state["kind"] in BIT_GENERATORS, "kind of a random generator")
    random_bits(state["kind"], state["state"])
    bits = getattr(np.random, state["kind"])()
    bits.state = state["state"]
    return cls(bits)


def _random_state(cls: type, state: State) -> Any:
    generator = cls(np.random.MT19937())
    random_bits("MT19937", state["state"])
    generator.set_state(state["state"])
    return generator


def _random_state_state(generator: Any) -> State:
    state = generator.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise Unsupported("is a RandomState that does not draw from MT19937")
    return {"state": state}


_FORMS: Mapping[str, tuple[Callable[[Any], State], Callable[[type, State], Any]]] = {
    "numpy.random:Generator": (_generator_state, _generator),
    "numpy.random:RandomState": (_random_state_state, _random_state),
    "scipy.sparse:csr_array": (_csr_state, _csr),
    "scipy.sparse:csr_matrix": (_csr_state, _csr),
    "sklearn._loss._loss:CyHalfBinomialLoss": (
        lambda thing: {},
        lambda cls, state: cls(),
    ),
    "sklearn.isotonic:IsotonicRegression": (
        lambda model: {k: v for k, v in vars(model).items() if k != "f_"},
        _isotonic,
    ),
    "sklearn.neighbors:BallTree": (_neighbour_tree_state, _neighbour_tree),
    "sklearn.neighbors:KDTree": (_neighbour_tree_state, _neighbour_tree),
    "sklearn.tree._tree:Tree": (_tree_state, _tree),
}
