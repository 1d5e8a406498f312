"""The machine and its time: the device, threads, and the one clock.

``resolve_device`` alone turns the word ``device`` into a torch device. Threads fetch
items as they come free: a core that is busy with something else slows down nobody but
itself. ``max_seconds`` is turned into epochs early, and recorded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from denspu.exceptions import DeviceError, InvalidParameterError

if TYPE_CHECKING:
    import torch

# --- the device ---------------------------------------------------------------------


def available_devices() -> list[str]:
    """Return the devices torch can use here, best first."""
    import torch

    found = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return [*found, "cpu"]


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """Turn ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ... into a device.

    ``"auto"`` takes the first CUDA device, then the CPU.

    Raises
    ------
    DeviceError
        If the device does not exist; the message names those that do.
    """
    import torch

    if isinstance(device, torch.device):
        device = str(device)
    if not isinstance(device, str):
        raise InvalidParameterError(
            f"device={device!r} is not a device name. "
            'Pass "auto", "cpu", "cuda" or "cuda:0".'
        )
    found = available_devices()
    if device == "auto":
        return torch.device(found[0] if found[0].startswith("cuda") else "cpu")
    if device == "cuda" and "cuda:0" in found:
        return torch.device("cuda:0")
    if device in found:
        return torch.device(device)
    raise DeviceError(
        f"device={device!r} is not available here. Available: {', '.join(found)}. "
        'Pass one of these, or "auto".'
    )


def on_device(device: torch.device) -> AbstractContextManager[object]:
    """Make a GPU the current one inside a block: graphs, streams and seeds are its."""
    import torch

    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


# --- threads ------------------------------------------------------------------------

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


# --- the clock ----------------------------------------------------------------------

MOMENT = 1e-3
"""Seconds that a part of a deadline lasts in any case."""


@dataclass(frozen=True)
class Deadline:
    """How many seconds a fit may still take; ``None`` means any number.

    Examples
    --------
    >>> Deadline(None).left()
    inf
    >>> Deadline(10.0).part(0.5).seconds <= 5
    True
    """

    seconds: float | None
    began: float = field(default_factory=time.perf_counter)

    def left(self) -> float:
        """Return the seconds that remain, at least 0."""
        if self.seconds is None:
            return float("inf")
        return max(0.0, self.seconds - (time.perf_counter() - self.began))

    def part(self, share: float) -> Deadline:
        """Return a deadline for a share of what remains, if only a moment.

        A moment, since 0 is no number of seconds that ``max_seconds`` takes.
        """
        if self.seconds is None:
            return self
        return Deadline(max(MOMENT, share * self.left()))
