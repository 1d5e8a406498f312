"""A model as a tree of plain values and a file of arrays, and back.

Numbers, texts and nothing are themselves in JSON; everything else is an object with one
telling key: ``{"tuple": [...]}``, ``{"array": "name", ...}``, ``{"object": "class",
"state": {...}}``. What is met twice carries an ``id`` and is ``{"same": id}`` the
second time, so that it is one thing again after loading.

Arrays and tensors are entries of one safetensors file, in row order; where they lay in
another order, on which the last digit of a sum can depend, ``steps`` keeps it. Types
that safetensors does not know (records, texts, dates) are kept as their bytes.
"""

from __future__ import annotations

import math
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from denspu.exceptions import ModelFileError
from denspu.persistence.allowed import check, current, find, name_of
from denspu.persistence.objects import Unsupported, put_together, take_apart
from denspu.persistence.rules import take_back_settings

Node = dict[str, Any]

CONTAINERS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
MAPPINGS: dict[str, type] = {"dict": dict, "ordered": OrderedDict}
PLAIN_TYPES = {t.__name__: t for t in (bool, int, float, str, object)}
CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)

NATIVE = frozenset(
    ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
)
"""NumPy types that safetensors holds as they are, as ``dtype.str``."""

TENSORS = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    )
}
"""Types of tensors by name; bfloat16, which NumPy lacks, is kept as int16."""


# --- there ---------------------------------------------------------------------------


class Writer:
    """Turns a model into a tree; ``arrays`` are the entries of the file beside it."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}
        self._nodes: dict[Any, Node] = {}
        self._alive: list[Any] = []  # so that no identity is used twice
        self._open: set[int] = set()
        self._ids = 0

    def node(self, value: Any, path: str) -> Any:
        """Return the tree of a value; ``path`` says where it was found."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        key = _identity(value)
        if key in self._nodes:
            node = self._nodes[key]
            if "id" not in node:
                self._ids += 1
                node["id"] = self._ids
            return {"same": node["id"]}
        if id(value) in self._open:
            raise ModelFileError(
                f"{path} leads back to itself, and a saved model has no circles. "
                "Break the circle before saving."
            )
        self._open.add(id(value))
        try:
            node = self._shared(value, path)
        except ValueError as reason:
            if isinstance(reason, ModelFileError):
                raise
            raise _refusal(value, path, str(reason)) from None
        finally:
            self._open.discard(id(value))
        self._nodes[key] = node
        self._alive.append(value)
        return node

    def _shared(self, value: Any, path: str) -> Node:
        kind = type(value)
        for tag, container in CONTAINERS.items():
            if kind is container:
                items = sorted(value, key=repr) if "set" in tag else list(value)
                _check_keys(items if "set" in tag else ())
                return {tag: [self.node(v, f"{path}.{i}") for i, v in enumerate(items)]}
        for tag, mapping in MAPPINGS.items():
            if kind is mapping:
                return {tag: self._items(value, path)}
        if kind is np.ndarray and value.dtype == object:
            items = [self.node(v, f"{path}.{i}") for i, v in enumerate(value.flat)]
            return {"objects": items, "shape": list(value.shape)}
        if kind is np.ndarray:
            return self._array(self._free(path), value)
        if isinstance(value, Tensor):
            return self._tensor(self._free(path), value)
        return _plain(value, self.node, path) or self._object(value, path)

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
        state = take_apart(name, value)
        tree = {key: self.node(v, f"{path}.{key}") for key, v in state.items()}
        return {"object": name, "state": tree}

    def _free(self, name: str) -> str:
        while name in self.arrays:
            name += "'"
        return name

    def _array(self, name: str, value: np.ndarray[Any, Any]) -> Node:
        if value.dtype.hasobject or value.dtype.kind not in "biufcSUVMm":
            raise Unsupported(f"is an array of {value.dtype}, which cannot be kept")
        if not _dense(value.shape, _steps(value)):
            value = value.copy(order="K")
        dtype = np.lib.format.dtype_to_descr(value.dtype)
        node = {"array": name, "dtype": dtype, "shape": list(value.shape)}
        rows = np.ascontiguousarray(value)
        if value.dtype.names:
            rows = _without_gaps(rows)
        if value.dtype.str in NATIVE:
            self.arrays[name] = rows.reshape(value.shape)
        else:
            self.arrays[name] = np.frombuffer(rows.tobytes(), dtype=np.uint8)
        return _with_steps(node, _steps(value))

    def _tensor(self, name: str, value: Tensor) -> Node:
        kind = str(value.dtype).removeprefix("torch.")
        plain = type(value) in (Tensor, nn.Parameter) and kind in TENSORS
        if not plain or value.layout != torch.strided or value.device.type == "meta":
            raise Unsupported(
                f"is a tensor of another kind ({type(value).__name__}, {kind})"
            )
        held = value.detach().cpu()
        if not _dense(held.shape, held.stride()):
            held = held.contiguous()
        node: Node = {"tensor": name, "dtype": kind, "shape": list(held.shape)}
        if isinstance(value, nn.Parameter):
            node["parameter"] = True
        if value.requires_grad:
            node["requires_grad"] = True
        self.arrays[name] = held.contiguous().view(_kept(held.dtype)).numpy()
        return _with_steps(node, held.stride())


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


def _plain(value: Any, node: Callable[[Any, str], Any], path: str) -> Node | None:
    """Return the tree of a small value that JSON does not know."""
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        if value.dtype.itemsize > 8:
            raise Unsupported(f"is a {value.dtype}, which cannot be kept")
        return {"number": value.dtype.str, "value": node(value.item(), path)}
    if type(value) is np.str_:
        return {"number": "str", "value": str(value)}
    if isinstance(value, np.dtype):
        descr = np.lib.format.dtype_to_descr
        return {"numpy": "|O" if value.hasobject else descr(value)}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"type": np.dtype(value).str}
    if isinstance(value, type) and value in PLAIN_TYPES.values():
        return {"type": value.__name__}
    if type(value) is slice:
        parts = (value.start, value.stop, value.step)
        return {"slice": [node(part, path) for part in parts]}
    if isinstance(value, PurePath):
        return {"path": str(value)}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.dtype):
        return {"torch": str(value).removeprefix("torch.")}
    kind = type(value)
    if kind.__name__ == "NAType" and kind.__module__.startswith("pandas."):
        return {"missing": "pandas"}
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


# --- back ----------------------------------------------------------------------------


class WrongArray(Exception):
    """The file of arrays does not hold what the tree says."""


class Reader:
    """Makes a model of its tree; only classes that may be held are made."""

    def __init__(self, arrays: Path, config: Path) -> None:
        file: Any = safe_open(arrays, framework="numpy")
        self._file, self._config = file, config
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
        tags = [tag for tag in READERS if tag in node]
        if len(tags) != 1:
            raise ValueError(f"keys {', '.join(map(repr, list(node)[:4]))}")
        made = READERS[tags[0]](self, node)
        if "id" in node:
            self._known[node["id"]] = made
        return made

    def _container(self, node: Node, tag: str) -> Any:
        if type(node[tag]) is not list:
            raise ValueError(f"{tag} of something else than a list")
        items = [self.value(v) for v in node[tag]]
        _check_keys(items if "set" in tag else ())
        return CONTAINERS[tag](items)

    def _mapping(self, node: Node, tag: str) -> Any:
        items = node[tag]
        pairs = items.items() if type(items) is dict else items
        keys = [key if type(items) is dict else self.value(key) for key, _ in pairs]
        _check_keys(keys)
        values = [self.value(v) for _, v in pairs]
        return MAPPINGS[tag](zip(keys, values, strict=True))

    def _same(self, node: Node) -> Any:
        return self._known[node["same"]]

    def _float(self, node: Node) -> float:
        if node["float"] not in ("nan", "inf", "-inf"):
            raise ValueError(f"a float {node['float']!r}")
        return float(node["float"])

    def _number(self, node: Node) -> Any:
        if node["number"] == "str":
            return np.str_(node["value"])
        return self._scalar_type(node["number"])(self.value(node["value"]))

    @staticmethod
    def _scalar_type(name: Any) -> Any:
        if name not in NATIVE:
            raise ValueError(f"a number of type {name!r}")
        return np.dtype(name).type

    def _dtype(self, node: Node) -> Any:
        return np.dtype(object) if node["numpy"] == "|O" else _described(node["numpy"])

    def _type(self, node: Node) -> Any:
        name = node["type"]
        return PLAIN_TYPES.get(name) or self._scalar_type(name)

    def _slice(self, node: Node) -> slice:
        start, stop, step = (self.value(part) for part in node["slice"])
        return slice(start, stop, step)

    def _path(self, node: Node) -> Path:
        return Path(node["path"])

    def _device(self, node: Node) -> torch.device:
        return torch.device(node["device"])

    def _torch(self, node: Node) -> Any:
        return TENSORS[node["torch"]]

    def _missing(self, node: Node) -> Any:
        import pandas

        return pandas.NA

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
        made = put_together(current(name), cls, state)
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
        if steps is None:
            return np.array(rows, order="C")
        room = np.empty(rows.size, dtype=dtype)
        strides = [step * dtype.itemsize for step in steps]
        held = np.lib.stride_tricks.as_strided(room, shape, strides)
        held[...] = rows
        return held

    def _tensor(self, node: Node) -> Tensor:
        dtype = TENSORS[node["dtype"]]
        shape, steps = _layout(node)
        like = torch.empty(0, dtype=_kept(dtype)).numpy().dtype
        rows = torch.from_numpy(np.array(self._entry(node["tensor"], like, shape)))
        room = torch.empty_strided(shape, steps or _row_steps(shape), dtype=dtype)
        room.copy_(rows.view(dtype))
        wanted = bool(node.get("requires_grad", False))
        if node.get("parameter"):
            return nn.Parameter(room, requires_grad=wanted)
        return room.requires_grad_(wanted)

    def _entry(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        """Return an entry once: naming it again must not multiply the memory."""
        if name not in self._entries:
            raise WrongArray(f"lacks the array {name!r} that the tree names there")
        self._entries.discard(name)
        entry = self._file.get_slice(name)
        if tuple(entry.get_shape()) == shape:
            found = self._file.get_tensor(name)
            if found.dtype == dtype and found.shape == shape:
                return found
        raise WrongArray(
            f"holds {name!r} as {entry.get_dtype()} of shape {entry.get_shape()}, and "
            f"it should be {dtype} of shape {shape}"
        )


READERS: dict[str, Callable[[Reader, Node], Any]] = {
    **{tag: partial(Reader._container, tag=tag) for tag in CONTAINERS},
    **{tag: partial(Reader._mapping, tag=tag) for tag in MAPPINGS},
    "object": Reader._object,
    "array": Reader._array,
    "tensor": Reader._tensor,
    "objects": Reader._objects,
    "same": Reader._same,
    "float": Reader._float,
    "number": Reader._number,
    "numpy": Reader._dtype,
    "slice": Reader._slice,
    "path": Reader._path,
    "device": Reader._device,
    "torch": Reader._torch,
    "type": Reader._type,
    "missing": Reader._missing,
}


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


def _without_gaps(records: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return records with zeros between the fields, where any bytes may lie."""
    clean = np.zeros(records.shape, records.dtype)  # zeros_like leaves the gaps
    for name in records.dtype.names or ():
        clean[name] = records[name]
    return clean


def _layout(node: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return shape and steps; steps that leave the memory are refused."""
    shape = _whole(node["shape"])
    if "steps" not in node or 0 in shape:
        return shape, None
    steps = _whole(node["steps"])
    if len(steps) != len(shape) or not _dense(shape, steps):
        raise ValueError(f"steps {steps} for shape {shape}")
    return shape, steps


def _whole(numbers: Any) -> tuple[int, ...]:
    if not isinstance(numbers, list) or any(
        type(n) is not int or n < 0 for n in numbers
    ):
        raise ValueError(f"{numbers!r} is no list of whole numbers")
    return tuple(numbers)


def _with_steps(node: Node, steps: tuple[int, ...]) -> Node:
    if 0 not in node["shape"] and steps != _row_steps(node["shape"]):
        node["steps"] = list(steps)
    return node


def _steps(value: np.ndarray[Any, Any]) -> tuple[int, ...]:
    """Return strides in elements; -1 where they are none."""
    size = value.dtype.itemsize or 1
    return tuple(s // size if s % size == 0 else -1 for s in value.strides)


def _row_steps(shape: Any) -> tuple[int, ...]:
    """Return the steps of rows one after the other."""
    steps: list[int] = []
    step = 1
    for n in reversed(shape):
        steps.insert(0, step)
        step *= max(n, 1)
    return tuple(steps)


def _dense(shape: Any, steps: tuple[int, ...]) -> bool:
    """Tell whether elements fill their memory, each once, in some order of axes."""
    if 0 in shape:
        return True
    expected = 1
    for step, n in sorted((s, n) for s, n in zip(steps, shape, strict=True) if n != 1):
        if step != expected:
            return False
        expected *= max(n, 1)
    return min(steps, default=0) >= 0
