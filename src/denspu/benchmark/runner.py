"""Run the cells of a spec: skip what is recorded, stop at the budget, lose nothing.

Each record is written the moment its cell ends, by this process alone. Kill it at any
time: the next run goes on with the cells that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from denspu._progress import progress
from denspu.benchmark.cells import Cell, cells_of, failed, recorded, spec_hash
from denspu.benchmark.record import Record, read_records, write_record
from denspu.benchmark.spec import Spec
from denspu.benchmark.work import Place, encoder_folder
from denspu.benchmark.workers import Here, Job, Pool, Processes
from denspu.exceptions import InvalidParameterError

Report = Callable[[Cell, Record], None]


@dataclass
class Outcome:
    """What a run did."""

    ran: int = 0
    failed: int = 0
    skipped: int = 0
    """Recorded before."""
    left: int = 0
    """Not begun: the budget would not have lasted."""
    seconds: float = 0.0


@dataclass
class Clock:
    """How long the run may take, and how long cells take."""

    budget: float
    began: float = field(default_factory=time.perf_counter)
    longest: dict[str, float] = field(default_factory=dict)
    """Seconds of the longest cell, by row; the encoder of a data set has its own."""

    def elapsed(self) -> float:
        """Return the seconds since the run began."""
        return time.perf_counter() - self.began

    def learn(self, what: str, seconds: float) -> None:
        """Remember how long a job took."""
        self.longest[what] = max(self.longest.get(what, 0.0), seconds)

    def allows(self, what: str) -> bool:
        """Tell whether a job would end in time, judged by others of its kind.

        A kind that was never seen is judged by the longest seen in all.
        """
        unknown = max(self.longest.values(), default=0.0)
        return self.elapsed() + self.longest.get(what, unknown) <= self.budget


def run_spec(
    spec: Spec,
    out: str | Path,
    *,
    budget: float = float("inf"),
    device: str = "auto",
    jobs: int = 1,
    encoders: str | Path = "encoders",
    seeds: tuple[int, ...] | None = None,
    rows: tuple[str, ...] | None = None,
    retry: bool = False,
    verbose: int = 1,
    report: Report | None = None,
) -> Outcome:
    """Run the cells of a spec that have no record yet.

    Parameters
    ----------
    spec : Spec
    out : path
        File of records; one run at a time may write to it.
    budget : float
        Seconds. No cell is begun that would not end within it, judged by the longest
        of its row so far.
    device : str
        Of all methods.
    jobs : int
        Cells that run at once, each in a process of its own. Small networks leave a
        large GPU idle.
    encoders : path
        Folder of the encoders that rows share.
    seeds, rows : optional
        Run only these.
    retry : bool
        Run cells again whose record is an error.
    report : callable, optional
        Called with each cell and its record.
    """
    if jobs < 1:
        raise InvalidParameterError(f"jobs={jobs!r} must be 1 or more.")
    out = Path(out)
    place = Place(device, Path(encoders), spec.name, spec_hash(spec), jobs)
    with only_writer(out):
        known = recorded(read_records(out))
        clock = Clock(budget)
        wanted = chosen(spec, seeds, rows)
        pending = [
            c for c in wanted if c.id not in known or (retry and failed(known[c.id]))
        ]
        for cell in wanted:
            if cell.id in known:
                clock.learn(cell.row.name, known[cell.id].seconds["total"])
        outcome = Outcome(skipped=len(wanted) - len(pending))
        pool: Pool = Here(place) if jobs == 1 else Processes(place, jobs)
        with progress(spec.name, len(pending), verbose) as advance, pool:
            for cell, record in work_through(pending, pool, clock, place):
                write_record(record, out)
                outcome.ran += 1
                outcome.failed += failed(record)
                advance(cell.title)
                if report is not None:
                    report(cell, record)
        outcome.left = len(pending) - outcome.ran
        outcome.seconds = clock.elapsed()
    return outcome


def chosen(
    spec: Spec, seeds: tuple[int, ...] | None, rows: tuple[str, ...] | None
) -> list[Cell]:
    """Return the cells of some seeds and rows."""
    for argument, asked, known in (
        ("rows", rows, [row.name for row in spec.rows]),
        ("seeds", seeds, list(spec.seeds)),
    ):
        for one in asked or ():
            if one not in known:
                raise InvalidParameterError(
                    f"{argument} has {one!r}, which {spec.name} has not. It has: "
                    f"{', '.join(map(str, known))}."
                )
    return [
        cell
        for cell in cells_of(spec)
        if (seeds is None or cell.seed in seeds)
        and (rows is None or cell.row.name in rows)
    ]


@contextmanager
def only_writer(out: Path) -> Iterator[None]:
    """Keep other runs from writing to the same records."""
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # pragma: no cover - not on Windows
        yield
        return
    with out.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidParameterError(
                f"Another run is writing to {out}. Wait for it to end, or give this "
                "one its own file."
            ) from None
        yield


def work_through(
    cells: list[Cell], pool: Pool, clock: Clock, place: Place
) -> Iterator[tuple[Cell, Record]]:
    """Yield cells with their records as they end; encoders go before their cells."""
    waiting, in_work = list(cells), 0
    training: set[Path] = set()
    tried: set[Path] = set()
    while True:
        while pool.free():
            job = _next(waiting, training, tried, clock, place)
            if job is None:
                break
            if job.encoder:
                training.add(encoder_folder(job.cell, place))
            else:
                waiting.remove(job.cell)
            pool.begin(job)
            in_work += 1
        if not in_work:
            return
        for job, record, seconds in pool.wait():
            in_work -= 1
            clock.learn(_kind(job), seconds)
            if record is not None:
                yield job.cell, record
            else:
                folder = encoder_folder(job.cell, place)
                training.discard(folder)
                tried.add(folder)


def _kind(job: Job) -> str:
    return f"encoder of {job.cell.task.dataset}" if job.encoder else job.cell.row.name


def _next(
    waiting: list[Cell],
    training: set[Path],
    tried: set[Path],
    clock: Clock,
    place: Place,
) -> Job | None:
    """Return the first job that is ready and would end in time."""
    for cell in waiting:
        job = Job(cell)
        if cell.row.encoder == "shared":
            folder = encoder_folder(cell, place)
            if folder in training:
                continue
            job.encoder = not folder.exists() and folder not in tried
        if clock.allows(_kind(job)):
            return job
    return None
