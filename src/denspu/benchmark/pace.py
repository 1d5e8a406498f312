"""How long runs take, judged by those that are recorded or have just ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from denspu.benchmark.cells import failed
from denspu.benchmark.record import Record
from denspu.benchmark.workers import Job

Kind = tuple[str, str, str]
"""Spec, row and data set, or encoders, their settings and data set: what is alike in
more of these, from the first on, takes a more similar time."""
ENCODERS = "encoders"


def kind_of(job: Job) -> Kind:
    """Return whose seconds tell how long a job will take."""
    cell = job.cell
    if job.encoder:
        return ENCODERS, str(sorted(cell.shared_encoder.items())), cell.task.dataset
    return job.place.spec, cell.row.name, cell.task.dataset


def ran_on_gpu(record: Record) -> bool:
    """Tell whether a record is of a run on a GPU."""
    return not record.device.startswith("cpu")


@dataclass
class Pace:
    """Seconds of the longest job of each kind."""

    longest: dict[Kind, float] = field(default_factory=dict)

    def learn(self, kind: Kind, seconds: float) -> None:
        """Remember how long a job took."""
        self.longest[kind] = max(self.longest.get(kind, 0.0), seconds)

    def learn_from(self, job: Job, record: Record) -> None:
        """Remember what a record says of its cell and of the encoder it shares.

        One of another kind of device, or of a run that raised, says nothing of this.
        """
        if failed(record) or ran_on_gpu(record) != job.place.on_gpu:
            return
        self.learn(kind_of(job), record.seconds["total"])
        if "shared_encoder" in record.seconds:
            encoder = replace(job, encoder=True)
            self.learn(kind_of(encoder), record.seconds["shared_encoder"])

    def of(self, kind: Kind) -> float:
        """Return the seconds a job may take: those of the longest most like it.

        Of its kind; else of its row, of its spec, of all; 0 where none is known.
        Encoders tell of encoders alone, cells of cells.
        """
        encoder = kind[0] == ENCODERS
        same = {k: s for k, s in self.longest.items() if encoder == (k[0] == ENCODERS)}
        for alike in range(len(kind), -1, -1):
            seconds = [s for k, s in same.items() if k[:alike] == kind[:alike]]
            if seconds:
                return max(seconds)
        return 0.0
