"""``save`` and ``load``: a fitted model as a folder of plain files.

``manifest.json`` names the other files with their sizes and SHA-256 sums. They guard
against damage, not against somebody who writes new sums; nothing in the files is ever
run, whoever wrote them.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import warnings
from collections.abc import Mapping
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

from denspu import __version__
from denspu._files import as_json, new_folder
from denspu._machine import resolve_device
from denspu.exceptions import DeviceError, ModelFileError, ModelVersionWarning
from denspu.persistence.tree import Reader, Writer

CONFIG, ARRAYS, MANIFEST = "config.json", "arrays.safetensors", "manifest.json"
FILES = (CONFIG, ARRAYS)
EXTRAS = ("input.json",)
"""What may lie beside the model and is covered by the manifest: how to read files."""
FORMAT, VERSION = "denspu model", 1

HOW = "Load the folder that denspu.save wrote."


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
    _check_target(target, overwrite)
    writer = Writer()
    tree = writer.node(model, "model")
    files = {CONFIG: as_json({"versions": versions(), "model": tree})}
    files |= {_extra_file(name): as_json(held) for name, held in (extra or {}).items()}
    try:
        with new_folder(target, overwrite=overwrite) as work:
            for name, content in files.items():
                (work / name).write_bytes(content)
            save_file(writer.arrays, work / ARRAYS)
            _seal(work)
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
    if device is not None:
        resolve_device(device)
    try:
        sealed = _read_bytes(place / MANIFEST)
        return _load(place, device)
    except ModelFileError:
        if sealed == _read_bytes(place / MANIFEST):
            raise
        return _load(place, device)  # it was replaced while it was read


def load_extra(folder: str | Path, name: str = "input") -> Any:
    """Return what ``save(..., extra={name: ...})`` kept, or None if there is nothing.

    The folder is checked as by :func:`load`.
    """
    place = Path(folder).resolve()
    file = _extra_file(name)
    return _read_json(place / file) if file in _checked(place) else None


def _load(place: Path, device: str | None) -> Any:
    _checked(place)
    path = place / CONFIG
    config = _read_json(path)
    if not isinstance(config, dict) or set(config) != {"versions", "model"}:
        raise ModelFileError(f"{path} does not describe a model. Save it again.")
    _warn_if_other_versions(config["versions"], path)
    try:
        reader = Reader(place / ARRAYS, path)
        model = reader.value(config["model"])
        _refuse_others(model, f"{path} describes something else: ")
        for part in reader.estimators:
            _move(part, device)
    except ModelFileError:
        raise
    except SafetensorError as error:
        raise ModelFileError(
            f"{place / ARRAYS} is not a safetensors file ({error}). It was never "
            "unpickled. Load a folder that denspu.save wrote."
        ) from None
    except Exception as error:  # a made-up tree can raise anything
        raise ModelFileError(
            f"{path} does not describe a model that this denspu can make "
            f"({type(error).__name__}: {error!s:.200}). Use the versions it names, "
            "or save the model again."
        ) from error
    return model


def _move(part: Any, device: str | None) -> None:
    """Give a part the device, or the CPU where its own is not here."""
    for name in ("device", "device_"):
        saved = vars(part).get(name)
        if not isinstance(saved, str):
            continue
        wanted = device or saved
        try:
            found = str(resolve_device(wanted))
            setattr(part, name, found if device and name == "device_" else wanted)
        except DeviceError:
            setattr(part, name, "cpu")


def _refuse_others(model: Any, start: str = "") -> None:
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(
            f"{start}{type(model).__name__} is not a denspu method or part. Save and "
            "load fitted methods, encoders, detectors, classifiers or refiners."
        )
    if not start and hasattr(model, "fit"):
        check_is_fitted(model)


# --- the folder ----------------------------------------------------------------------


def _extra_file(name: str) -> str:
    if f"{name}.json" not in EXTRAS:
        known = ", ".join(extra.removesuffix(".json") for extra in EXTRAS)
        raise ModelFileError(f"extra={name!r} must be one of {known}.")
    return f"{name}.json"


def _check_target(target: Path, overwrite: bool) -> None:
    """Refuse a target whose place is taken by something else."""
    if target.exists() and not target.is_dir():
        raise ModelFileError(f"{target} is a file. Choose a folder for the model.")
    held = {path.name for path in target.iterdir()} if target.is_dir() else set()
    if held and not overwrite:
        raise ModelFileError(
            f"{target} exists already. Pass overwrite=True, or another folder."
        )
    if held and (MANIFEST not in held or held - {*FILES, *EXTRAS, MANIFEST}):
        raise ModelFileError(
            f"{target} holds more than a saved model, or something else "
            f"({', '.join(sorted(held)[:3])}), and overwrite=True does not delete "
            "that. Choose another folder."
        )


def _seal(work: Path) -> None:
    """Write the manifest of the files in a folder."""
    names = [name for name in (*FILES, *EXTRAS) if (work / name).is_file()]
    for name in names:  # safetensors keeps its file to the owner
        (work / name).chmod((work / CONFIG).stat().st_mode)
    files = {name: _facts(work / name) for name in names}
    manifest = {"format": FORMAT, "version": VERSION, "files": files}
    (work / MANIFEST).write_bytes(as_json(manifest))


def _facts(path: Path) -> dict[str, Any]:
    """Return size and sum of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _checked(folder: Path) -> dict[str, Any]:
    """Return the manifest's files; refuse a folder that is no whole, sound model."""
    if not folder.is_dir():
        found = f"is {_what(folder)}, and" if folder.is_file() else "is no folder:"
        raise ModelFileError(f"{folder} {found} a model is a folder. {HOW}")
    files = _manifest(folder)
    for name, facts in files.items():
        path = folder / name
        if not path.is_file():
            raise ModelFileError(f"{path} is missing. Copy the whole folder again.")
        if facts != _facts(path):
            raise ModelFileError(
                f"{path} is {_what(path)} that does not have the size and SHA-256 sum "
                f"of {MANIFEST}: it was changed or damaged after saving. Copy the "
                "folder again, or fit and save anew."
            )
    return files


def _manifest(folder: Path) -> dict[str, Any]:
    """Return the files of a model with their sizes and sums, as it was sealed."""
    path = folder / MANIFEST
    if not path.is_file():
        others = [p for p in sorted(folder.iterdir()) if p.is_file()]
        hint = f" ({others[0].name} is {_what(others[0])})" if others else ""
        raise ModelFileError(f"{folder} holds no {MANIFEST}{hint}. {HOW}")
    found = _read_json(path)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not the manifest of a denspu model. {HOW}")
    if found.get("version") != VERSION:
        raise ModelFileError(
            f"{path} says format version {found.get('version')!r:.20}; this denspu "
            f"reads version {VERSION}. Use the denspu that saved it, or a newer one."
        )
    files: dict[str, Any] = found.get("files", {})
    names = tuple(files) if isinstance(files, dict) else ()
    listed = names[:2] == FILES and set(names[2:]) <= set(EXTRAS)
    if not listed or as_json(found) != path.read_bytes():
        raise ModelFileError(
            f"{path} is not as denspu.save writes it: it must list "
            f"{' and '.join(FILES)} alone. It was changed or damaged. {HOW}"
        )
    return files


def _read_bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _read_json(path: Path) -> Any:
    """Return the content of a JSON file, or say what it is instead."""
    try:
        found = json.loads(path.read_bytes().decode("utf-8"))
        json.dumps(found)  # so deep that it cannot be written is too deep to follow
    except (ValueError, RecursionError, MemoryError):
        raise ModelFileError(
            f"{path} is {_what(path)}, not the JSON that denspu.save writes. {HOW}"
        ) from None
    return found


def _what(path: Path) -> str:
    """Say what a file looks like; it is never unpickled."""
    with path.open("rb") as file:
        start = file.read(4)
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "a pickle (never loaded, as it could run any code)"
    if start == b"PK\x03\x04":
        return "a zip archive, perhaps of torch.save (never loaded)"
    return "a file"


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
        digits = 2 if name == "scikit-learn" else 1  # whose objects change with it
        then = re.sub(r"[^\w.+-]", "?", str(saved.get(name, "unknown")))[:30]
        if then.split(".")[:digits] != here.split(".")[:digits]:
            other.append(f"{name} {then} (here {here})")
    if other:
        warnings.warn(
            f"{path} was written with {', '.join(other)}: answers may differ. Fit and "
            "save anew, or use those versions.",
            ModelVersionWarning,
            stacklevel=4,
        )
