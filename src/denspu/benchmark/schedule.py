"""Which job is begun next, and whether it would end in time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from denspu.benchmark.pace import Pace
from denspu.benchmark.record import Record
from denspu.benchmark.work import died, encoder_folder
from denspu.benchmark.workers import Job, Pool


@dataclass
class Clock:
    """How long the run may take, and how long its jobs will."""

    budget: float
    began: float = field(default_factory=time.perf_counter)
    pace: Pace = field(default_factory=Pace)

    def elapsed(self) -> float:
        """Return the seconds since the run began."""
        return time.perf_counter() - self.began

    def allows(self, job: Job) -> bool:
        """Tell whether a job would end in time, judged by others like it."""
        return self.elapsed() + self.pace.of(job) <= self.budget


def work_through(
    jobs: Sequence[Job], pool: Pool, clock: Clock
) -> Iterator[tuple[Job, Record]]:
    """Yield cells with their records as they end; encoders go before their cells.

    An encoder is tried once. Where it fails, its cells are recorded with its error. A
    heavy job waits for the one before it to end, and goes before light ones; a cell
    or encoder that is bound by seconds runs when no other does.
    """
    waiting: list[Job] = list(jobs)
    in_work: list[Job] = []
    while True:
        while pool.free() and not any(job.alone for job in in_work):
            job = _next(waiting, in_work, clock)
            if job is None:
                break
            if not job.encoder:
                waiting.remove(job)
            pool.begin(job)
            in_work.append(job)
        if not in_work:
            return
        for ended in pool.wait():
            in_work.remove(ended.job)
            if ended.went_well:
                clock.pace.learn(ended.job, ended.seconds)
            if ended.record is not None:
                yield ended.job, ended.record
                continue
            if ended.error is None:
                continue
            folder = _folder(ended.job)
            reason = f"Its shared encoder failed. {ended.error}"
            for job in [j for j in waiting if _shares(j) and _folder(j) == folder]:
                waiting.remove(job)
                yield job, died(job.cell, job.place, reason, 0.0)


def _shares(job: Job) -> bool:
    return job.cell.row.encoder == "shared"


def _folder(job: Job) -> Path:
    return encoder_folder(job.cell, job.place)


def _next(waiting: Sequence[Job], in_work: Sequence[Job], clock: Clock) -> Job | None:
    """Return the first job that is ready and would end in time.

    Beside light jobs the first heavy one, since only one of these runs at a time.
    """
    heavy_runs = any(job.heavy for job in in_work)
    in_training = {_folder(job) for job in in_work if job.encoder}
    light = None
    for job in waiting:
        if _shares(job) and not _folder(job).exists():
            if _folder(job) in in_training:
                continue
            job = replace(job, encoder=True)
        if job.alone and in_work:
            continue
        if not clock.allows(job) or (job.heavy and heavy_runs):
            continue
        if job.heavy or not in_work:
            return job
        light = light or job
    return light
