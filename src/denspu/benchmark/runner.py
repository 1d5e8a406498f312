"""Run the cells of a spec: skip what is recorded, stop at the budget, lose nothing.

Each record is written the moment its cell ends, by this process alone. Kill it at any
time: the next run goes on with the cells that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from denspu._device import resolve_device
from denspu._progress import progress
from denspu.benchmark.cells import Cell, cells_of, failed, recorded, spec_hash
from denspu.benchmark.record import Record, read_records, write_record
from denspu.benchmark.spec import Spec
from denspu.benchmark.work import Place, died, encoder_folder, facts_of, loaded
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
    failed_before: int = 0
    """Of those recorded before."""
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

    def learn_from(self, cell: Cell, record: Record) -> None:
        """Remember what a record says of its cell and of the encoder it shares."""
        self.learn(cell.row.name, record.seconds["total"])
        if "shared_encoder" in record.seconds:
            kind = _encoder_kind(cell.task.dataset)
            self.learn(kind, record.seconds["shared_encoder"])

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
    tasks: tuple[str, ...] | None = None,
    retry: bool = False,
    cell_limit: float | None = None,
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
        of its row so far. The first cell of all is begun in any case, and the first of
        a row is judged by the longest of the others.
    device : str
        Of all methods.
    jobs : int
        Cells that run at once, each in a process of its own. Small networks leave a
        large GPU idle. Cells under ``max_seconds`` run one at a time all the same.
    encoders : path
        Folder of the encoders that rows share.
    seeds, rows, tasks : optional
        Run only these.
    retry : bool
        Run cells again whose record is an error.
    cell_limit : float, optional
        Seconds after which a cell is ended and recorded as failed; cells then run in
        processes of their own.
    report : callable, optional
        Called with each cell and its record.
    """
    if jobs < 1:
        raise InvalidParameterError(f"jobs={jobs!r} must be 1 or more.")
    out = Path(out)
    place = Place(device, Path(encoders), spec.name, spec_hash(spec), jobs)
    with only_writer(out):
        known = recorded(read_records(out))
        wanted = chosen(spec, seeds, rows, tasks)
        borrow(spec, out, known, place, wanted)
        clock = Clock(budget)
        pending = [
            c for c in wanted if c.id not in known or (retry and failed(known[c.id]))
        ]
        prepare(pending, device)
        for cell in wanted:
            if cell.id in known:
                clock.learn_from(cell, known[cell.id])
        outcome = Outcome(
            skipped=len(wanted) - len(pending),
            failed_before=sum(failed(known[c.id]) for c in wanted if c.id in known)
            - sum(c.id in known for c in pending),
        )
        alone = jobs == 1 and cell_limit is None
        pool: Pool = Here(place) if alone else Processes(place, jobs, cell_limit)
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
    spec: Spec,
    seeds: tuple[int, ...] | None = None,
    rows: tuple[str, ...] | None = None,
    tasks: tuple[str, ...] | None = None,
) -> list[Cell]:
    """Return the cells of some seeds, rows and tasks."""
    for argument, asked, known in (
        ("rows", rows, [row.name for row in spec.rows]),
        ("tasks", tasks, [task.name for task in spec.tasks]),
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
        and (tasks is None or cell.task.name in tasks)
    ]


def prepare(cells: list[Cell], device: str) -> None:
    """Find out at once what would make every cell fail: device and data."""
    resolve_device(device)
    for name in dict.fromkeys(cell.task.dataset for cell in cells):
        loaded(name)


def borrow(
    spec: Spec, out: Path, known: dict[str, Record], place: Place, wanted: list[Cell]
) -> None:
    """Take over the records of the same cells from the other specs beside ``out``."""
    others = (path for path in sorted(out.parent.glob("*.jsonl")) if path != out)
    elsewhere = recorded(r for path in others for r in read_records(path))
    for cell in wanted:
        found = elsewhere.get(cell.id)
        done = cell.id in known and not failed(known[cell.id])
        if done or found is None or failed(found):
            continue
        extra = {**found.extra, **facts_of(cell, place)}
        extra |= {"jobs": found.extra.get("jobs", 1), "taken_from": found.extra["spec"]}
        known[cell.id] = replace(found, variant=cell.row.name, extra=extra)
        write_record(known[cell.id], out)


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
    """Yield cells with their records as they end; encoders go before their cells.

    An encoder is tried once. Where it fails, its cells are recorded with its error. A
    cell that is bound by seconds runs when no other does.
    """
    waiting, in_work, alone = list(cells), 0, False
    training: set[Path] = set()
    while True:
        while pool.free() and not (alone and in_work):
            job = _next(waiting, training, clock, place, idle=not in_work)
            if job is None:
                break
            alone = job.cell.alone
            if job.encoder:
                training.add(encoder_folder(job.cell, place))
            else:
                waiting.remove(job.cell)
            pool.begin(job)
            in_work += 1
        if not in_work:
            return
        for ended in pool.wait():
            in_work -= 1
            clock.learn(_kind(ended.job), ended.seconds)
            if ended.record is not None:
                yield ended.job.cell, ended.record
                continue
            folder = encoder_folder(ended.job.cell, place)
            training.discard(folder)
            if ended.error is None:
                continue
            reason = f"Its shared encoder failed. {ended.error}"
            for cell in [c for c in waiting if _needs(c, folder, place)]:
                waiting.remove(cell)
                yield cell, died(cell, place, reason, 0.0)


def _needs(cell: Cell, folder: Path, place: Place) -> bool:
    return cell.row.encoder == "shared" and encoder_folder(cell, place) == folder


def _encoder_kind(dataset: str) -> str:
    return f"encoder of {dataset}"


def _kind(job: Job) -> str:
    return _encoder_kind(job.cell.task.dataset) if job.encoder else job.cell.row.name


def _next(
    waiting: list[Cell],
    training: set[Path],
    clock: Clock,
    place: Place,
    *,
    idle: bool,
) -> Job | None:
    """Return the first job that is ready and would end in time."""
    for cell in waiting:
        if cell.alone and not idle:
            continue
        job = Job(cell)
        if cell.row.encoder == "shared":
            folder = encoder_folder(cell, place)
            if folder in training:
                continue
            job.encoder = not folder.exists()
        if clock.allows(_kind(job)):
            return job
    return None
