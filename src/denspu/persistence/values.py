"""A model as a tree of plain values, and back.

Numbers, texts and nothing are themselves in JSON; everything else is an object with one
telling key: ``{"tuple": [...]}``, ``{"array": "name", ...}``, ``{"object": "class",
"state": {...}}``. What is met twice carries an ``id`` and is ``{"same": id}`` the
second time, so that it is one thing again after loading.
"""

from __future__ import annotations

import math
import types
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch

from denspu.exceptions import ModelFileError
from denspu.persistence.allowed import current, find, name_of
from denspu.persistence.arrays import (
    ArrayReader,
    ArrayWriter,
    Node,
    describe,
    described,
)
from denspu.persistence.objects import Unsupported, put_together, take_apart

CONTAINERS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
MAPPINGS: dict[str, type] = {"dict": dict, "ordered": OrderedDict}

PLAIN_TYPES = (bool, int, float, str, object)

CODE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.LambdaType,
)


class Writer:
    """Turns a model into a tree; arrays go to ``arrays``."""

    def __init__(self) -> None:
        self.arrays = ArrayWriter()
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
            return {"same": self._id(self._nodes[key])}
        if id(value) in self._open:
            raise ModelFileError(
                f"{path} leads back to itself, and a saved model has no circles. "
                "Break the circle before saving."
            )
        self._open.add(id(value))
        try:
            node = self._shared(value, path)
        except Unsupported as reason:
            raise _refusal(value, path, str(reason)) from None
        finally:
            self._open.discard(id(value))
        self._nodes[key] = node
        self._alive.append(value)
        return node

    def _id(self, node: Node) -> int:
        if "id" not in node:
            self._ids += 1
            node["id"] = self._ids
        return int(node["id"])

    def _shared(self, value: Any, path: str) -> Node:
        kind = type(value)
        for tag, container in CONTAINERS.items():
            if kind is container:
                items = list(value)
                if tag in ("set", "frozenset"):
                    items.sort(key=repr)
                return {tag: [self.node(v, f"{path}.{i}") for i, v in enumerate(items)]}
        for tag, mapping in MAPPINGS.items():
            if kind is mapping:
                return {tag: self._items(value, path)}
        if kind is np.ndarray and value.dtype == object:
            items = [self.node(v, f"{path}.{i}") for i, v in enumerate(value.flat)]
            return {"objects": items, "shape": list(value.shape)}
        if kind is np.ndarray:
            return self.arrays.array(path, value)
        if isinstance(value, torch.Tensor):
            return self.arrays.tensor(path, value)
        return _plain(value, self.node, path) or self._object(value, path)

    def _items(self, value: dict[Any, Any], path: str) -> Any:
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
            raise _refusal(value, path, "is code, and code is never saved")
        name = name_of(type(value))
        if name is None:
            raise _refusal(value, path, "is not among the classes a model may hold")
        state = take_apart(name, value)
        return {
            "object": name,
            "state": {key: self.node(v, f"{path}.{key}") for key, v in state.items()},
        }


def _identity(value: Any) -> Any:
    """Return what is the same for one object, and for two views of one array."""
    if type(value) is np.ndarray and value.dtype != object and value.size:
        start = value.__array_interface__["data"][0]
        return start, value.shape, value.strides, value.dtype.str, str(value.dtype)
    return id(value)


def _plain(value: Any, node: Callable[[Any, str], Any], path: str) -> Node | None:
    """Return the tree of a small value that JSON does not know."""
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        if value.dtype.itemsize > 8:
            raise Unsupported(f"is a {value.dtype}, which cannot be kept")
        return {"number": value.dtype.str, "value": node(value.item(), path)}
    if type(value) is np.str_:
        return {"number": "str", "value": str(value)}
    if isinstance(value, np.dtype):
        return {"numpy": "|O" if value.hasobject else describe(value)}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"type": np.dtype(value).str}
    if isinstance(value, type) and value in PLAIN_TYPES:
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
    if _is_missing(value):
        return {"missing": "pandas"}
    return None


def _is_missing(value: Any) -> bool:
    """Tell whether a value is pandas' NA, without importing pandas."""
    kind = type(value)
    return kind.__name__ == "NAType" and kind.__module__.startswith("pandas.")


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


class Reader:
    """Makes a model of its tree; only classes that may be held are made."""

    def __init__(self, arrays: ArrayReader, file: Path) -> None:
        self._arrays = arrays
        self._file = file
        self._known: dict[int, Any] = {}

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
        return CONTAINERS[tag](self.value(v) for v in node[tag])

    def _mapping(self, node: Node, tag: str) -> Any:
        items = node[tag]
        if type(items) is dict:
            return MAPPINGS[tag]((key, self.value(v)) for key, v in items.items())
        return MAPPINGS[tag]((self.value(key), self.value(v)) for key, v in items)

    def _same(self, node: Node) -> Any:
        return self._known[node["same"]]

    def _float(self, node: Node) -> float:
        if node["float"] not in ("nan", "inf", "-inf"):
            raise ValueError(f"a float {node['float']!r}")
        return float(node["float"])

    def _number(self, node: Node) -> Any:
        if node["number"] == "str":
            return np.str_(node["value"])
        dtype = np.dtype(node["number"])
        if dtype.kind not in "biuf":
            raise ValueError(f"a number of type {dtype}")
        return dtype.type(self.value(node["value"]))

    def _dtype(self, node: Node) -> Any:
        return np.dtype(object) if node["numpy"] == "|O" else described(node["numpy"])

    def _type(self, node: Node) -> Any:
        plain = {t.__name__: t for t in PLAIN_TYPES}
        return plain.get(node["type"]) or np.dtype(node["type"]).type

    def _slice(self, node: Node) -> slice:
        start, stop, step = (self.value(part) for part in node["slice"])
        return slice(start, stop, step)

    def _path(self, node: Node) -> Path:
        return Path(node["path"])

    def _device(self, node: Node) -> torch.device:
        return torch.device(node["device"])

    def _torch(self, node: Node) -> Any:
        found = getattr(torch, node["torch"])
        if not isinstance(found, torch.dtype):
            raise ValueError(f"a type {node['torch']!r}")
        return found

    def _missing(self, node: Node) -> Any:
        import pandas

        return pandas.NA

    def _objects(self, node: Node) -> Any:
        items = np.empty(len(node["objects"]), dtype=object)
        for i, item in enumerate(node["objects"]):
            items[i] = self.value(item)
        return items.reshape(node["shape"])

    def _object(self, node: Node) -> Any:
        name = node["object"]
        cls = find(name) if type(name) is str else None
        if cls is None:
            raise ModelFileError(
                f"{self._file} names the class {name!r}, which no model may hold. "
                "It was not imported. Load only models written by denspu.save, with "
                "a denspu at least as new as theirs."
            )
        state = {key: self.value(v) for key, v in node["state"].items()}
        return put_together(current(name), cls, state)

    def _array(self, node: Node) -> Any:
        return self._arrays.array(node)

    def _tensor(self, node: Node) -> Any:
        return self._arrays.tensor(node)


def _with(method: Callable[[Reader, Node, str], Any], tag: str) -> Any:
    return lambda reader, node: method(reader, node, tag)


READERS: dict[str, Callable[[Reader, Node], Any]] = {
    **{tag: _with(Reader._container, tag) for tag in CONTAINERS},
    **{tag: _with(Reader._mapping, tag) for tag in MAPPINGS},
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
