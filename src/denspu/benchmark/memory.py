"""How much memory a piece of work needs, measured while it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INTERVAL = 0.004


@contextmanager
def peak_memory(out: dict[str, float]) -> Iterator[None]:
    """Write into ``out["peak_mb"]`` the memory the block added at its peak.

    Anonymous memory counts, pages of mapped files do not: they can be dropped at any
    time. Works on Linux; elsewhere the figure is 0.
    """
    done = threading.Event()
    base = peak = anonymous_mb()

    def watch() -> None:
        nonlocal peak
        while not done.wait(INTERVAL):
            peak = max(peak, anonymous_mb())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        out["peak_mb"] = max(peak, anonymous_mb()) - base


def anonymous_mb() -> float:
    """Return this process's anonymous memory in MB."""
    status = Path("/proc/self/status")
    if not status.exists():  # pragma: no cover - other systems
        return 0.0
    for line in status.read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return 0.0  # pragma: no cover - very old kernels
