"""A model as a tree of plain values and a file of arrays, and back.

Numbers, texts and nothing are themselves in JSON; everything else is an object with one
telling key: ``{"tuple": [...]}``, ``{"array": "name", ...}``, ``{"object": "class",
"state": {...}}``. What is met twice carries an ``id`` and is ``{"same": id}`` the
second time, so that it is one thing again after loading.

Arrays and tensors are entries of one safetensors file, in row order; where they lay in
another order, on which the last digit of a sum can depend, ``steps`` keeps it. Types
that safetensors does not know (records, texts, dates) are kept as their bytes.

Most objects are their attributes. No constructor with an effect, no ``__reduce__`` and
no ``__setstate__`` of Python code runs.
"""

from __future__ import annotations

import inspect
import math
import operator
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import accumulate, count
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from denspu.exceptions import ModelFileError
from denspu.persistence.allowed import (
    FORMS,
    State,
    Unsupported,
    check,
    current,
    find,
    name_of,
    require,
    set_attributes,
    take_back_settings,
)

Node = dict[str, Any]

CONTAINERS: Mapping[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "slice": lambda parts: slice(*parts),
}
MAPPINGS: Mapping[str, type] = {"dict": dict, "ordered": OrderedDict}
PLAIN_TYPES = {t.__name__: t for t in (bool, int, float, str, object)}
ODD_FLOATS = {repr(number): number for number in (math.nan, math.inf, -math.inf)}
CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)

NATIVE = frozenset(
    ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
)
"""NumPy types that safetensors holds as they are, as ``dtype.str``."""

TENSORS: Mapping[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        *("bool", "uint8", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64"),
    )
}
"""Types of tensors by name; bfloat16, which NumPy lacks, is kept as int16."""

CHILDREN = {"_parameters": nn.Parameter, "_buffers": Tensor, "_modules": nn.Module}

CACHES: Mapping[str, tuple[str, ...]] = {"denspu.augment:ImageAugment": ("_axes",)}
"""Attributes that are filled again when needed: dictionaries of device tensors."""


# --- there ---------------------------------------------------------------------------


class Writer:
    """Turns a model into a tree; ``arrays`` are the entries of the file beside it."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}
        self._nodes: dict[Any, Node | None] = {}  # None while it is being made
        self._alive: list[Any] = []  # so that no identity is used twice
        self._ids = count(1)

    def node(self, value: Any, path: str) -> Any:
        """Return the tree of a value; ``path`` says where it was found."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        key = _identity(value)
        if key not in self._nodes:
            self._nodes[key] = None
            self._alive.append(value)
            try:
                self._nodes[key] = made = self._shared(value, path)
            except ModelFileError:
                raise
            except ValueError as reason:
                raise _refusal(value, path, str(reason)) from None
            return made
        known = self._nodes[key]
        if known is None:
            raise ModelFileError(
                f"{path} leads back to itself, and a saved model has no circles. "
                "Break the circle before saving."
            )
        if "id" not in known:
            known["id"] = next(self._ids)
        return {"same": known["id"]}

    def _shared(self, value: Any, path: str) -> Node:
        kind = type(value)
        tag = "ordered" if kind is OrderedDict else kind.__name__
        if kind is slice:
            return {tag: self._list((value.start, value.stop, value.step), path)}
        if kind in (set, frozenset):
            _check_keys(value)
            return {tag: self._list(sorted(value, key=repr), path)}
        if kind in (list, tuple):
            return {tag: self._list(value, path)}
        if kind in (dict, OrderedDict):
            return {tag: self._items(value, path)}
        if kind is np.ndarray and value.dtype == object:
            return {"objects": self._list(value.flat, path), "shape": [*value.shape]}
        if kind is np.ndarray:
            return self._array(value, path)
        if isinstance(value, Tensor):
            return self._tensor(value, path)
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            if value.dtype.itemsize > 8:
                raise Unsupported(f"is a {value.dtype}, which cannot be kept")
            return {"number": value.dtype.str, "value": self.node(value.item(), path)}
        return _small(value) or self._object(value, path)

    def _list(self, values: Any, path: str) -> list[Any]:
        return [self.node(v, f"{path}.{i}") for i, v in enumerate(values)]

    def _items(self, value: dict[Any, Any], path: str) -> Any:
        _check_keys(value)
        if all(type(key) is str for key in value):
            return {
                key: self.node(v, f"{path}.{key if key.isidentifier() else i}")
                for i, (key, v) in enumerate(value.items())
            }
        return [
            [self.node(key, f"{path}.{i}.key"), self.node(v, f"{path}.{i}")]
            for i, (key, v) in enumerate(value.items())
        ]

    def _object(self, value: Any, path: str) -> Node:
        if isinstance(value, CODE):
            raise Unsupported("is code, and code is never saved")
        name = name_of(type(value))
        if name is None:
            raise Unsupported("is not among the classes a model may hold")
        check(name, value)
        state = _take_apart(name, value)
        tree = {key: self.node(v, f"{path}.{key}") for key, v in state.items()}
        return {"object": name, "state": tree}

    def _array(self, value: np.ndarray[Any, Any], name: str) -> Node:
        if value.dtype.hasobject or value.dtype.kind not in "biufcSUVMm":
            raise Unsupported(f"is an array of {value.dtype}, which cannot be kept")
        while name in self.arrays:
            name += "'"
        if not _dense(value.shape, _steps(value)):
            value = value.copy(order="K")
        dtype = np.lib.format.dtype_to_descr(value.dtype)
        node = {"array": name, "dtype": dtype, "shape": [*value.shape]}
        if value.size and _steps(value) != _row_steps(value.shape):
            node["steps"] = [*_steps(value)]
        rows = np.ascontiguousarray(value).reshape(value.shape)
        if value.dtype.names:  # any bytes may lie between the fields
            clean = np.zeros(value.shape, value.dtype)
            for field in value.dtype.names:
                clean[field] = rows[field]
            rows = clean
        native = value.dtype.str in NATIVE
        self.arrays[name] = rows if native else np.frombuffer(rows.tobytes(), np.uint8)
        return node

    def _tensor(self, value: Tensor, path: str) -> Node:
        kind = str(value.dtype).removeprefix("torch.")
        plain = type(value) in (Tensor, nn.Parameter) and kind in TENSORS
        if not plain or value.layout != torch.strided or value.device.type == "meta":
            raise Unsupported(
                f"is a tensor of another kind ({type(value).__name__}, {kind})"
            )
        held = value.detach().cpu()
        node = self._array(held.view(_kept(held.dtype)).numpy(), path)
        node["tensor"], node["dtype"] = node.pop("array"), kind
        if isinstance(value, nn.Parameter):
            node["parameter"] = True
        if value.requires_grad:
            node["requires_grad"] = True
        return node


def _identity(value: Any) -> Any:
    """Return what is the same for one object, and for two views of one array."""
    if type(value) is np.ndarray and value.dtype != object and value.size:
        start = value.__array_interface__["data"][0]
        return start, value.shape, value.strides, value.dtype.str, str(value.dtype)
    return id(value)


def _check_keys(keys: Any) -> None:
    """Refuse keys that are more than a value or a tuple of values.

    Hashing a tuple looks at all it holds: nested ones can take exponential time.
    """
    plain = (str, int, float, bool, type(None), np.generic)
    for key in keys:
        parts = key if type(key) is tuple else (key,)
        if not all(isinstance(part, plain) for part in parts):
            raise Unsupported("has a key that is neither a value nor a tuple of values")


def _small(value: Any) -> Node | None:
    """Return the tree of a small value that JSON does not know."""
    kind = type(value)
    if kind is np.str_:
        return {"number": "str", "value": str(value)}
    if kind.__name__ == "NAType" and kind.__module__.startswith("pandas."):
        return {"missing": "pandas"}
    for tag, (known, write, _) in SMALL.items():
        if isinstance(value, known):
            return {tag: write(value)}
    return None


def _refusal(value: Any, path: str, reason: str) -> ModelFileError:
    kind = type(value)
    return ModelFileError(
        f"{path} cannot be saved: {kind.__module__}.{kind.__qualname__} {reason}. "
        "Nothing was written. Fit with parts that denspu knows (denspu list), with "
        "networks of layers of torch.nn, or with an estimator named in "
        "docs/persistence.md; or keep the embeddings of your own part with numpy.save "
        "and fit on those."
    )


def _take_apart(name: str, thing: Any) -> State:
    """Return the values an object is made of; ``name`` is that of its class."""
    if name in FORMS:
        return FORMS[name][0](thing)
    try:
        object.__new__(type(thing))
        state = dict(vars(thing))
    except TypeError:
        raise Unsupported("has no plain attributes") from None
    if not isinstance(thing, nn.Module):
        return {k: v for k, v in state.items() if k not in CACHES.get(name, ())}
    kept = ("training", *CHILDREN, "_non_persistent_buffers_set")
    for key, empty in vars(nn.Module()).items():
        if key not in kept and state.pop(key, empty) != empty:
            hooks = key.strip("_").replace("_", " ")
            raise Unsupported(f"has {hooks}, which are code")
    return state | {key: dict(state[key]) for key in CHILDREN}


# --- back ----------------------------------------------------------------------------


class Reader:
    """Makes a model of its tree; only classes that may be held are made."""

    def __init__(self, arrays: Path, config: Path) -> None:
        file: Any = safe_open(arrays, framework="numpy")
        self._file, self._arrays, self._config = file, arrays, config
        self._entries = set(file.keys())
        self._known: dict[int, Any] = {}
        self.estimators: list[BaseEstimator] = []
        """Those made so far."""

    def value(self, node: Any) -> Any:
        """Return the value of a tree."""
        if node is None or type(node) in (bool, int, float, str):
            return node
        if type(node) is not dict:
            raise ValueError(f"a bare {type(node).__name__}")
        tags = [tag for tag in TAGS if tag in node]
        if len(tags) != 1:
            raise ValueError(f"keys {', '.join(map(repr, list(node)[:4]))}")
        (tag,) = tags
        if tag in CONTAINERS:
            made = self._container(tag, node[tag])
        elif tag in MAPPINGS:
            made = self._mapping(tag, node[tag])
        elif tag in SMALL:
            made = SMALL[tag][2](node[tag])
        else:
            made = READERS[tag](self, node)
        if "id" in node:
            self._known[node["id"]] = made
        return made

    def _container(self, tag: str, nodes: Any) -> Any:
        if type(nodes) is not list:
            raise ValueError(f"{tag} of something else than a list")
        items = [self.value(node) for node in nodes]
        _check_keys(items if "set" in tag else ())
        return CONTAINERS[tag](items)

    def _mapping(self, tag: str, items: Any) -> Any:
        named = type(items) is dict
        pairs = items.items() if named else items
        keys = [key if named else self.value(key) for key, _ in pairs]
        _check_keys(keys)
        values = [self.value(node) for _, node in pairs]
        return MAPPINGS[tag](zip(keys, values, strict=True))

    def _number(self, node: Node) -> Any:
        if node["number"] == "str":
            return np.str_(node["value"])
        return _number_type(node["number"])(self.value(node["value"]))

    def _objects(self, node: Node) -> Any:
        items = np.empty(len(node["objects"]), dtype=object)
        for i, item in enumerate(node["objects"]):
            items[i] = self.value(item)
        return items.reshape(_whole(node["shape"]))

    def _object(self, node: Node) -> Any:
        name = node["object"]
        cls = find(name) if type(name) is str else None
        if cls is None:
            raise ModelFileError(
                f"{self._config} names the class {name!r}, which no model may hold. "
                "It was not imported. Load only models written by denspu.save, with "
                "a denspu at least as new as theirs."
            )
        state = {key: self.value(v) for key, v in node["state"].items()}
        made = _put_together(current(name), cls, state)
        check(current(name), made)
        take_back_settings(made)
        if isinstance(made, BaseEstimator):
            self.estimators.append(made)
        return made

    def _array(self, node: Node) -> Any:
        dtype = _described(node["dtype"])
        shape, steps = _layout(node)
        if dtype.str in NATIVE:
            rows = self._entry(node["array"], dtype, shape)
        else:
            size = dtype.itemsize * math.prod(shape)
            flat = self._entry(node["array"], np.dtype(np.uint8), (size,))
            rows = np.frombuffer(flat.data, dtype=dtype).reshape(shape)
        strides = [step * dtype.itemsize for step in steps]
        held: Any = np.ndarray(shape, dtype, strides=strides)
        held[...] = rows
        return held

    def _tensor(self, node: Node) -> Tensor:
        dtype = TENSORS[node["dtype"]]
        shape, steps = _layout(node)
        like = torch.empty(0, dtype=_kept(dtype)).numpy().dtype
        rows = torch.from_numpy(np.array(self._entry(node["tensor"], like, shape)))
        room = torch.empty_strided(shape, steps, dtype=dtype)
        room.copy_(rows.view(dtype))
        wanted = bool(node.get("requires_grad", False))
        if node.get("parameter"):
            return nn.Parameter(room, requires_grad=wanted)
        return room.requires_grad_(wanted)

    def _entry(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        """Return an entry once: naming it again must not multiply the memory."""
        if name not in self._entries:
            raise self._wrong(f"lacks the array {name!r} that the tree names there")
        self._entries.discard(name)
        entry = self._file.get_slice(name)
        if tuple(entry.get_shape()) == shape:
            found = self._file.get_tensor(name)
            if found.dtype == dtype and found.shape == shape:
                return found
        raise self._wrong(
            f"holds {name!r} as {entry.get_dtype()} of shape {entry.get_shape()}, and "
            f"it should be {dtype} of shape {shape}"
        )

    def _wrong(self, reason: str) -> ModelFileError:
        return ModelFileError(f"{self._arrays} {reason}. Save the model again.")


def _number_type(name: Any) -> Any:
    if name not in NATIVE:
        raise ValueError(f"a number of type {name!r}")
    return np.dtype(name).type


def _type_name(kind: type) -> str:
    if issubclass(kind, np.generic):
        return np.dtype(kind).str
    if PLAIN_TYPES.get(kind.__name__) is not kind:
        raise Unsupported("is not among the classes a model may hold")
    return kind.__name__


SMALL: Mapping[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "numpy": (
        np.dtype,
        lambda kind: "|O" if kind.hasobject else np.lib.format.dtype_to_descr(kind),
        lambda kind: np.dtype(object) if kind == "|O" else _described(kind),
    ),
    "type": (type, _type_name, lambda n: PLAIN_TYPES.get(n) or _number_type(n)),
    "path": (PurePath, str, Path),
    "device": (torch.device, str, torch.device),
    "torch": (
        torch.dtype,
        lambda dtype: str(dtype).removeprefix("torch."),
        TENSORS.__getitem__,
    ),
}
"""Values that are kept under one key: their class, how they are written and read."""

READERS: Mapping[str, Callable[[Reader, Node], Any]] = {
    "object": Reader._object,
    "array": Reader._array,
    "tensor": Reader._tensor,
    "objects": Reader._objects,
    "number": Reader._number,
    "float": lambda reader, node: ODD_FLOATS[node["float"]],
    "same": lambda reader, node: reader._known[node["same"]],
    "missing": lambda reader, node: import_module("pandas").NA,
}

TAGS = (*CONTAINERS, *MAPPINGS, *SMALL, *READERS)


def _put_together(name: str, cls: type, state: State) -> Any:
    """Return the object made of those values."""
    if name in FORMS:
        return FORMS[name][1](cls, state)
    thing: Any = object.__new__(cls)
    if isinstance(thing, nn.Module):
        nn.Module.__init__(thing)
        for key, kind in CHILDREN.items():
            held = state[key]
            require(type(held) is dict, key)
            require(all(v is None or isinstance(v, kind) for v in held.values()), key)
    set_attributes(thing, state | {cache: {} for cache in CACHES.get(name, ())})
    if isinstance(thing, BaseEstimator) and name.startswith("denspu."):
        for key, parameter in inspect.signature(cls).parameters.items():
            if parameter.default is not parameter.empty and not hasattr(thing, key):
                setattr(thing, key, parameter.default)  # newer than the saved model
    return thing


# --- how arrays lie ------------------------------------------------------------------


def _kept(dtype: torch.dtype) -> torch.dtype:
    return torch.int16 if dtype == torch.bfloat16 else dtype


def _described(found: Any) -> np.dtype[Any]:
    """Return the type of a description; types that hold objects are refused."""
    dtype = np.lib.format.descr_to_dtype(_tuples(found))
    if dtype.hasobject or not dtype.itemsize or dtype.subdtype:
        raise ValueError(f"an array of {dtype}")
    return dtype


def _tuples(found: Any) -> Any:
    """Return fields as NumPy wants them: a list of tuples."""
    if not isinstance(found, list):
        return found
    return [(name, _tuples(kind), *map(tuple, shape)) for name, kind, *shape in found]


def _layout(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and steps; steps that leave the memory are refused."""
    shape = _whole(node["shape"])
    if "steps" not in node or 0 in shape:
        return shape, _row_steps(shape)
    steps = _whole(node["steps"])
    if len(steps) != len(shape) or not _dense(shape, steps):
        raise ValueError(f"steps {steps} for shape {shape}")
    return shape, steps


def _whole(numbers: Any) -> tuple[int, ...]:
    if type(numbers) is list and all(type(n) is int and n >= 0 for n in numbers):
        return tuple(numbers)
    raise ValueError(f"{numbers!r} is no list of whole numbers")


def _steps(value: np.ndarray[Any, Any]) -> tuple[int, ...]:
    """Return strides in elements; -1 where they are none."""
    size = value.dtype.itemsize or 1
    return tuple(s // size if s % size == 0 else -1 for s in value.strides)


def _row_steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the steps of rows one after the other."""
    sizes = [max(n, 1) for n in reversed(shape)]
    return tuple(accumulate(sizes[:-1], operator.mul, initial=1))[::-1] if shape else ()


def _dense(shape: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """Tell whether elements fill their memory, each once, in some order of axes."""
    if 0 in shape:
        return True
    axes = sorted((s, n) for s, n in zip(steps, shape, strict=True) if n != 1)
    filled = accumulate((n for _, n in axes), operator.mul, initial=1)
    right = all(s == wanted for (s, _), wanted in zip(axes, filled, strict=False))
    return right and min(steps, default=0) >= 0
