"""Run the cells of specs: skip what is recorded, stop at the budget, lose nothing.

Each record is written the moment its cell ends, by this process alone. Kill it at any
time: the next run goes on with the cells that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from denspu._machine import resolve_device
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
from denspu.benchmark.work import Job, Place, facts_of, gave_up, loaded
from denspu.benchmark.workers import Here, Processes
from denspu.exceptions import (
    DataIntegrityError,
    InvalidParameterError,
    did_you_mean,
)


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
    wanted = chosen([spec for spec, _ in specs], seeds, rows, tasks)
    on_gpu = resolve_device(device).type == "cuda"
    sheets = [
        Sheet(
            Path(out),
            Place(device, Path(encoders), spec.name, spec_hash(spec), jobs, on_gpu),
            cells_of(spec),
            cells,
        )
        for (spec, out), cells in zip(specs, wanted, strict=True)
    ]
    for path, same in groupby(sorted(sheets, key=_file), key=_file):
        first, *others = (sheet.place.spec for sheet in same)
        if others:
            raise InvalidParameterError(
                f"{path} would hold the records of {first} and of {others[0]}. Name "
                "each spec once, and give each its own file."
            )
    with ExitStack() as writers:
        for sheet in sheets:
            writers.enter_context(_only_writer(sheet.out))
            sheet.known = recorded(read_records(sheet.out))
        for sheet in sheets if borrowing else ():
            sheet.borrow()
        clock = Clock(budget)
        for sheet in sheets:
            for job, record in sheet.done():
                clock.learn_from(job, record)
        pending: dict[str, Job] = {}
        for job in (job for sheet in sheets for job in sheet.pending(retry)):
            pending.setdefault(job.cell.id, job)
        for name in dict.fromkeys(job.cell.task.dataset for job in pending.values()):
            loaded(name)  # data that are missing would make many cells fail
        before = {cell.id for sheet in sheets for cell in sheet.wanted} - set(pending)
        bad = {i for s in sheets for i, record in s.known.items() if failed(record)}
        outcome = Outcome(skipped=len(before), failed_before=len(before & bad))
        here = jobs == 1 and cell_limit is None
        workers: Here | Processes = Here() if here else Processes(jobs, cell_limit)
        title = " ".join(sheet.place.spec for sheet in sheets)
        with progress(title, len(pending), verbose) as advance, workers:
            for job, record in _work_through(list(pending.values()), workers, clock):
                for sheet in sheets:
                    sheet.add(job, record)
                outcome.ran += 1
                outcome.failed += failed(record)
                advance(job.cell.title)
        outcome.left = len(pending) - outcome.ran
        outcome.seconds = clock.elapsed()
    return outcome


def chosen(
    specs: Sequence[Spec],
    seeds: tuple[int, ...] | None = None,
    rows: tuple[str, ...] | None = None,
    tasks: tuple[str, ...] | None = None,
) -> list[list[Cell]]:
    """Return the cells of some seeds, rows and tasks, for each spec."""
    names = " and ".join(spec.name for spec in specs)
    has_not = "has not. It has" if len(specs) == 1 else "have not. They have"
    for argument, asked, known in (
        ("rows", rows, [row.name for spec in specs for row in spec.rows]),
        ("tasks", tasks, [task.name for spec in specs for task in spec.tasks]),
        ("seeds", seeds, [seed for spec in specs for seed in spec.seeds]),
    ):
        for one in asked or ():
            if one not in known:
                raise InvalidParameterError(
                    f"{argument} has {one!r}, which {names} {has_not}: "
                    f"{', '.join(map(str, dict.fromkeys(known)))}."
                    f"{did_you_mean(str(one), list(map(str, known)))}"
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
        asked_for = {"rows": rows, "tasks": tasks, "seeds": seeds}
        told = ", ".join(f"{k}={list(v)}" for k, v in asked_for.items() if v)
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
        cell, data = job.cell, job.cell.task.dataset
        work = cell.encoder_work if job.encoder else cell.work
        likes: list[tuple[str, ...]] = [(work, data), (work,)]
        likes += [] if job.encoder else [("spec", job.place.spec)]
        return [(job.place.on_gpu, job.encoder, *like) for like in [*likes, ()]]


def _work_through(
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
        if job.alone and in_work:
            continue
        if not clock.allows(job) or (job.heavy and heavy_runs):
            continue
        if job.heavy or not in_work:
            return job
        light = light or job
    return light


# --- the records of a spec while it is run ------------------------------------------


@dataclass
class Sheet:
    """The records of a spec, and which of its cells are wanted."""

    out: Path
    place: Place
    cells: list[Cell]
    """All of the spec, from whose records it is known how long a run takes."""
    wanted: list[Cell]
    known: dict[str, Record] = field(default_factory=dict)

    def pending(self, retry: bool) -> list[Job]:
        """Return the cells without a record or, if asked, with that of an error."""
        return [
            Job(cell, self.place.of(cell.row))
            for cell in self.wanted
            if cell.id not in self.known or (retry and failed(self.known[cell.id]))
        ]

    def done(self) -> list[tuple[Job, Record]]:
        """Return the cells that have a record, with it, whether wanted now or not."""
        return [
            (Job(cell, self.place.of(cell.row)), self.known[cell.id])
            for cell in self.cells
            if cell.id in self.known
        ]

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
                try:
                    others += read_records(path)
                except DataIntegrityError:  # a file of other things
                    continue
        elsewhere = recorded(others)
        for cell in self.wanted:
            found = elsewhere.get(cell.id)
            done = cell.id in self.known and not failed(self.known[cell.id])
            if not (done or found is None or failed(found)):
                self._write(self._taken(cell, found))

    def _taken(self, cell: Cell, found: Record) -> Record:
        """Return the record that the same cell has in another spec, as ours."""
        extra = {**found.extra, **facts_of(cell, self.place)}
        extra |= {"jobs": found.extra.get("jobs", 1), "taken_from": found.extra["spec"]}
        return replace(found, variant=cell.row.name, extra=extra)

    def _write(self, record: Record) -> None:
        write_record(record, self.out)
        self.known[record.extra["cell"]] = record


def _file(sheet: Sheet) -> Path:
    return sheet.out.resolve()


@contextmanager
def _only_writer(out: Path) -> Iterator[None]:
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
