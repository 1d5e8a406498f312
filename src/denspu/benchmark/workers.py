"""Who does the jobs of a benchmark: this process, or several at once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing import connection, get_context
from typing import Any, Protocol

from denspu.benchmark.cells import Cell
from denspu.benchmark.record import Record
from denspu.benchmark.work import Place, died, run_cell, train_encoder


@dataclass
class Job:
    """A cell, or the encoder that cells wait for."""

    cell: Cell
    encoder: bool = False


Ended = tuple[Job, Record | None, float]
"""A job, its record (encoders have none), its seconds."""


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
        """Return the jobs that have ended, at least one; encoders have no record."""
        ...


def do(job: Job, place: Place) -> tuple[Record | None, float]:
    """Do one job; return its record and seconds."""
    start = time.perf_counter()
    if not job.encoder:
        record = run_cell(job.cell, place)
        return record, time.perf_counter() - start
    try:
        train_encoder(job.cell, place)
    except Exception:  # the cells that need it will say why
        return None, time.perf_counter() - start
    return None, time.perf_counter() - start


class Here:
    """One job at a time, in this process."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.done: list[Ended] = []

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None:
        self.done.clear()

    def free(self) -> bool:
        """Tell whether another job can be begun."""
        return not self.done

    def begin(self, job: Job) -> None:
        """Start a job."""
        self.done.append((job, *do(job, self.place)))

    def wait(self) -> list[Ended]:
        """Return the jobs that have ended."""
        ended, self.done = self.done, []
        return ended


class Processes:
    """Several jobs at once, each worker a process; one that dies is replaced."""

    def __init__(self, place: Place, count: int) -> None:
        self.place = place
        self.count = count
        self.context = get_context("spawn")
        self.idle: list[Worker] = []
        self.busy: list[Worker] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in (*self.idle, *self.busy):
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()

    def free(self) -> bool:
        """Tell whether another job can be begun."""
        return len(self.busy) < self.count

    def begin(self, job: Job) -> None:
        """Start a job."""
        worker = self.idle.pop() if self.idle else self._new()
        if not worker.process.is_alive():
            worker = self._new()
        worker.pipe.send(job)
        worker.job, worker.began = job, time.perf_counter()
        self.busy.append(worker)

    def wait(self) -> list[Ended]:
        """Return the jobs that have ended."""
        ready = connection.wait([worker.pipe for worker in self.busy])
        ended = []
        for worker in [w for w in self.busy if w.pipe in ready]:
            self.busy.remove(worker)
            assert worker.job is not None
            try:
                ended.append((worker.job, *worker.pipe.recv()))
                self.idle.append(worker)
            except (EOFError, OSError):
                worker.process.join()
                ended.append(self._lost(worker, worker.job))
        return ended

    def _lost(self, worker: Worker, job: Job) -> Ended:
        """Say what a dead worker was at."""
        seconds = time.perf_counter() - worker.began
        code = worker.process.exitcode
        reason = f"The process ended with exit code {code} and no answer."
        record = None if job.encoder else died(job.cell, self.place, reason, seconds)
        return job, record, seconds

    def _new(self) -> Worker:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(
            target=serve, args=(theirs, self.place), daemon=True
        )
        process.start()
        theirs.close()
        return Worker(process, ours)


@dataclass
class Worker:
    """A process, the line to it, and what it is at."""

    process: Any
    pipe: Any
    job: Job | None = None
    began: float = 0.0


def serve(pipe: Any, place: Place) -> None:
    """Do the jobs that come through a pipe until it is closed."""
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        pipe.send(do(job, place))
