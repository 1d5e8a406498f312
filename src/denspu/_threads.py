"""The one place that spreads work over threads.

Plain threads fetch items as they come free: a core that is busy with something else
slows down nobody but itself, and nothing spins while it waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from denspu.exceptions import InvalidParameterError

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """Return the threads to use: as told, or all cores this process may use.

    Negative numbers count from the end, as in scikit-learn: -1 is all, -2 all but one.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:  # pragma: no cover - other systems
        cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise InvalidParameterError("n_jobs=0 has no meaning; pass None, -1, 1, 2, ...")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> list[Result]:
    """Call ``work`` on each item, several at once; results keep the items' order.

    The work must release the interpreter lock to gain anything.
    """
    items = list(items)
    if threads == 1 or len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        return list(pool.map(work, items))
