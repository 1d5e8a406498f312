"""Tiny look-alikes of the benchmark sets, and a wall around the network."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from denspu.data import _sets, cifar10, fashion_mnist
from denspu.data._spec import PARTS

N_BATCH = 4


@pytest.fixture(autouse=True)
def _no_network(monkeypatch, tmp_path):
    """Fail loudly if a test reaches for the network or a package client."""

    def forbidden(*args, **kwargs):
        raise AssertionError(f"a test went outside: {args}")

    monkeypatch.setattr("pooch.retrieve", forbidden)
    monkeypatch.setattr(subprocess, "run", forbidden)
    monkeypatch.setenv("DENSPU_HOME", str(tmp_path / "home"))


def _shrunk(spec, arrays):
    return replace(
        spec,
        shapes={part: arrays[part].shape for part in PARTS},
        sha256={
            part: hashlib.sha256(arrays[part].tobytes()).hexdigest() for part in PARTS
        },
        installed=None,
    )


@pytest.fixture
def tiny_fashion(monkeypatch):
    """Register a Fashion-MNIST of 6 + 3 images and return its arrays."""
    rng = np.random.default_rng(0)
    arrays = {
        "X_train": rng.integers(0, 256, (6, 28, 28), dtype=np.uint8),
        "y_train": rng.integers(0, 10, 6, dtype=np.uint8),
        "X_test": rng.integers(0, 256, (3, 28, 28), dtype=np.uint8),
        "y_test": rng.integers(0, 10, 3, dtype=np.uint8),
    }
    spec = _shrunk(fashion_mnist.SPEC, arrays)
    monkeypatch.setitem(_sets.SETS, "fashion-mnist", spec)
    return arrays


@pytest.fixture
def tiny_cifar(monkeypatch):
    """Register a CIFAR-10 of 5 batches of 4 images and a test batch."""
    rng = np.random.default_rng(1)
    n = 5 * N_BATCH
    arrays = {
        "X_train": rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8),
        "y_train": rng.integers(0, 10, n, dtype=np.uint8),
        "X_test": rng.integers(0, 256, (N_BATCH, 32, 32, 3), dtype=np.uint8),
        "y_test": rng.integers(0, 10, N_BATCH, dtype=np.uint8),
    }
    spec = _shrunk(cifar10.SPEC, arrays)
    monkeypatch.setitem(_sets.SETS, "cifar10", spec)
    return arrays


def idx_bytes(array):
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


@pytest.fixture
def write_idx():
    """Write the four IDX files of a tiny set into a folder."""

    def write(folder, arrays):
        folder.mkdir(parents=True, exist_ok=True)
        for part, (name, _) in fashion_mnist._FILES.items():
            (folder / name).write_bytes(idx_bytes(arrays[part]))
        return folder

    return write


def _batches(arrays):
    images = np.concatenate([arrays["X_train"], arrays["X_test"]])
    labels = np.concatenate([arrays["y_train"], arrays["y_test"]])
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    for number, name in enumerate(names):
        rows = slice(number * N_BATCH, (number + 1) * N_BATCH)
        yield name, images[rows], labels[rows]


@pytest.fixture
def write_batches():
    """Write the six binary batches, pixel by pixel as the format says."""

    def write(folder, arrays):
        folder.mkdir(parents=True, exist_ok=True)
        for name, images, labels in _batches(arrays):
            records = b"".join(
                bytes([label]) + b"".join(image[:, :, c].tobytes() for c in range(3))
                for image, label in zip(images, labels, strict=True)
            )
            (folder / f"{name}.bin").write_bytes(records)
        return folder

    return write


@pytest.fixture
def write_sheets():
    """Write the PNG sheets and label lists of the npm package."""
    image_module = pytest.importorskip("PIL.Image")

    def write(folder, arrays):
        folder.mkdir(parents=True, exist_ok=True)
        for name, images, _ in _batches(arrays):
            sheet = image_module.fromarray(images.reshape(len(images), 1024, 3))
            sheet.save(folder / f"{name}.png")
        for part, name in (("y_train", "train"), ("y_test", "test")):
            text = json.dumps(arrays[part].tolist())
            (folder / f"{name}_lables.json").write_text(text)
        return folder

    return write
