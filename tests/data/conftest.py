"""Tiny look-alikes of the benchmark sets, and a wall around the network."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from denspu.data import _sets

N_BATCH = 4


@pytest.fixture(autouse=True)
def _no_network(monkeypatch, tmp_path):
    """Fail loudly if a test reaches for the network or a package client."""

    def forbidden(*args, **kwargs):
        raise AssertionError(f"a test went outside: {args}")

    monkeypatch.setattr(subprocess, "run", forbidden)
    monkeypatch.setenv("DENSPU_HOME", str(tmp_path / "home"))


def _shrunk(monkeypatch, spec, n_train, n_test):
    """Register a set of few random images and return its arrays."""
    rng = np.random.default_rng(0)
    arrays = {
        "X_train": rng.integers(0, 256, (n_train, *spec.shape), dtype=np.uint8),
        "y_train": rng.integers(0, 10, n_train, dtype=np.uint8),
        "X_test": rng.integers(0, 256, (n_test, *spec.shape), dtype=np.uint8),
        "y_test": rng.integers(0, 10, n_test, dtype=np.uint8),
    }
    small = replace(
        spec,
        n_train=n_train,
        n_test=n_test,
        sha256={p: hashlib.sha256(a.tobytes()).hexdigest() for p, a in arrays.items()},
    )
    monkeypatch.setitem(_sets.SETS, spec.name, small)
    return arrays


@pytest.fixture
def tiny_fashion(monkeypatch):
    return _shrunk(monkeypatch, _sets.FASHION_MNIST, 6, 3)


@pytest.fixture
def tiny_cifar(monkeypatch):
    """Five batches of 4 images and a test batch."""
    return _shrunk(monkeypatch, _sets.CIFAR10, 5 * N_BATCH, N_BATCH)


@pytest.fixture
def write_idx():
    """Write the four IDX files of a tiny set into a folder."""

    def write(folder, arrays):
        folder.mkdir(parents=True, exist_ok=True)
        for part, name in zip(_sets.PARTS, _sets.FASHION_FILES, strict=True):
            shape = arrays[part].shape
            head = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
            (folder / name).write_bytes(head + arrays[part].tobytes())
        return folder

    return write


@pytest.fixture
def write_sheets():
    """Write the PNG sheets and label lists of the npm package."""

    def write(folder, arrays):
        folder.mkdir(parents=True, exist_ok=True)
        images = np.concatenate([arrays["X_train"], arrays["X_test"]])
        for number, name in enumerate(_sets.CIFAR_SHEETS):
            some = images[number * N_BATCH : (number + 1) * N_BATCH]
            Image.fromarray(some.reshape(N_BATCH, 1024, 3)).save(folder / name)
        for part, name in zip(("y_train", "y_test"), _sets.CIFAR_LABELS, strict=True):
            (folder / name).write_text(json.dumps(arrays[part].tolist()))
        return folder

    return write
