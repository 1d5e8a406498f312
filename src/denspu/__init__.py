"""denspu: learning from some positive examples and a pile of unlabelled ones.

The public names, nothing else. They are imported on first use, so that
``import denspu`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from denspu._registry import make as make
    from denspu.data import load_dataset as load_dataset
    from denspu.data import make_pu as make_pu
    from denspu.methods.dens_pu import DensPU as DensPU
    from denspu.persistence import load as load
    from denspu.persistence import save as save
    from denspu.priors import estimate_prior as estimate_prior

_HOME = {
    "DensPU": "denspu.methods.dens_pu",
    "estimate_prior": "denspu.priors",
    "load": "denspu.persistence",
    "load_dataset": "denspu.data",
    "make": "denspu._registry",
    "make_pu": "denspu.data",
    "save": "denspu.persistence",
}

__all__ = [
    "DensPU",
    "__version__",
    "estimate_prior",
    "load",
    "load_dataset",
    "make",
    "make_pu",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'denspu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
