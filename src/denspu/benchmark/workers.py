"""Who does the jobs of a benchmark: this process, or several at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from typing import Any, Protocol

from denspu._machine import n_threads
from denspu.benchmark.cells import Cell, failed
from denspu.benchmark.record import Record
from denspu.benchmark.work import Place, died, run_cell, train_encoder
from denspu.exceptions import DensPUError

READY = "ready"
THREADS = "OMP_NUM_THREADS"
"""What OpenMP, and with it BLAS, scikit-learn and torch, look at."""
PRIORITY = "CUDA_MPS_CLIENT_PRIORITY"
"""Where NVIDIA's MPS lets processes share a GPU: 1 asks for less than the others."""
BROKEN = ("AcceleratorError:", "CUDA error")
"""Words of errors after which a process cannot use its device any more."""


@dataclass(frozen=True)
class Job:
    """A cell, or the encoder that cells wait for."""

    cell: Cell
    place: Place
    encoder: bool = False

    @property
    def heavy(self) -> bool:
        """Whether it fills the GPU it runs on by itself."""
        return self.place.on_gpu and (self.encoder or self.cell.row.heavy)

    @property
    def alone(self) -> bool:
        """Whether no other may run beside it: it is bound by seconds."""
        return self.cell.encoder_alone if self.encoder else self.cell.alone


@dataclass
class Ended:
    """What became of a job."""

    job: Job
    record: Record | None
    """``None`` for encoders."""
    seconds: float
    error: str | None = None
    """Why an encoder could not be trained."""

    @property
    def went_well(self) -> bool:
        """Whether it did what it was to do."""
        return self.error is None and not (self.record and failed(self.record))

    @property
    def broke_device(self) -> bool:
        """Whether the device may not be trusted after this job."""
        told = self.error or ""
        if self.record is not None:
            told = str(self.record.extra.get("error", ""))
        return any(word in told for word in BROKEN)


class Pool(Protocol):
    """Workers that take jobs and hand back what became of them."""

    def __enter__(self) -> Pool: ...
    def __exit__(self, *error: object) -> None: ...
    def free(self) -> bool:
        """Tell whether another job can be begun."""
        ...

    def begin(self, job: Job) -> None:
        """Start a job."""
        ...

    def wait(self) -> list[Ended]:
        """Return the jobs that have ended, at least one."""
        ...


def do(job: Job) -> Ended:
    """Do one job."""
    start = time.perf_counter()
    record, error = None, None
    if not job.encoder:
        record = run_cell(job.cell, job.place)
    else:
        try:
            train_encoder(job.cell, job.place)
        except Exception as raised:  # told in the records of the cells that need it
            error = f"{type(raised).__name__}: {raised}"
    return Ended(job, record, time.perf_counter() - start, error)


class Here:
    """One job at a time, in this process.

    After an error that leaves the device broken no other job is begun: it would fail
    too, whatever it is.
    """

    def __init__(self) -> None:
        self.done: list[Ended] = []
        self.broken_by: Cell | None = None

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None:
        self.done.clear()

    def free(self) -> bool:
        """Tell whether another job can be begun."""
        return not self.done

    def begin(self, job: Job) -> None:
        """Start a job."""
        if self.broken_by is not None:
            raise DensPUError(
                f"{self.broken_by.title} broke the device of this process (its record "
                "says how), so that no other cell was begun. Run again for those left; "
                "jobs=2 (--jobs 2) or a cell_limit (--cell-limit) keeps cells in "
                "processes of their own."
            )
        ended = do(job)
        if ended.broke_device:
            self.broken_by = job.cell
        self.done.append(ended)

    def wait(self) -> list[Ended]:
        """Return the jobs that have ended."""
        ended, self.done = self.done, []
        return ended


@dataclass(eq=False)
class Worker:
    """A process, the line to it, and what it is at."""

    process: Any
    pipe: Any
    settings: Mapping[str, str]
    """The variables it was begun with: it takes jobs that want the same."""
    job: Job | None = None
    began: float = 0.0
    ready: bool = False

    def end(self) -> None:
        """Stop the process and close the line."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Processes:
    """Several jobs at once, each worker a process of its own.

    A worker that dies, or takes longer than ``limit`` seconds over a job, is replaced
    and its cell recorded as failed. So is one whose cell raised: what the error left
    behind (a device in a bad state) must not reach the next cell.
    """

    def __init__(self, count: int, limit: float | None = None) -> None:
        self.count = count
        self.limit = limit
        self.context = get_context("spawn")
        self.idle: list[Worker] = []
        self.busy: list[Worker] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in (*self.idle, *self.busy):
            worker.end()

    def free(self) -> bool:
        """Tell whether another job can be begun."""
        return len(self.busy) < self.count

    def begin(self, job: Job) -> None:
        """Start a job."""
        settings = self._settings(job)
        worker = self._idle(settings) or self._new(settings)
        worker.job, worker.began = job, time.perf_counter()
        self.busy.append(worker)
        try:
            worker.pipe.send(job)
        except OSError:  # it died this moment: ``wait`` tells
            return

    def wait(self) -> list[Ended]:
        """Return the jobs that have ended."""
        ended: list[Ended] = []
        while not ended:
            ready = connection.wait([w.pipe for w in self.busy], self._patience())
            for worker in [w for w in self.busy if w.pipe in ready]:
                found = self._heard(worker)
                if found is not None:
                    ended.append(found)
            ended += [self._overdue(w) for w in self.busy if self._late(w)]
            self.busy = [w for w in self.busy if w.job is not None]
        return ended

    def _heard(self, worker: Worker) -> Ended | None:
        """Return what a worker says; nothing if only that it is there."""
        job = worker.job
        assert job is not None
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            code = worker.process.exitcode
            if not worker.ready and code >= 0:  # it was not killed: it could not begin
                raise DensPUError(
                    "A process for the benchmark ended before it began to work (exit "
                    f"code {code}). A script that calls run_specs with jobs above 1 "
                    "must do so under if __name__ == '__main__'."
                ) from None
            return self._lost(worker, f"exit code {code} and no answer")
        if isinstance(said, str):
            worker.ready = True
            return None
        worker.job = None
        ended: Ended = said
        again = ended.went_well and not job.encoder
        self.idle.append(worker) if again else worker.end()
        return ended

    def _patience(self) -> float | None:
        """Return the seconds until the first worker is late."""
        if self.limit is None:
            return None
        began = min(worker.began for worker in self.busy)
        return max(0.0, began + self.limit - time.perf_counter()) + 0.05

    def _late(self, worker: Worker) -> bool:
        if self.limit is None or worker.job is None:
            return False
        return time.perf_counter() - worker.began > self.limit

    def _overdue(self, worker: Worker) -> Ended:
        return self._lost(worker, f"more than the {self.limit:g} s a cell may take")

    def _lost(self, worker: Worker, how: str) -> Ended:
        """Say what a worker was at when it ended without an answer."""
        job, worker.job = worker.job, None
        assert job is not None
        worker.end()
        seconds = time.perf_counter() - worker.began
        reason = f"The process ended with {how}."
        if job.encoder:
            return Ended(job, None, seconds, reason)
        return Ended(job, died(job.cell, job.place, reason, seconds), seconds)

    def _settings(self, job: Job) -> dict[str, str]:
        """Return the variables of a process for such jobs.

        Cores are shared by the jobs that run at once; light ones ask for less of a GPU.
        """
        beside = 1 if job.alone else self.count
        settings = {THREADS: str(max(1, n_threads(None) // beside))}
        if job.place.on_gpu and not job.heavy:
            settings[PRIORITY] = "1"
        return settings

    def _idle(self, settings: Mapping[str, str]) -> Worker | None:
        """Return a worker for such jobs that waits."""
        for worker in [w for w in self.idle if w.settings == settings]:
            self.idle.remove(worker)
            if worker.process.is_alive():
                return worker
            worker.end()
        return None

    def _new(self, settings: Mapping[str, str]) -> Worker:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(
            target=serve, args=(theirs, int(settings[THREADS])), daemon=True
        )
        with environment(settings), undisturbed():
            process.start()
        theirs.close()
        return Worker(process, ours, settings)


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables that libraries of a process begun meanwhile read when loaded.

    What the user has set stays.
    """
    ours = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let processes begun meanwhile ignore Ctrl-C, from their first moment on.

    The run that asked for them ends them. Only the main thread can see to that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def serve(pipe: Any, threads: int) -> None:
    """Do the jobs that come through a pipe until it is closed."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # also if begun by another thread
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(min(threads, torch.get_num_threads()))
    pipe.send(READY)
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        pipe.send(do(job))


def _end_with_parent() -> None:
    """Leave no worker behind when the run is killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
