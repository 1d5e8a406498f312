"""What the scripts share: options, PU data, what is recorded, tables, memory."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from denspu import make_pu
from denspu.benchmark import Record, summarize
from denspu.data import Benchmark, PUDataset

T = TypeVar("T")


def options(
    doc: str | None,
    out: Path,
    *,
    seeds: Sequence[int] | None = None,
    device: str | None = None,
    budget: bool = False,
) -> argparse.ArgumentParser:
    """Return a parser with ``--out``, ``--table`` and what else is asked for."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--table", action="store_true", help="only print the table")
    if seeds is not None:
        parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds))
    if device is not None:
        parser.add_argument("--device", default=device)
    if budget:
        parser.add_argument("--budget", type=float, default=float("inf"))
    return parser


def finish(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], Any],
    table: Callable[[Path], str],
) -> None:
    """Run, unless only the table is asked for, and print the table."""
    args = parser.parse_args()
    if not args.table:
        run(args)
    print(table(args.out))


def within(budget: float, jobs: Iterable[T]) -> Iterator[T]:
    """Yield jobs while they would end within some seconds, by the longest so far."""
    began, longest = time.perf_counter(), 0.0
    for job in jobs:
        start = time.perf_counter()
        if start - began + longest > budget:
            print("budget reached before", job)
            return
        yield job
        longest = max(longest, time.perf_counter() - start)


def pu_of(
    benchmark: Benchmark, n_labeled: float, seed: int, **settings: Any
) -> PUDataset:
    """Return the training part of a set as PU data."""
    return make_pu(
        benchmark.X_train,
        benchmark.y_train,
        positive=benchmark.positive,
        n_labeled=n_labeled,
        random_state=seed,
        **settings,
    )


def grouped(
    records: Iterable[Record], key: Callable[[Record], T]
) -> dict[T, list[Record]]:
    """Return records in groups, in the order in which these begin."""
    groups: dict[T, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def spreads(
    records: Sequence[Record], metrics: Iterable[str], digits: int = 3, unit: int = 1
) -> list[str]:
    """Return mean ± deviation over seeds of some metrics, in units of 1/``unit``."""
    found = (summarize(records, metric)[:2] for metric in metrics)
    return [f"{unit * a:.{digits}f} ± {unit * b:.{digits}f}" for a, b in found]


def grid(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [header, *rows]
    words = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    return "\n".join([words[0], "|" + "---|" * len(header), *words[1:]])


@contextmanager
def peak_memory(out: dict[str, float]) -> Iterator[None]:
    """Write into ``out["peak_mb"]`` the memory the block added at its peak.

    Anonymous memory counts, pages of mapped files do not: they can be dropped at any
    time. Works on Linux; elsewhere the figure is 0.
    """
    done = threading.Event()
    base = peak = _anonymous_mb()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.004):
            peak = max(peak, _anonymous_mb())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        out["peak_mb"] = max(peak, _anonymous_mb()) - base


def _anonymous_mb() -> float:
    """Return this process's anonymous memory in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) / 1024
    return 0.0  # pragma: no cover - other systems
