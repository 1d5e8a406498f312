"""Scoring rows with a forest: which engine walks the trees.

Rows are taken in chunks, so memory stays bounded whatever their number, and threads
fetch chunks as they come free, so a busy core slows nobody but itself.

* ``numba``: compiled for the processor at hand; the default for arrays where numba is
  installed (``pip install 'denspu[fast]'``).
* ``torch``: gathers on whatever device the rows or the caller name; the default for
  tensors and the fallback for arrays.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from denspu._threads import in_threads, n_threads
from denspu._typing import FloatArray
from denspu.detectors.forest.arrays import Forest
from denspu.exceptions import MissingDependencyError

CHUNK_ROWS = 2_048
ENGINES = ("auto", "numba", "torch")


def available_engines() -> tuple[str, ...]:
    """Return the engines that can run here, fastest first."""
    has_numba = importlib.util.find_spec("numba") is not None
    return ("numba", "torch") if has_numba else ("torch",)


def forest_scores(
    forest: Forest,
    Z: Any,
    *,
    engine: str = "auto",
    device: Any = "cpu",
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the normality of each row of ``Z``, higher = more normal.

    Parameters
    ----------
    Z : array, memory map or tensor of shape (n, d)
        Read in chunks and never copied as a whole.
    engine : {"auto", "numba", "torch"}, default="auto"
    device : torch.device or str, default="cpu"
        Where the torch engine works on arrays; tensors stay where they are.
    n_jobs : int or None
        Threads of the numba engine; the scores do not depend on it.
    """
    on_host = isinstance(Z, np.ndarray)
    if engine == "auto":
        fast = on_host and str(device) == "cpu"
        engine = available_engines()[0] if fast else "torch"
    if engine == "torch":
        from denspu.detectors.forest.torch_engine import total_paths

        return forest.normality(total_paths(forest, Z, device))
    if engine not in available_engines():
        raise MissingDependencyError(
            f"engine={engine!r} is not installed: pip install 'denspu[fast]'."
        )
    from denspu.detectors.forest.numba_engine import add_paths

    total = np.zeros(len(Z))

    def work(start: int) -> None:
        rows = np.ascontiguousarray(Z[start : start + CHUNK_ROWS])
        add_paths(forest, rows, total[start : start + CHUNK_ROWS])

    in_threads(work, range(0, len(Z), CHUNK_ROWS), n_threads(n_jobs))
    return forest.normality(total)
