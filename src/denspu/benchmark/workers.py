"""Who does the jobs of a benchmark: this process, or several at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process

import torch

from denspu._machine import n_threads
from denspu.benchmark.spec import Cell
from denspu.benchmark.work import Ended, Job, do, gave_up
from denspu.exceptions import DensPUError

THREADS = "OMP_NUM_THREADS"
"""What OpenMP, and with it BLAS, scikit-learn and torch, look at."""


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
        """Do a job."""
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
        """Return the job that has ended."""
        ended, self.done = self.done, []
        return ended


class Worker:
    """A process that does one job after the other, and what it is at."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.pool = ProcessPoolExecutor(
            1, get_context("spawn"), initializer=_prepare, initargs=(threads,)
        )
        with _environment(threads), _undisturbed():
            self.pid: Future[int] = self.pool.submit(os.getpid)
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


class Processes:
    """Several jobs at once, each in a process of its own.

    A process that dies, or takes longer than ``limit`` seconds over a job, is replaced
    and its cell recorded as failed. So is one whose cell raised: what the error left
    behind (a device in a bad state) must not reach the next cell.
    """

    def __init__(self, count: int, limit: float | None = None) -> None:
        self.count = count
        self.limit = limit
        self.idle: list[Worker] = []
        self.busy: dict[Future[Ended], Worker] = {}

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in (*self.idle, *self.busy.values()):
            worker.end()

    def free(self) -> bool:
        """Tell whether another job can be begun."""
        return len(self.busy) < self.count

    def begin(self, job: Job) -> None:
        """Start a job in a process that waits, else in a new one.

        Cores are shared by the jobs that run at once.
        """
        threads = max(1, n_threads(None) // (1 if job.alone else self.count))
        for worker in [w for w in self.idle if w.threads == threads]:
            self.idle.remove(worker)
            try:
                self.busy[worker.begin(job)] = worker
            except BrokenProcessPool:  # it died while it waited
                continue
            return
        worker = Worker(threads)
        self.busy[worker.begin(job)] = worker

    def wait(self) -> list[Ended]:
        """Return the jobs that have ended; kill those over the limit."""
        while True:
            patience = None
            if self.limit is not None:
                longest = max(worker.seconds for worker in self.busy.values())
                patience = max(0.0, self.limit - longest) + 0.05
            done, _ = wait(self.busy, patience, FIRST_COMPLETED)
            if done:
                return [self._ended(future, self.busy.pop(future)) for future in done]
            for worker in self.busy.values():
                if self.limit is not None and worker.seconds > self.limit:
                    worker.is_late = True
                    worker.end()

    def _ended(self, future: Future[Ended], worker: Worker) -> Ended:
        job = worker.job
        assert job is not None
        try:
            ended = future.result()
        except BrokenProcessPool:
            seconds = worker.seconds
            if worker.is_late:
                how = f"more than the {self.limit:g} s a cell may take"
                return gave_up(job, f"The process ended with {how}.", seconds)
            if worker.pid.exception() is not None:
                raise DensPUError(
                    "A process for the benchmark ended before it began to work. A "
                    "script that calls run_specs with jobs above 1 must do so under "
                    "if __name__ == '__main__'."
                ) from None
            how = "no answer: it crashed, or was killed, for its memory perhaps"
            return gave_up(job, f"The process ended with {how}.", seconds)
        # The memory that training an encoder took is not kept for a cell's process.
        again = ended.went_well and not job.encoder
        self.idle.append(worker) if again else worker.end()
        return ended


@contextmanager
def _environment(threads: int) -> Iterator[None]:
    """Set the number of threads that libraries of a process begun meanwhile read.

    What the user has set stays.
    """
    if THREADS in os.environ:
        yield
        return
    os.environ[THREADS] = str(threads)
    try:
        yield
    finally:
        del os.environ[THREADS]


@contextmanager
def _undisturbed() -> Iterator[None]:
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


def _prepare(threads: int) -> None:
    """Make a new process ready for jobs; it ends when its run is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # also if begun by another thread
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(min(threads, torch.get_num_threads()))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
