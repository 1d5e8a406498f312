"""Why there can be no graph: a part has none, or a package is missing."""

from __future__ import annotations

import importlib.util
from typing import Any, NoReturn

from denspu.exceptions import MissingDependencyError, ModelFileError

PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def refuse(part: Any, reason: str) -> NoReturn:
    """Raise with the name of what has no twin."""
    raise ModelFileError(f"{type(part).__name__} cannot be exported to ONNX: {reason}.")


def require_onnx() -> None:
    """Raise if the extra is not installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"Exporting to ONNX needs {', '.join(missing)}: pip install 'denspu[onnx]'."
        )
