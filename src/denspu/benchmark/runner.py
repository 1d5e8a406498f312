"""Run the cells of specs: skip what is recorded, stop at the budget, lose nothing.

Each record is written the moment its cell ends, by this process alone. Kill it at any
time: the next run goes on with the cells that are missing.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures import ThreadPoolExecutor as Threads
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from queue import SimpleQueue
from typing import TypeAlias

import torch

from denspu._machine import n_threads, resolve_device
from denspu._parameters import Number, OneOf, Whole, check
from denspu._progress import progress
from denspu.benchmark.record import (
    Record,
    failed,
    read_records,
    recorded,
    write_record,
)
from denspu.benchmark.spec import Cell, Spec, cells_of, spec_hash
from denspu.benchmark.work import Job, Place, do, facts_of, loaded, without_figures
from denspu.exceptions import (
    DataIntegrityError,
    DensPUError,
    InvalidParameterError,
    did_you_mean,
)

THREADS = "OMP_NUM_THREADS"
"""What OpenMP, and with it BLAS, scikit-learn and torch, look at."""
Done: TypeAlias = Generator[tuple[Job, Record], None, None]
"""Jobs and their records, as they end."""
BROKEN = ("AcceleratorError:", "CUDA error")
"""Words of errors after which a process cannot use its device any more."""


@dataclass
class Outcome:
    """What a run did."""

    ran: int = 0
    failed: int = 0
    skipped: int = 0
    """Recorded before, by this spec or another."""
    left: int = 0
    """Not begun within the budget."""
    failed_before: int = 0
    """Of those recorded before."""
    seconds: float = 0.0


def run_specs(
    specs: Sequence[tuple[Spec, str | Path]],
    *,
    budget: float = float("inf"),
    device: str = "auto",
    jobs: int = 1,
    encoders: str | Path = "encoders",
    seeds: tuple[int, ...] | None = None,
    rows: tuple[str, ...] | None = None,
    tasks: tuple[str, ...] | None = None,
    retry: bool = False,
    borrowing: bool = True,
    cell_limit: float | None = None,
    verbose: int = 1,
) -> Outcome:
    """Run the cells of specs that have no record yet, one spec after the other.

    Parameters
    ----------
    specs : sequence of (Spec, path)
        Specs with their files of records; one run at a time may write to a file.
    budget : float
        Seconds after which no cell is begun.
    device : str
        Of all methods, but for rows that keep to a CPU.
    jobs : int
        Cells that run at once, each in a process of its own. Encoders, ``heavy`` rows
        and what is under ``max_seconds`` run alone, with all cores.
    encoders : path
        Folder of the encoders that rows share.
    seeds, rows, tasks : optional
        Run only these, in the specs that have them.
    retry, borrowing : bool
        Run cells again whose record is an error; take over what other files of records
        in the same folder have of these cells.
    cell_limit : float, optional
        Seconds after which a cell is ended and recorded as failed; cells then run in
        processes of their own.
    """
    check("budget", budget, Number(0))
    check("jobs", jobs, Whole(1))
    check("cell_limit", cell_limit, OneOf(None), Number(0, closed="neither"))
    wanted = _chosen([spec for spec, _ in specs], seeds, rows, tasks)
    resolve_device(device)
    files = [Path(out).resolve() for _, out in specs]
    for file in files:
        if files.count(file) > 1:
            raise InvalidParameterError(
                f"{file} would hold the records of more than one spec. Name each spec "
                "once, and give each its own file."
            )
    outcome, began = Outcome(), time.perf_counter()
    for (spec, out), cells in zip(specs, wanted, strict=True):
        place = Place(device, Path(encoders), spec.name, spec_hash(spec), jobs)
        with _only_writer(Path(out)):
            known = recorded(read_records(out))
            if borrowing:
                _borrow(cells, known, Path(out), place)
            pending, before = [], []
            for cell in cells:
                found = known.get(cell.id)
                if found is None or (retry and failed(found)):
                    pending.append(Job(cell, place.of(cell.row)))
                else:
                    before.append(found)
            for name in dict.fromkeys(job.cell.task.dataset for job in pending):
                loaded(name)  # data that are missing would make many cells fail
            outcome.skipped += len(before)
            outcome.failed_before += sum(map(failed, before))
            outcome.left += len(pending)
            done = work_through(pending, jobs, limit=cell_limit, end=began + budget)
            bar = progress(spec.name, len(pending), verbose)
            with bar as advance, closing(done):  # stopped, it ends its processes
                for job, record in done:
                    write_record(record, out)
                    outcome.ran += 1
                    outcome.left -= 1
                    outcome.failed += failed(record)
                    advance(job.cell.title)
    outcome.seconds = time.perf_counter() - began
    return outcome


def _chosen(
    specs: Sequence[Spec],
    seeds: tuple[int, ...] | None,
    rows: tuple[str, ...] | None,
    tasks: tuple[str, ...] | None,
) -> list[list[Cell]]:
    """Return the cells of some seeds, rows and tasks, for each spec."""
    every = [cells_of(spec) for spec in specs]
    cells = [cell for some in every for cell in some]
    asked: list[tuple[str, tuple[object, ...] | None, list[object]]] = [
        ("rows", rows, [cell.row.name for cell in cells]),
        ("tasks", tasks, [cell.task.name for cell in cells]),
        ("seeds", seeds, [cell.seed for cell in cells]),
    ]
    for argument, given, all_known in asked:
        known = list(dict.fromkeys(all_known))
        for one in given or ():
            if one not in known:
                names = " and ".join(spec.name for spec in specs)
                words = list(map(str, known))
                raise InvalidParameterError(
                    f"{argument} has {one!r}, which is not in {names}. Known: "
                    f"{', '.join(words)}.{did_you_mean(str(one), words)}"
                )
    return [
        [
            cell
            for cell in some
            if (seeds is None or cell.seed in seeds)
            and (rows is None or cell.row.name in rows)
            and (tasks is None or cell.task.name in tasks)
        ]
        for some in every
    ]


def _borrow(
    cells: Sequence[Cell], known: dict[str, Record], out: Path, place: Place
) -> None:
    """Take over what files of records beside this one have of its cells."""
    others: list[Record] = []
    for path in sorted(out.parent.glob("*.jsonl")):
        if path != out:
            with suppress(DataIntegrityError):  # a file of other things
                others += read_records(path)
    elsewhere = recorded(others)
    for cell in cells:
        found = elsewhere.get(cell.id)
        done = cell.id in known and not failed(known[cell.id])
        if done or found is None or failed(found):
            continue
        extra = {**found.extra, **facts_of(Job(cell, place))}
        extra |= {"jobs": found.extra.get("jobs", 1), "taken_from": found.extra["spec"]}
        known[cell.id] = replace(found, variant=cell.row.name, extra=extra)
        write_record(known[cell.id], out)


@contextmanager
def _only_writer(out: Path) -> Iterator[None]:
    """Keep other runs from writing to the same records."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        file = out.open("ab")
    except OSError as error:
        raise InvalidParameterError(
            f"Records cannot be written to {out}: {error.strerror}. Name a file that "
            "can be written (--records FILE)."
        ) from None
    with file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # pragma: no cover - not on Windows
            pass
        except OSError:
            raise InvalidParameterError(
                f"Another run is writing to {out}. Wait for it to end, or give this "
                "one its own file."
            ) from None
        yield


# --- one job after the other, or several at once ------------------------------------


def work_through(
    jobs: Sequence[Job],
    at_once: int = 1,
    *,
    limit: float | None = None,
    end: float = float("inf"),
) -> Done:
    """Yield cells with their records as they end; none is begun after ``end``.

    Encoders go before all cells and are tried once: where one fails, its cells are
    recorded with its error. Cells that must run alone come last.
    """

    def done(some: Sequence[Job], count: int) -> Done:
        if at_once == 1 and limit is None:
            return _here(some, end)
        return _in_processes(some, count, limit, end)

    encoders = {
        folder: replace(job, encoder=True)
        for job in jobs
        if (folder := job.shared_folder) is not None and not folder.exists()
    }
    trained = done(list(encoders.values()), 1)
    errors = {job.shared_folder: r.extra["error"] for job, r in trained if failed(r)}
    for job in jobs:
        if job.shared_folder in errors:
            why = f"Its shared encoder failed. {errors[job.shared_folder]}"
            yield job, without_figures(job, error=why)
    able = [job for job in jobs if job.shared_folder not in errors]
    yield from done([job for job in able if not job.alone], at_once)
    yield from done([job for job in able if job.alone], 1)


def _here(jobs: Sequence[Job], end: float) -> Done:
    """Do jobs in this process; none after an error that broke its device."""
    for job in jobs:
        if time.perf_counter() > end:
            return
        record = do(job)
        yield job, record
        if any(word in record.extra.get("error", "") for word in BROKEN):
            raise DensPUError(
                f"{job.cell.title} broke the device of this process (its record says "
                "how), so that no other cell was begun. Run again for those left; "
                "jobs=2 (--jobs 2) or a cell_limit (--cell-limit) keeps cells in "
                "processes of their own."
            )


def _in_processes(
    jobs: Sequence[Job], count: int, limit: float | None, end: float
) -> Done:
    """Do jobs in several processes that share the cores, each led by a thread."""
    threads = max(1, n_threads(None) // count)
    workers = [_Worker(threads, limit) for _ in range(count)]
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def lead(job: Job) -> Record | None:
        if time.perf_counter() > end:
            return None
        worker = idle.get()
        try:
            return worker.do(job)
        finally:
            idle.put(worker)

    told = os.environ.get(THREADS)  # by the user: that stays
    os.environ[THREADS] = told or str(threads)
    with Threads(count) as leaders:
        futures = {leaders.submit(lead, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                record = future.result()
                if record is not None:
                    yield futures[future], record
        finally:
            if told is None:
                del os.environ[THREADS]
            leaders.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.end()


class _Worker:
    """A process that does one job after the other.

    One that dies, takes longer than ``limit`` seconds over a job, or raises is
    replaced: what an error left behind (a device in a bad state) must not reach the
    next cell.
    """

    def __init__(self, threads: int, limit: float | None) -> None:
        self.threads, self.limit = threads, limit
        self.pool: ProcessPoolExecutor | None = None

    def do(self, job: Job) -> Record:
        """Return the record of a job; that the process starts takes no time of it."""
        pool = self.pool or self._started()
        began = time.perf_counter()
        try:
            record = pool.submit(do, job).result(self.limit)
        except TimeoutError:
            how = f"more than the {self.limit:g} s a cell may take"
        except BrokenProcessPool:
            how = "no answer: it crashed, or was killed, for its memory perhaps"
        else:
            if failed(record):
                self.end()
            return record
        self.end()
        seconds = time.perf_counter() - began
        return without_figures(job, seconds, error=f"The process ended with {how}.")

    def _started(self) -> ProcessPoolExecutor:
        self.pool = ProcessPoolExecutor(
            1, get_context("spawn"), initializer=_prepare, initargs=(self.threads,)
        )
        self.pid: Future[int] = self.pool.submit(os.getpid)
        try:
            self.pid.result()
        except BrokenProcessPool:
            raise DensPUError(
                "A process for the benchmark ended before it began to work. A script "
                "that calls run_specs with jobs above 1 must do so under "
                "if __name__ == '__main__'."
            ) from None
        return self.pool

    def end(self) -> None:
        """Kill the process; what it was at breaks."""
        pool, self.pool = self.pool, None
        if pool is None:
            return
        with suppress(BrokenProcessPool, ProcessLookupError):  # it ended by itself
            os.kill(self.pid.result(), signal.SIGKILL)
        pool.shutdown(cancel_futures=True)


def _prepare(threads: int) -> None:
    """Make a new process ready for jobs; it ends when its run is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(min(threads, torch.get_num_threads()))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
