"""``save`` and ``load``: a fitted model as a folder of plain files."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
import torch
from safetensors import SafetensorError
from safetensors.numpy import save_file
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from denspu._files import as_json, new_folder
from denspu._machine import resolve_device
from denspu._version import __version__
from denspu.exceptions import DeviceError, ModelFileError, ModelVersionWarning
from denspu.persistence.arrays import ArrayReader, MissingEntry, WrongEntry
from denspu.persistence.folder import (
    ARRAYS,
    CONFIG,
    EXTRAS,
    check_folder,
    check_target,
    manifest_of,
    read_json,
    seal,
)
from denspu.persistence.values import Reader, Writer

MINOR_COUNTS = ("scikit-learn",)
"""Packages whose fitted objects change with the second number of the version."""


def save(
    model: Any,
    folder: str | Path,
    *,
    overwrite: bool = False,
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Keep a fitted model in a folder; :func:`load` gives the same answers bit by bit.

    The folder holds ``config.json`` (settings and facts), ``arrays.safetensors`` (all
    arrays) and ``manifest.json`` (their sums). It is written whole or not at all, and
    never as a pickle.

    Parameters
    ----------
    model : estimator
        A fitted method, or a part: encoder, detector, classifier, refiner.
    folder : str or Path
        Made by this call, with the folders above it.
    overwrite : bool, default=False
        Replace a model that is saved there already.
    extra : mapping, optional
        Plain data to keep beside the model: ``{"input": ...}`` becomes ``input.json``,
        how files were read. :func:`load_extra` gives it back.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ModelFileError
        If the model holds a class of your own or a function, if the folder is taken,
        or if the disk is full. Nothing half-written remains.

    Examples
    --------
    >>> import tempfile, denspu
    >>> data = denspu.make_pu([[0.0], [0.1], [5.0], [5.1]] * 9, [1, 1, 0, 0] * 9,
    ...                       n_labeled=6, random_state=0)
    >>> model = denspu.make("one_class", prior=0.5).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     again = denspu.load(denspu.save(model, f"{place}/model"))
    >>> bool((again.predict(data.X) == model.predict(data.X)).all())
    True
    """
    _refuse_others(model)
    target = Path(folder).resolve()
    check_target(target, overwrite)
    writer = Writer()
    tree = writer.node(model, "model")
    config = as_json({"versions": versions(), "model": tree})
    beside = {_extra_file(name): as_json(held) for name, held in (extra or {}).items()}
    try:
        with new_folder(target, overwrite=overwrite) as work:
            (work / CONFIG).write_bytes(config)
            save_file(writer.arrays.entries, work / ARRAYS)
            for name, content in beside.items():
                (work / name).write_bytes(content)
            seal(work)
    except (OSError, SafetensorError) as error:
        raise ModelFileError(
            f"{target} could not be written: {error}. Nothing was left behind. Make "
            "room, or choose another folder."
        ) from error
    return target


def load(folder: str | Path, *, device: str | None = None) -> Any:
    """Return a model kept by :func:`save`, ready to predict.

    Nothing in the folder is run or unpickled: only classes on denspu's own list are
    made, and only after sizes and sums have been found right.

    Parameters
    ----------
    folder : str or Path
    device : str or None, default=None
        ``"cpu"``, ``"cuda"`` or ``"auto"`` for the model and all its parts. ``None``
        keeps what was saved; a device that is not here becomes the CPU.

    Raises
    ------
    ModelFileError
        If the folder is not a whole, undamaged model.
    """
    place = Path(folder).resolve()
    check_folder(place)
    if device is not None:
        resolve_device(device)
    path = place / CONFIG
    config = read_json(path)
    if not isinstance(config, dict) or set(config) != {"versions", "model"}:
        raise ModelFileError(f"{path} does not describe a model. Save it again.")
    _warn_if_other_versions(config["versions"], path)
    model = _read(config["model"], place)
    _move(model, device)
    return model


def load_extra(folder: str | Path, name: str = "input") -> Any:
    """Return what ``save(..., extra={name: ...})`` kept, or None if there is nothing.

    The folder is checked as by :func:`load`.
    """
    place = Path(folder).resolve()
    check_folder(place)
    file = _extra_file(name)
    return read_json(place / file) if file in manifest_of(place) else None


def _extra_file(name: str) -> str:
    file = f"{name}.json"
    if file not in EXTRAS:
        known = ", ".join(extra.removesuffix(".json") for extra in EXTRAS)
        raise ModelFileError(f"extra={name!r} must be one of {known}.")
    return file


def _read(tree: Any, folder: Path) -> Any:
    try:
        arrays = ArrayReader(folder / ARRAYS)
    except (SafetensorError, OSError) as error:
        raise ModelFileError(
            f"{folder / ARRAYS} is not a safetensors file ({error}). It was never "
            "unpickled. Load a folder that denspu.save wrote."
        ) from None
    try:
        model = Reader(arrays, folder / CONFIG).value(tree)
    except MissingEntry as error:
        raise ModelFileError(
            f"{folder / ARRAYS} lacks the array {error.args[0]!r} that {CONFIG} names. "
            "Save the model again."
        ) from None
    except WrongEntry as error:
        raise ModelFileError(
            f"{folder / ARRAYS}: {error}. Save the model again."
        ) from None
    except ModelFileError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        ImportError,
        LookupError,
        MemoryError,
        RecursionError,
        RuntimeError,
        SafetensorError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelFileError(
            f"{folder / CONFIG} does not describe a model that this denspu can make "
            f"({type(error).__name__}: {error}). Use the versions it names, or save "
            "the model again."
        ) from error
    _refuse_others(model, f"{folder / CONFIG} describes something else: ")
    return model


def _refuse_others(model: Any, start: str = "") -> None:
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(
            f"{start}{type(model).__name__} is not a denspu method or part. Save and "
            "load fitted methods, encoders, detectors, classifiers or refiners."
        )
    if not start and hasattr(model, "fit"):
        check_is_fitted(model)


# --- versions ------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Return the versions that a model's answers depend on."""
    return {
        "denspu": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "torch": str(torch.__version__),
    }


def _warn_if_other_versions(saved: Any, path: Path) -> None:
    if not isinstance(saved, dict):
        raise ModelFileError(f"{path} names no versions. Save the model again.")
    other = []
    for name, here in versions().items():
        digits = 2 if name in MINOR_COUNTS else 1
        then = str(saved.get(name, "unknown"))
        if then.split(".")[:digits] != here.split(".")[:digits]:
            other.append(f"{name} {then} (here {here})")
    if other:
        warnings.warn(
            f"{path} was written with {', '.join(other)}: answers may differ. Fit and "
            "save anew, or use those versions.",
            ModelVersionWarning,
            stacklevel=3,
        )


# --- device --------------------------------------------------------------------------


def _move(model: Any, device: str | None) -> None:
    """Give model and parts a device that is here."""
    for part in _parts(model, set()):
        for name in ("device", "device_"):
            saved = vars(part).get(name)
            if not isinstance(saved, str):
                continue
            if device is not None:
                wanted = str(resolve_device(device)) if name == "device_" else device
                setattr(part, name, wanted)
            elif not _is_here(saved):
                setattr(part, name, "cpu")


def _is_here(device: str) -> bool:
    try:
        resolve_device(device)
    except DeviceError:
        return False
    return True


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield every estimator inside a model, itself first."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, BaseEstimator):
        yield value
        for held in vars(value).values():
            yield from _parts(held, seen)
    elif type(value) in (list, tuple):
        for held in value:
            yield from _parts(held, seen)
    elif type(value) is dict:
        for held in value.values():
            yield from _parts(held, seen)
    elif type(value).__module__.startswith("denspu.") and hasattr(value, "__dict__"):
        for held in vars(value).values():
            yield from _parts(held, seen)
