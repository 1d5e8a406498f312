"""Run the cells of specs: skip what is recorded, stop at the budget, lose nothing.

Each record is written the moment its cell ends, by this process alone. Kill it at any
time: the next run goes on with the cells that are missing.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context, parent_process
from pathlib import Path

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
from denspu.benchmark.work import Ended, Job, Place, do, facts_of, gave_up, loaded
from denspu.exceptions import (
    DataIntegrityError,
    DensPUError,
    InvalidParameterError,
    did_you_mean,
)

THREADS = "OMP_NUM_THREADS"
"""What OpenMP, and with it BLAS, scikit-learn and torch, look at."""
BROKEN = ("AcceleratorError:", "CUDA error")
"""Words of errors after which a process cannot use its device any more."""


@dataclass
class Outcome:
    """What a run did."""

    ran: int = 0
    failed: int = 0
    skipped: int = 0
    """Recorded before."""
    left: int = 0
    """Not begun: the budget would not have lasted."""
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
    """Run the cells of specs that have no record yet.

    Light cells come in the order of the specs and, in each, seed by seed; so do those
    that fill a GPU, beside them and not waiting for them.

    Parameters
    ----------
    specs : sequence of (Spec, path)
        Specs with their files of records; one run at a time may write to a file. A
        cell that several specs ask for is run once.
    budget : float
        Seconds. No cell is begun that would not end within it, judged by the longest
        so far of those most like it on such a device.
    device : str
        Of all methods, but for rows that keep to a CPU.
    jobs : int
        Cells that run at once, each in a process of its own. On a GPU one encoder or
        ``heavy`` row runs at a time. What is under ``max_seconds`` runs alone, with
        all cores.
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
    on_gpu = resolve_device(device).type == "cuda"
    sheets: list[_Sheet] = []
    for (spec, out), cells in zip(specs, wanted, strict=True):
        if any(Path(out).resolve() == other.out.resolve() for other in sheets):
            raise InvalidParameterError(
                f"{out} would hold the records of more than one spec. Name each spec "
                "once, and give each its own file."
            )
        place = Place(device, Path(encoders), spec.name, spec_hash(spec), jobs, on_gpu)
        sheets.append(_Sheet(Path(out), place, cells))
    with ExitStack() as stack:
        for sheet in sheets:
            stack.enter_context(only_writer(sheet.out))
            sheet.known = recorded(read_records(sheet.out))
        for sheet in sheets if borrowing else ():
            sheet.borrow()
        clock = Clock(budget)
        pending: dict[str, Job] = {}
        for sheet, (spec, _) in zip(sheets, specs, strict=True):
            for cell in cells_of(spec):
                if cell.id in sheet.known:
                    clock.learn_from(sheet.job(cell), sheet.known[cell.id])
            for cell in sheet.wanted:
                record = sheet.known.get(cell.id)
                if record is None or (retry and failed(record)):
                    pending.setdefault(cell.id, sheet.job(cell))
        for name in dict.fromkeys(job.cell.task.dataset for job in pending.values()):
            loaded(name)  # data that are missing would make many cells fail
        before = {cell.id for sheet in sheets for cell in sheet.wanted} - set(pending)
        bad = {i for s in sheets for i, record in s.known.items() if failed(record)}
        outcome = Outcome(skipped=len(before), failed_before=len(before & bad))
        workers: Here | Processes = Here()
        if jobs > 1 or cell_limit is not None:
            workers = stack.enter_context(Processes(jobs, cell_limit))
        title = " ".join(spec.name for spec, _ in specs)
        with progress(title, len(pending), verbose) as advance:
            for job, record in work_through(list(pending.values()), workers, clock):
                for sheet in sheets:
                    sheet.add(job, record)
                outcome.ran += 1
                outcome.failed += failed(record)
                advance(job.cell.title)
    outcome.left = len(pending) - outcome.ran
    outcome.seconds = clock.elapsed()
    return outcome


def _chosen(
    specs: Sequence[Spec],
    seeds: tuple[int, ...] | None,
    rows: tuple[str, ...] | None,
    tasks: tuple[str, ...] | None,
) -> list[list[Cell]]:
    """Return the cells of some seeds, rows and tasks, for each spec."""
    names = " and ".join(spec.name for spec in specs)
    asked: dict[str, tuple[tuple[object, ...] | None, list[object]]] = {
        "rows": (rows, [row.name for spec in specs for row in spec.rows]),
        "tasks": (tasks, [task.name for spec in specs for task in spec.tasks]),
        "seeds": (seeds, [seed for spec in specs for seed in spec.seeds]),
    }
    for argument, (given, known) in asked.items():
        for one in given or ():
            if one not in known:
                words = list(map(str, dict.fromkeys(known)))
                raise InvalidParameterError(
                    f"{argument} has {one!r}, which is not in {names}. Known: "
                    f"{', '.join(words)}.{did_you_mean(str(one), words)}"
                )
    found = [
        [
            cell
            for cell in cells_of(spec)
            if (seeds is None or cell.seed in seeds)
            and (rows is None or cell.row.name in rows)
            and (tasks is None or cell.task.name in tasks)
        ]
        for spec in specs
    ]
    if not any(found):
        told = ", ".join(f"{k}={list(v)}" for k, (v, _) in asked.items() if v)
        raise InvalidParameterError(
            f"No cell of {names} has all of {told}: these rows are not run on these "
            "tasks or with these seeds. Leave one of them out."
        )
    return found


# --- which job is begun next --------------------------------------------------------


@dataclass
class Clock:
    """How long the run may take, and how long its jobs will.

    A job is judged by the longest so far of those most like it. Encoders are like
    encoders alone, and nothing is like what ran on another kind of device.
    """

    budget: float
    began: float = field(default_factory=time.perf_counter)
    longest: dict[Hashable, float] = field(default_factory=dict)

    def elapsed(self) -> float:
        """Return the seconds since the run began."""
        return time.perf_counter() - self.began

    def allows(self, job: Job) -> bool:
        """Tell whether a job would end in time; one like none before would."""
        known = (self.longest[k] for k in self._likes(job) if k in self.longest)
        return self.elapsed() + next(known, 0.0) <= self.budget

    def learn(self, job: Job, seconds: float) -> None:
        """Remember how long a job took."""
        for like in self._likes(job):
            self.longest[like] = max(self.longest.get(like, 0.0), seconds)

    def learn_from(self, job: Job, record: Record) -> None:
        """Remember what a record says of its cell and of the encoder it shares.

        One of another kind of device, or of a run that raised, says nothing of this.
        """
        if failed(record) or record.ran_on_gpu != job.place.on_gpu:
            return
        self.learn(job, record.seconds["total"])
        if "shared_encoder" in record.seconds:
            self.learn(replace(job, encoder=True), record.seconds["shared_encoder"])

    @staticmethod
    def _likes(job: Job) -> list[Hashable]:
        """Return what a job is like, from what few are to what all are."""
        work = job.cell.encoder_work if job.encoder else job.cell.work
        likes = [(work, job.cell.task.dataset), (work,), ()]
        return [(job.place.on_gpu, job.encoder, *like) for like in likes]


def work_through(
    jobs: Sequence[Job], workers: Here | Processes, clock: Clock
) -> Iterator[tuple[Job, Record]]:
    """Yield cells with their records as they end; encoders go before their cells.

    An encoder is tried once. Where it fails, its cells are recorded with its error. A
    heavy job waits for the one before it to end, and goes before light ones; a cell
    or encoder that is bound by seconds runs when no other does.
    """
    waiting: list[Job] = list(jobs)
    in_work: list[Job] = []
    while True:
        while workers.free() and not any(job.alone for job in in_work):
            job = _next(waiting, in_work, clock)
            if job is None:
                break
            if not job.encoder:
                waiting.remove(job)
            workers.begin(job)
            in_work.append(job)
        if not in_work:
            return
        for ended in workers.wait():
            in_work.remove(ended.job)
            if ended.went_well:
                clock.learn(ended.job, ended.seconds)
            if ended.record is not None:
                yield ended.job, ended.record
            if ended.error is None:
                continue
            folder = ended.job.shared_folder
            for job in [j for j in waiting if j.shared_folder == folder]:
                waiting.remove(job)
                lost = gave_up(job, f"Its shared encoder failed. {ended.error}")
                assert lost.record is not None
                yield job, lost.record


def _next(waiting: Sequence[Job], in_work: Sequence[Job], clock: Clock) -> Job | None:
    """Return the first job that is ready and would end in time.

    Beside light jobs the first heavy one, since only one of these runs at a time.
    """
    heavy_runs = any(job.heavy for job in in_work)
    in_training = {job.shared_folder for job in in_work if job.encoder}
    light = None
    for job in waiting:
        folder = job.shared_folder
        if folder is not None and not folder.exists():
            if folder in in_training:
                continue
            job = replace(job, encoder=True)
        if (job.alone and in_work) or (job.heavy and heavy_runs):
            continue
        if not clock.allows(job):
            continue
        if job.heavy or not in_work:
            return job
        light = light or job
    return light


# --- who does the jobs --------------------------------------------------------------


class Here:
    """One job at a time, in this process; none after an error that broke its device."""

    def __init__(self) -> None:
        self.done: list[Ended] = []
        self.broken_by: Job | None = None

    def free(self) -> bool:
        """Tell whether another job can be begun."""
        return not self.done

    def begin(self, job: Job) -> None:
        """Do a job."""
        if self.broken_by is not None:
            raise DensPUError(
                f"{self.broken_by.cell.title} broke the device of this process (its "
                "record says how), so that no other cell was begun. Run again for "
                "those left; jobs=2 (--jobs 2) or a cell_limit (--cell-limit) keeps "
                "cells in processes of their own."
            )
        ended = do(job)
        told = ended.error or (ended.record and ended.record.extra.get("error")) or ""
        if any(word in told for word in BROKEN):
            self.broken_by = job
        self.done.append(ended)

    def wait(self) -> list[Ended]:
        """Return the job that has ended."""
        ended, self.done = self.done, []
        return ended


class Processes:
    """Several jobs at once, each in a process of its own.

    A process that dies, or takes longer than ``limit`` seconds over a job, is replaced
    and its cell recorded as failed. So is one whose cell raised: what the error left
    behind (a device in a bad state) must not reach the next cell.
    """

    def __init__(self, count: int, limit: float | None = None) -> None:
        self.count, self.limit = count, limit
        self.idle: list[_Worker] = []
        self.busy: dict[Future[Ended], _Worker] = {}

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in (*self.idle, *self.busy.values()):
            worker.end()

    def free(self) -> bool:
        """Tell whether another job can be begun."""
        return len(self.busy) < self.count

    def begin(self, job: Job) -> None:
        """Start a job in a process that waits, else in a new one; cores are shared."""
        threads = max(1, n_threads(None) // (1 if job.alone else self.count))
        for worker in [w for w in self.idle if w.threads == threads]:
            self.idle.remove(worker)
            with suppress(BrokenProcessPool):  # it died while it waited
                self.busy[worker.begin(job)] = worker
                return
        worker = _Worker(threads)
        self.busy[worker.begin(job)] = worker

    def wait(self) -> list[Ended]:
        """Return the jobs that have ended; kill those over the limit."""
        while True:
            done, _ = wait(
                self.busy, None if self.limit is None else 0.1, FIRST_COMPLETED
            )
            if done:
                return [self._ended(future, self.busy.pop(future)) for future in done]
            for worker in self.busy.values():
                if self.limit is not None and worker.seconds > self.limit:
                    worker.is_late = True
                    worker.end()

    def _ended(self, future: Future[Ended], worker: _Worker) -> Ended:
        job = worker.job
        assert job is not None
        try:
            ended = future.result()
        except BrokenProcessPool:
            if worker.pid.exception() is not None:
                raise DensPUError(
                    "A process for the benchmark ended before it began to work. A "
                    "script that calls run_specs with jobs above 1 must do so under "
                    "if __name__ == '__main__'."
                ) from None
            how = "no answer: it crashed, or was killed, for its memory perhaps"
            if worker.is_late:
                how = f"more than the {self.limit:g} s a cell may take"
            return gave_up(job, f"The process ended with {how}.", worker.seconds)
        # The memory that training an encoder took is not kept for a cell's process.
        again = ended.went_well and not job.encoder
        self.idle.append(worker) if again else worker.end()
        return ended


class _Worker:
    """A process that does one job after the other, and what it is at."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.pool = ProcessPoolExecutor(
            1, get_context("spawn"), initializer=_prepare, initargs=(threads,)
        )
        told = os.environ.get(THREADS)  # by the user: that stays
        os.environ[THREADS] = told or str(threads)
        try:
            self.pid: Future[int] = self.pool.submit(os.getpid)
        finally:
            if told is None:
                del os.environ[THREADS]
        self.pid.add_done_callback(self._count_from_now)
        self.job: Job | None = None
        self.began = 0.0
        self.is_late = False

    def _count_from_now(self, _: object = None) -> None:
        self.began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """How long it has been at its job; that the process starts does not count."""
        return time.perf_counter() - self.began if self.pid.done() else 0.0

    def begin(self, job: Job) -> Future[Ended]:
        """Start a job."""
        self.job = job
        self._count_from_now()
        return self.pool.submit(do, job)

    def end(self) -> None:
        """Kill the process; what it was at breaks."""
        with suppress(BrokenProcessPool, ProcessLookupError):  # it ended by itself
            os.kill(self.pid.result(), signal.SIGKILL)
        self.pool.shutdown(cancel_futures=True)


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


# --- the records of a spec while it is run ------------------------------------------


@dataclass
class _Sheet:
    """The records of a spec, and which of its cells are wanted."""

    out: Path
    place: Place
    wanted: list[Cell]
    known: dict[str, Record] = field(default_factory=dict)

    def job(self, cell: Cell) -> Job:
        return Job(cell, self.place.of(cell.row))

    def add(self, job: Job, record: Record) -> None:
        """Write the record of a job, whichever spec it was run for, if it is news."""
        known = self.known.get(job.cell.id)
        ours = job.place == self.place.of(job.cell.row)
        if known is not None and not (failed(known) and (ours or not failed(record))):
            return
        for cell in (c for c in self.wanted if c.id == job.cell.id):
            self._write(record if ours else self._taken(cell, record))

    def borrow(self) -> None:
        """Take over the records of the same cells from files beside this one."""
        others: list[Record] = []
        for path in sorted(self.out.parent.glob("*.jsonl")):
            if path != self.out:
                with suppress(DataIntegrityError):  # a file of other things
                    others += read_records(path)
        elsewhere = recorded(others)
        for cell in self.wanted:
            found = elsewhere.get(cell.id)
            done = cell.id in self.known and not failed(self.known[cell.id])
            if not (done or found is None or failed(found)):
                self._write(self._taken(cell, found))

    def _taken(self, cell: Cell, found: Record) -> Record:
        """Return the record that the same cell has in another spec, as ours."""
        extra = {**found.extra, **facts_of(Job(cell, self.place))}
        extra |= {"jobs": found.extra.get("jobs", 1), "taken_from": found.extra["spec"]}
        return replace(found, variant=cell.row.name, extra=extra)

    def _write(self, record: Record) -> None:
        write_record(record, self.out)
        self.known[record.extra["cell"]] = record


@contextmanager
def only_writer(out: Path) -> Iterator[None]:
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
        except ImportError:  # pragma: no cover - not on Windows
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidParameterError(
                f"Another run is writing to {out}. Wait for it to end, or give this "
                "one its own file."
            ) from None
        yield
