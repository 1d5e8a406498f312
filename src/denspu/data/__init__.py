"""Where the data comes in: your files, benchmark sets, PU data from classes, splits.

Names are imported on first use, so that the command line can ask for ``get`` and
``info`` without loading scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from denspu.data._comparing import Duplicates as Duplicates
    from denspu.data._comparing import find_duplicates as find_duplicates
    from denspu.data._comparing import find_shortcuts as find_shortcuts
    from denspu.data._pu import Oracle as Oracle
    from denspu.data._pu import PUDataset as PUDataset
    from denspu.data._pu import make_pu as make_pu
    from denspu.data._reading import iter_items as iter_items
    from denspu.data._reading import read_items as read_items
    from denspu.data._reading import read_pair as read_pair
    from denspu.data._sets import Benchmark as Benchmark
    from denspu.data._sets import data_home as data_home
    from denspu.data._sets import get as get
    from denspu.data._sets import info as info
    from denspu.data._sets import load_dataset as load_dataset
    from denspu.data.kinds import Items as Items
    from denspu.data.kinds import Joined as Joined
    from denspu.data.kinds import Skipped as Skipped
    from denspu.data.kinds import join as join

_NAMES = {
    "_comparing": ("Duplicates", "find_duplicates", "find_shortcuts"),
    "_sets": ("Benchmark", "data_home", "get", "info", "load_dataset"),
    "kinds": ("Items", "Joined", "Skipped", "join"),
    "_pu": ("Oracle", "PUDataset", "make_pu"),
    "_reading": ("iter_items", "read_items", "read_pair"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"denspu.data.{_HOME[name]}"), name)
    raise AttributeError(f"module 'denspu.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
