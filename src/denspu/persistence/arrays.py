"""Arrays and tensors as entries of one safetensors file, byte for byte.

An entry holds the numbers in row order; a description beside it holds the type and,
where it differs, the order in memory, on which the last digit of a sum can depend.
Types that safetensors does not know (records, texts, dates) are kept as their bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn

from denspu.persistence.objects import Unsupported

NATIVE = frozenset(
    [
        "|b1",
        "|i1",
        "|u1",
        "<i2",
        "<u2",
        "<i4",
        "<u4",
        "<i8",
        "<u8",
        "<f2",
        "<f4",
        "<f8",
    ]  # as dtype.str
)
"""NumPy types that safetensors holds as they are."""

TENSORS = {
    "bfloat16": torch.int16,
    "bool": torch.bool,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "int8": torch.int8,
    "uint8": torch.uint8,
}
"""Types of tensors, and the type each is kept as."""

Node = dict[str, Any]


class ArrayWriter:
    """Collects the arrays of a model; the same memory is kept once."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}

    def _free(self, name: str) -> str:
        while name in self.entries:
            name += "'"
        return name

    def array(self, name: str, value: np.ndarray[Any, Any]) -> Node:
        """Take an array and return its description."""
        name = self._free(name)
        if value.dtype.hasobject or value.dtype.kind not in "biufcSUVMm":
            raise Unsupported(f"is an array of {value.dtype}, which cannot be kept")
        if not _dense(value.shape, _steps(value)):
            value = value.copy(order="K")
        node: Node = {
            "array": name,
            "dtype": describe(value.dtype),
            "shape": list(value.shape),
        }
        self._note_steps(node, _steps(value))
        rows = np.ascontiguousarray(value)
        if value.dtype.names:
            rows = _without_gaps(rows)
        if value.dtype.str not in NATIVE:
            rows = np.frombuffer(rows.tobytes(), dtype=np.uint8)
        self.entries[name] = (
            rows.reshape(value.shape) if rows.size == value.size else rows
        )
        return node

    def tensor(self, name: str, value: Tensor) -> Node:
        """Take a tensor and return its description."""
        name = self._free(name)
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
        self._note_steps(node, held.stride())
        self.entries[name] = held.contiguous().view(TENSORS[kind]).numpy()
        return node

    @staticmethod
    def _note_steps(node: Node, steps: tuple[int, ...]) -> None:
        if 0 not in node["shape"] and steps != _row_steps(node["shape"]):
            node["steps"] = list(steps)


class ArrayReader:
    """Gives the arrays of a file back, checked against their descriptions."""

    def __init__(self, path: Path) -> None:
        file: Any = safe_open(path, framework="numpy")
        self._file = file
        self._names = set(file.keys())

    def array(self, node: Mapping[str, Any]) -> Any:
        """Return the array of a description."""
        dtype = described(node["dtype"])
        shape, steps = _layout(node)
        if dtype.str in NATIVE:
            rows = self._entry(node["array"], dtype, shape)
        else:
            size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            flat = self._bytes(node["array"], size)
            rows = np.frombuffer(flat.tobytes(), dtype=dtype).reshape(shape)
        if steps is None:
            return np.array(rows, order="C")
        room = np.empty(rows.size, dtype=dtype)
        strides = [step * dtype.itemsize for step in steps]
        held = np.lib.stride_tricks.as_strided(room, shape, strides)
        held[...] = rows
        return held

    def tensor(self, node: Mapping[str, Any]) -> Tensor:
        """Return the tensor of a description, on the CPU."""
        dtype = getattr(torch, node["dtype"]) if node["dtype"] in TENSORS else None
        if dtype is None:
            raise ValueError(f"a tensor of type {node['dtype']!r}")
        kept = TENSORS[node["dtype"]]
        shape, steps = _layout(node)
        like = torch.empty(0, dtype=kept).numpy().dtype
        rows = torch.from_numpy(np.array(self._entry(node["tensor"], like, shape)))
        room = torch.empty_strided(shape, steps or _row_steps(shape), dtype=dtype)
        room.copy_(rows.view(dtype))
        wanted = bool(node.get("requires_grad", False))
        if node.get("parameter"):
            return nn.Parameter(room, requires_grad=wanted)
        return room.requires_grad_(wanted)

    def _entry(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        if name not in self._names:
            raise MissingEntry(name)
        found = self._file.get_tensor(name)
        if found.dtype != dtype or found.shape != shape:
            raise WrongEntry(
                f"{name!r} is {found.dtype} of shape {found.shape}, and should be "
                f"{dtype} of shape {shape}"
            )
        return found

    def _bytes(self, name: str, size: int) -> Any:
        if name in self._names and self._file.get_slice(name).get_shape() != [size]:
            raise WrongEntry(f"{name!r} does not have {size} bytes")
        return self._entry(name, np.dtype(np.uint8), (size,))


class MissingEntry(Exception):
    """A description names an entry that the file does not have."""


class WrongEntry(Exception):
    """An entry has another type or shape than its description says."""


def describe(dtype: np.dtype[Any]) -> Any:
    """Return a type as text, or as a list of fields."""
    return np.lib.format.dtype_to_descr(dtype)


def described(found: Any) -> np.dtype[Any]:
    """Return the type of a description; types that hold objects are refused."""
    dtype = np.lib.format.descr_to_dtype(_tuples(found))
    if dtype.hasobject:
        raise ValueError("an array of objects")
    return dtype


def _tuples(found: Any) -> Any:
    """Return fields as NumPy wants them: a list of tuples."""
    if not isinstance(found, list):
        return found
    fields = []
    for name, kind, *shape in found:
        fields.append((name, _tuples(kind), *map(tuple, shape)))
    return fields


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
