"""Run the cells of specs: skip what is recorded, stop at the budget, lose nothing.

Each record is written the moment its cell ends, by this process alone. Kill it at any
time: the next run goes on with the cells that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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


Kind = tuple[str, str]
"""Whose seconds tell how long a job will take: spec and row, or an encoder's data."""


@dataclass
class Clock:
    """How long the run may take, and how long cells take."""

    budget: float
    began: float = field(default_factory=time.perf_counter)
    longest: dict[Kind, float] = field(default_factory=dict)
    """Seconds of the longest job of each kind."""

    def elapsed(self) -> float:
        """Return the seconds since the run began."""
        return time.perf_counter() - self.began

    def learn(self, what: Kind, seconds: float) -> None:
        """Remember how long a job took."""
        self.longest[what] = max(self.longest.get(what, 0.0), seconds)

    def learn_from(self, sheet: Sheet) -> None:
        """Remember what records say of their cells and of the encoders they share."""
        for cell in (c for c in sheet.wanted if c.id in sheet.known):
            job, seconds = Job(cell, sheet.place), sheet.known[cell.id].seconds
            self.learn(_kind(job), seconds["total"])
            if "shared_encoder" in seconds:
                encoder = replace(job, encoder=True)
                self.learn(_kind(encoder), seconds["shared_encoder"])

    def allows(self, what: Kind) -> bool:
        """Tell whether a job would end in time, judged by others of its kind.

        A kind that was never seen is judged by the longest seen in its spec, or in all
        if there is none.
        """
        alike = {k: s for k, s in self.longest.items() if k[0] == what[0]}
        unknown = max((alike or self.longest).values(), default=0.0)
        return self.elapsed() + self.longest.get(what, unknown) <= self.budget


@dataclass
class Sheet:
    """The records of a spec, and which of its cells are wanted."""

    out: Path
    place: Place
    wanted: list[Cell]
    known: dict[str, Record] = field(default_factory=dict)

    def pending(self, retry: bool) -> list[Job]:
        """Return the cells without a record or, if asked, with that of an error."""
        return [
            Job(cell, self.place)
            for cell in self.wanted
            if cell.id not in self.known or (retry and failed(self.known[cell.id]))
        ]

    def failures(self) -> set[str]:
        """Return the cells whose record is an error."""
        return {i for i, record in self.known.items() if failed(record)}

    def add(self, job: Job, record: Record) -> None:
        """Write the record of a job, whichever spec it was run for, if it is news."""
        known = self.known.get(job.cell.id)
        ours = job.place == self.place
        if known is not None and not (failed(known) and (ours or not failed(record))):
            return
        for cell in (c for c in self.wanted if c.id == job.cell.id):
            self._write(record) if ours else self.take(cell, record)

    def take(self, cell: Cell, found: Record) -> None:
        """Add the record that the same cell has in another spec."""
        extra = {**found.extra, **facts_of(cell, self.place)}
        extra |= {"jobs": found.extra.get("jobs", 1), "taken_from": found.extra["spec"]}
        self._write(replace(found, variant=cell.row.name, extra=extra))

    def _write(self, record: Record) -> None:
        write_record(record, self.out)
        self.known[record.extra["cell"]] = record


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
    cell_limit: float | None = None,
    verbose: int = 1,
    report: Report | None = None,
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
        of its row so far; the first of a row by the longest of the others. Where
        nothing is recorded the first cell is begun in any case.
    device : str
        Of all methods.
    jobs : int
        Cells that run at once, each in a process of its own. Small networks leave a
        large GPU idle. There, of encoders and rows that are ``heavy`` one runs at a
        time, beside others that are not. Cells under ``max_seconds`` run when no other
        does.
    encoders : path
        Folder of the encoders that rows share.
    seeds, rows, tasks : optional
        Run only these, in the specs that have them.
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
    wanted = chosen([spec for spec, _ in specs], seeds, rows, tasks)
    on_gpu = resolve_device(device).type == "cuda"
    sheets = [
        Sheet(
            Path(out),
            Place(device, Path(encoders), spec.name, spec_hash(spec), jobs, on_gpu),
            cells,
        )
        for (spec, out), cells in zip(specs, wanted, strict=True)
    ]
    _refuse_one_file_twice(sheets)
    with ExitStack() as writers:
        for sheet in sheets:
            writers.enter_context(only_writer(sheet.out))
            sheet.known = recorded(read_records(sheet.out))
        for sheet in sheets:
            borrow(sheet)
        clock = Clock(budget)
        for sheet in sheets:
            clock.learn_from(sheet)
        pending = _pending(sheets, retry)
        prepare(pending)
        ids = {cell.id for sheet in sheets for cell in sheet.wanted}
        before = ids - {job.cell.id for job in pending}
        outcome = Outcome(
            skipped=len(before),
            failed_before=len(before & {i for s in sheets for i in s.failures()}),
        )
        alone = jobs == 1 and cell_limit is None
        pool: Pool = Here() if alone else Processes(jobs, cell_limit)
        title = " ".join(sheet.place.spec for sheet in sheets)
        with progress(title, len(pending), verbose) as advance, pool:
            for job, record in work_through(pending, pool, clock):
                for sheet in sheets:
                    sheet.add(job, record)
                outcome.ran += 1
                outcome.failed += failed(record)
                advance(job.cell.title)
                if report is not None:
                    report(job.cell, record)
        outcome.left = len(pending) - outcome.ran
        outcome.seconds = clock.elapsed()
    return outcome


def _pending(sheets: Sequence[Sheet], retry: bool) -> list[Job]:
    """Return the cells to be run, each once, in the place of the first that asks."""
    jobs: dict[str, Job] = {}
    for sheet in sheets:
        for job in sheet.pending(retry):
            jobs.setdefault(job.cell.id, job)
    return list(jobs.values())


def _refuse_one_file_twice(sheets: Sequence[Sheet]) -> None:
    seen: dict[Path, str] = {}
    for sheet in sheets:
        path, name = sheet.out.resolve(), sheet.place.spec
        if path in seen:
            raise InvalidParameterError(
                f"{sheet.out} would hold the records of {seen[path]} and of {name}. "
                "Name each spec once, and give each its own file."
            )
        seen[path] = name


def chosen(
    specs: Sequence[Spec],
    seeds: tuple[int, ...] | None = None,
    rows: tuple[str, ...] | None = None,
    tasks: tuple[str, ...] | None = None,
) -> list[list[Cell]]:
    """Return the cells of some seeds, rows and tasks, for each spec."""
    names = " and ".join(spec.name for spec in specs)
    for argument, asked, known in (
        ("rows", rows, [row.name for spec in specs for row in spec.rows]),
        ("tasks", tasks, [task.name for spec in specs for task in spec.tasks]),
        ("seeds", seeds, [seed for spec in specs for seed in spec.seeds]),
    ):
        for one in asked or ():
            if one not in known:
                raise InvalidParameterError(
                    f"{argument} has {one!r}, which {names} {_has_not(specs)}: "
                    f"{', '.join(map(str, dict.fromkeys(known)))}."
                )
    return [
        [
            cell
            for cell in cells_of(spec)
            if (seeds is None or cell.seed in seeds)
            and (rows is None or cell.row.name in rows)
            and (tasks is None or cell.task.name in tasks)
        ]
        for spec in specs
    ]


def _has_not(specs: Sequence[Spec]) -> str:
    return "has not. It has" if len(specs) == 1 else "have not. They have"


def prepare(jobs: Sequence[Job]) -> None:
    """Find out at once whether data are missing, which would make many cells fail."""
    for name in dict.fromkeys(job.cell.task.dataset for job in jobs):
        loaded(name)


def borrow(sheet: Sheet) -> None:
    """Take over the records of the same cells from other specs, kept beside these."""
    beside = sorted(sheet.out.parent.glob("*.jsonl"))
    elsewhere = recorded(
        record for path in beside if path != sheet.out for record in read_records(path)
    )
    for cell in sheet.wanted:
        found = elsewhere.get(cell.id)
        done = cell.id in sheet.known and not failed(sheet.known[cell.id])
        if not (done or found is None or failed(found)):
            sheet.take(cell, found)


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
    jobs: Sequence[Job], pool: Pool, clock: Clock
) -> Iterator[tuple[Job, Record]]:
    """Yield cells with their records as they end; encoders go before their cells.

    An encoder is tried once. Where it fails, its cells are recorded with its error. A
    heavy job waits for the one before it to end, and goes before light ones; a cell
    that is bound by seconds runs when no other does.
    """
    waiting: list[Job] = list(jobs)
    in_work: list[Job] = []
    while True:
        while pool.free() and not any(_alone(job) for job in in_work):
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
            clock.learn(_kind(ended.job), ended.seconds)
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


def _alone(job: Job) -> bool:
    return job.cell.alone and not job.encoder


def _kind(job: Job) -> Kind:
    if job.encoder:
        return "encoder", job.cell.task.dataset
    return job.place.spec, job.cell.row.name


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
        if _alone(job) and in_work:
            continue
        if not clock.allows(_kind(job)) or (job.heavy and heavy_runs):
            continue
        if job.heavy or not in_work:
            return job
        light = light or job
    return light
