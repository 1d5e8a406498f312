"""Where the data comes in: benchmark sets, PU data made from true classes, splits.

Names are imported on first use, so that the command line can ask for ``get`` and
``info`` without loading scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from denspu.data._benchmark import Benchmark as Benchmark
    from denspu.data._benchmark import load_dataset as load_dataset
    from denspu.data._cache import data_home as data_home
    from denspu.data._dataset import Oracle as Oracle
    from denspu.data._dataset import PUDataset as PUDataset
    from denspu.data._fetch import get as get
    from denspu.data._fetch import info as info
    from denspu.data._pu import make_pu as make_pu
    from denspu.data._split import holdout as holdout

_HOME = {
    "Benchmark": "denspu.data._benchmark",
    "Oracle": "denspu.data._dataset",
    "PUDataset": "denspu.data._dataset",
    "data_home": "denspu.data._cache",
    "get": "denspu.data._fetch",
    "holdout": "denspu.data._split",
    "info": "denspu.data._fetch",
    "load_dataset": "denspu.data._benchmark",
    "make_pu": "denspu.data._pu",
}

__all__ = [
    "Benchmark",
    "Oracle",
    "PUDataset",
    "data_home",
    "get",
    "holdout",
    "info",
    "load_dataset",
    "make_pu",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'denspu.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
