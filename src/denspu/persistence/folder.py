"""The folder of a model: written whole or not at all, and checked before it is read.

``manifest.json`` names the other files with their sizes and SHA-256 sums. They guard
against damage, not against somebody who writes new sums; nothing in the files is ever
run, whoever wrote them.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from denspu._files import as_json
from denspu.exceptions import ModelFileError

CONFIG, ARRAYS, MANIFEST = "config.json", "arrays.safetensors", "manifest.json"
FILES = (CONFIG, ARRAYS)
EXTRAS = ("input.json",)
"""What may lie beside the model and is covered by the manifest: how to read files."""
FORMAT, VERSION = "denspu model", 1

BLOCK = 1 << 20
PICKLED = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""First bytes of a pickle."""

HOW = "Load the folder that denspu.save wrote."


# --- writing -------------------------------------------------------------------------


def check_target(target: Path, overwrite: bool) -> None:
    """Refuse a target whose place is taken by something else."""
    if target.is_dir():
        held = {path.name for path in target.iterdir()}
        if not held:
            return
        if not overwrite:
            raise ModelFileError(
                f"{target} exists already. Pass overwrite=True, or another folder."
            )
        strange = sorted(held - {*FILES, *EXTRAS, MANIFEST})
        if strange or MANIFEST not in held:
            raise ModelFileError(
                f"{target} holds more than a saved model, or something else "
                f"({', '.join(sorted(held)[:3])}), and overwrite=True does not delete "
                "that. Choose another folder."
            )
    elif target.exists():
        raise ModelFileError(f"{target} is a file. Choose a folder for the model.")


def seal(work: Path) -> None:
    """Write the manifest of the files in a folder."""
    files = {}
    mode = (work / CONFIG).stat().st_mode
    for name in (*FILES, *(name for name in EXTRAS if (work / name).is_file())):
        (work / name).chmod(mode)  # safetensors keeps its file to the owner
        files[name] = _facts(work / name)
    manifest = {"format": FORMAT, "version": VERSION, "files": files}
    (work / MANIFEST).write_bytes(as_json(manifest))


def _facts(path: Path) -> dict[str, Any]:
    """Return size and sum of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}


# --- reading -------------------------------------------------------------------------


def check_folder(folder: Path) -> None:
    """Refuse a folder that is not a whole, undamaged model."""
    if folder.is_file():
        raise ModelFileError(
            f"{folder} is {_what(folder)}, and a model is a folder. {HOW}"
        )
    if not folder.is_dir():
        raise ModelFileError(f"There is no folder {folder}. {HOW}")
    for name, facts in manifest_of(folder).items():
        path = folder / name
        if not path.is_file():
            raise ModelFileError(f"{path} is missing. Copy the whole folder again.")
        if facts != _facts(path):
            raise ModelFileError(
                f"{path} is {_what(path)} that does not have the size and SHA-256 sum "
                f"of {MANIFEST}: it was changed or damaged after saving. Copy the "
                "folder again, or fit and save anew."
            )


def manifest_of(folder: Path) -> dict[str, Any]:
    """Return the files of a model with their sizes and sums, as it was sealed."""
    path = folder / MANIFEST
    if not path.is_file():
        others = [p for p in sorted(folder.iterdir()) if p.is_file()]
        hint = f" ({others[0].name} is {_what(others[0])})" if others else ""
        raise ModelFileError(f"{folder} holds no {MANIFEST}{hint}. {HOW}")
    found = read_json(path)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not the manifest of a denspu model. {HOW}")
    if found.get("version") != VERSION:
        raise ModelFileError(
            f"{path} says format version {found.get('version')!r}; this denspu reads "
            f"version {VERSION}. Use the denspu that saved it, or a newer one."
        )
    files = found.get("files")
    written = as_json(found) == path.read_bytes()
    if not written or not isinstance(files, dict) or not _listed(tuple(files)):
        raise ModelFileError(
            f"{path} is not as denspu.save writes it: it must list "
            f"{' and '.join(FILES)} alone. It was changed or damaged. {HOW}"
        )
    return dict(files)


def _listed(names: tuple[str, ...]) -> bool:
    """Tell whether these are the files of a model: both, then perhaps extras."""
    return names[:2] == FILES and set(names[2:]) <= set(EXTRAS)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, or say what it is instead."""
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError, MemoryError):
        raise ModelFileError(
            f"{path} is {_what(path)}, not the JSON that denspu.save writes. {HOW}"
        ) from None


def _what(path: Path) -> str:
    """Say what a file looks like; it is never unpickled."""
    with path.open("rb") as file:
        start = file.read(4)
    if start[:2] in PICKLED:
        return "a pickle (never loaded, as it could run any code)"
    if start == b"PK\x03\x04":
        return "a zip archive, perhaps of torch.save (never loaded)"
    return "a file"
