"""Open a benchmark set by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from denspu._parameters import Whole
from denspu._typing import IntArray
from denspu.data._cache import folder_of, is_stored, load
from denspu.data._fetch import get
from denspu.data._sets import find_set
from denspu.data._spec import Arrays, Spec
from denspu.exceptions import DataNotFoundError, InvalidParameterError


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark:
    """A benchmark set in memory, with its true classes.

    ``make_pu(b.X_train, b.y_train, positive=b.positive, n_labeled=1000)`` turns its
    training part into PU data.
    """

    name: str
    X_train: NDArray[Any]
    """Images N×H×W or N×H×W×C; bytes, or floats 0..16 for digits."""
    y_train: IntArray
    """Class ids."""
    X_test: NDArray[Any]
    y_test: IntArray
    class_names: tuple[str, ...]
    """Name of each class id."""
    positive: tuple[int, ...]
    """Class ids that are positive by default."""
    licence: str

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.X_train.shape[1:]))
        return (
            f"Benchmark({self.name!r}, {len(self.X_train)} train, "
            f"{len(self.X_test)} test, {shape}, {len(self.class_names)} classes)"
        )


def load_dataset(
    name: str,
    *,
    data_home: str | Path | None = None,
    download: bool = True,
    split_seed: int | None = None,
) -> Benchmark:
    """Load a benchmark set, fetching it first if need be.

    Parameters
    ----------
    name : {"digits", "fashion-mnist", "cifar10"}
        The set; what each holds is in its module, such as
        :mod:`denspu.data.cifar10`.
    data_home : path, optional
        Where fetched sets are kept; see :func:`denspu.data.data_home`.
    download : bool
        Fetch the set if it is not there. If False, raise instead.
    split_seed : int, optional
        Seed of the train/test split of ``"digits"`` (0 if not given). The other sets
        come with a split of their own and take no seed.

    Returns
    -------
    Benchmark

    Examples
    --------
    >>> from denspu import load_dataset
    >>> load_dataset("digits")
    Benchmark('digits', 1257 train, 540 test, 8×8, 10 classes)
    """
    spec = find_set(name)
    arrays = _split(spec, split_seed) or _open(spec, data_home, download)
    return Benchmark(
        name=spec.name,
        X_train=arrays["X_train"],
        y_train=arrays["y_train"].astype(np.int64),
        X_test=arrays["X_test"],
        y_test=arrays["y_test"].astype(np.int64),
        class_names=spec.class_names,
        positive=spec.positive,
        licence=spec.licence,
    )


def _split(spec: Spec, seed: int | None) -> Arrays | None:
    """Return the arrays of a set that is split by seed, or None."""
    if seed is not None:
        if spec.split is None:
            raise InvalidParameterError(
                f"split_seed={seed!r} is given, but {spec.name} comes with a split of "
                "its own. Leave it out."
            )
        if not Whole(0).allows(seed):
            raise InvalidParameterError(
                f"split_seed={seed!r} must be an integer of at least 0."
            )
    return None if spec.split is None else spec.split(0 if seed is None else seed)


def _open(spec: Spec, home: str | Path | None, download: bool) -> Arrays:
    folder = folder_of(spec, home)
    if not is_stored(folder):
        if not download:
            raise DataNotFoundError(
                f"{spec.name} is not in {folder}. Run: denspu data get {spec.name}, "
                "or pass download=True."
            )
        get(spec.name, data_home=home)
    return load(spec, folder)
