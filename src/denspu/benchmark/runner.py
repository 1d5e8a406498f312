"""Run the cells of specs: skip what is recorded, stop at the budget, lose nothing.

Each record is written the moment its cell ends, by this process alone. Kill it at any
time: the next run goes on with the cells that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from denspu._machine import resolve_device
from denspu._parameters import Number, OneOf, Whole, check
from denspu._progress import progress
from denspu.benchmark.cells import Cell, cells_of, failed, recorded, spec_hash
from denspu.benchmark.record import Record, read_records
from denspu.benchmark.schedule import Clock, work_through
from denspu.benchmark.sheets import Sheet, borrow, only_writer, refuse_one_file_twice
from denspu.benchmark.spec import Spec
from denspu.benchmark.work import Place, loaded
from denspu.benchmark.workers import Here, Job, Pool, Processes
from denspu.exceptions import InvalidParameterError, did_you_mean

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
        so far on such a device: of its row and data set, else of the same work on it in
        any of these specs, else of its row or work, of its spec, or of all. Where
        nothing is recorded the first cell is begun in any case.
    device : str
        Of all methods, but for rows that keep to a CPU.
    jobs : int
        Cells that run at once, each in a process of its own. Small networks leave a
        large GPU idle. There, of encoders and rows that are ``heavy`` one runs at a
        time, beside others that are not. Cells and encoders under ``max_seconds`` run
        when no other does, with all cores.
    encoders : path
        Folder of the encoders that rows share.
    seeds, rows, tasks : optional
        Run only these, in the specs that have them.
    retry : bool
        Run cells again whose record is an error.
    borrowing : bool
        Take over what other files of records in the same folder have of these cells.
    cell_limit : float, optional
        Seconds after which a cell is ended and recorded as failed; cells then run in
        processes of their own.
    report : callable, optional
        Called with each cell and its record.
    """
    _check_limits(budget, jobs, cell_limit)
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
    refuse_one_file_twice(sheets)
    with ExitStack() as writers:
        for sheet in sheets:
            writers.enter_context(only_writer(sheet.out))
            sheet.known = recorded(read_records(sheet.out))
        for sheet in sheets if borrowing else ():
            borrow(sheet)
        clock = Clock(budget)
        for job, record in (pair for sheet in sheets for pair in sheet.done()):
            clock.pace.learn_from(job, record)
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


def _check_limits(budget: float, jobs: int, cell_limit: float | None) -> None:
    for name, value, rules in (
        ("budget", budget, (Number(0),)),
        ("jobs", jobs, (Whole(1),)),
        ("cell_limit", cell_limit, (OneOf(None), Number(0, closed="neither"))),
    ):
        check(name, value, *rules)


def _pending(sheets: Sequence[Sheet], retry: bool) -> list[Job]:
    """Return the cells to be run, each once, in the place of the first that asks."""
    jobs: dict[str, Job] = {}
    for sheet in sheets:
        for job in sheet.pending(retry):
            jobs.setdefault(job.cell.id, job)
    return list(jobs.values())


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


def _has_not(specs: Sequence[Spec]) -> str:
    return "has not. It has" if len(specs) == 1 else "have not. They have"


def prepare(jobs: Sequence[Job]) -> None:
    """Find out at once whether data are missing, which would make many cells fail."""
    for name in dict.fromkeys(job.cell.task.dataset for job in jobs):
        loaded(name)
