"""Where the data comes in: your files, benchmark sets, PU data from classes, splits.

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
    from denspu.data._disk import Skipped as Skipped
    from denspu.data._duplicates import Duplicates as Duplicates
    from denspu.data._duplicates import find_duplicates as find_duplicates
    from denspu.data._fetch import get as get
    from denspu.data._fetch import info as info
    from denspu.data._items import Items as Items
    from denspu.data._items import Joined as Joined
    from denspu.data._items import join as join
    from denspu.data._pu import make_pu as make_pu
    from denspu.data._reading import iter_items as iter_items
    from denspu.data._reading import read_items as read_items
    from denspu.data._reading import read_pair as read_pair
    from denspu.data._shortcuts import find_shortcuts as find_shortcuts
    from denspu.data._split import holdout as holdout

_HOME = {
    "Benchmark": "denspu.data._benchmark",
    "Duplicates": "denspu.data._duplicates",
    "Items": "denspu.data._items",
    "Joined": "denspu.data._items",
    "Oracle": "denspu.data._dataset",
    "PUDataset": "denspu.data._dataset",
    "Skipped": "denspu.data._disk",
    "data_home": "denspu.data._cache",
    "find_duplicates": "denspu.data._duplicates",
    "find_shortcuts": "denspu.data._shortcuts",
    "get": "denspu.data._fetch",
    "holdout": "denspu.data._split",
    "info": "denspu.data._fetch",
    "iter_items": "denspu.data._reading",
    "join": "denspu.data._items",
    "load_dataset": "denspu.data._benchmark",
    "make_pu": "denspu.data._pu",
    "read_items": "denspu.data._reading",
    "read_pair": "denspu.data._reading",
}

__all__ = [
    "Benchmark",
    "Duplicates",
    "Items",
    "Joined",
    "Oracle",
    "PUDataset",
    "Skipped",
    "data_home",
    "find_duplicates",
    "find_shortcuts",
    "get",
    "holdout",
    "info",
    "iter_items",
    "join",
    "load_dataset",
    "make_pu",
    "read_items",
    "read_pair",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'denspu.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
