"""Is matplotlib here? Importing this module says what to install if it is not."""

from __future__ import annotations

from importlib import import_module

from denspu.exceptions import MissingDependencyError

try:
    import_module("matplotlib")
except ImportError as error:
    raise MissingDependencyError(
        "Pictures need matplotlib: pip install 'denspu[report]'"
    ) from error
