"""How long runs take, judged by those that are recorded or have just ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from denspu.benchmark.cells import failed
from denspu.benchmark.record import Record
from denspu.benchmark.workers import Job

Kind = tuple[str, ...]
"""What some jobs have in common: they take a similar time."""
ENCODERS = "encoders"


def kinds_of(job: Job) -> list[Kind]:
    """Return what a job is like, from what few are to what all are.

    Encoders are like encoders alone, cells like cells, and both like those alone that
    run on the same kind of device.
    """
    cell, spec = job.cell, job.place.spec
    data = cell.task.dataset
    on = "GPU" if job.place.on_gpu else "CPU"
    if job.encoder:
        work = cell.encoder_work
        kinds: list[Kind] = [(ENCODERS, work, data), (ENCODERS, work), (ENCODERS,)]
    else:
        kinds = [
            ("row", spec, cell.row.name, data),
            ("work", cell.work, data),
            ("row", spec, cell.row.name),
            ("work", cell.work),
            ("row", spec),
            (),
        ]
    return [(on, *kind) for kind in kinds]


def ran_on_gpu(record: Record) -> bool:
    """Tell whether a record is of a run on a GPU."""
    return not record.device.startswith("cpu")


@dataclass
class Pace:
    """Seconds of the longest job of each kind."""

    longest: dict[Kind, float] = field(default_factory=dict)

    def learn(self, job: Job, seconds: float) -> None:
        """Remember how long a job took."""
        for kind in kinds_of(job):
            self.longest[kind] = max(self.longest.get(kind, 0.0), seconds)

    def learn_from(self, job: Job, record: Record) -> None:
        """Remember what a record says of its cell and of the encoder it shares.

        One of another kind of device, or of a run that raised, says nothing of this.
        """
        if failed(record) or ran_on_gpu(record) != job.place.on_gpu:
            return
        self.learn(job, record.seconds["total"])
        if "shared_encoder" in record.seconds:
            self.learn(replace(job, encoder=True), record.seconds["shared_encoder"])

    def of(self, job: Job) -> float:
        """Return the seconds a job may take: those of the longest most like it.

        0 where none is known.
        """
        known = (self.longest[kind] for kind in kinds_of(job) if kind in self.longest)
        return next(known, 0.0)
