"""The records of a spec while it is run: what is there, what is missing, who writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from denspu.benchmark.cells import Cell, failed, recorded
from denspu.benchmark.record import Record, read_records, write_record
from denspu.benchmark.work import Place, facts_of
from denspu.benchmark.workers import Job
from denspu.exceptions import DataIntegrityError, InvalidParameterError


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

    def failures(self) -> set[str]:
        """Return the cells whose record is an error."""
        return {i for i, record in self.known.items() if failed(record)}

    def add(self, job: Job, record: Record) -> None:
        """Write the record of a job, whichever spec it was run for, if it is news."""
        known = self.known.get(job.cell.id)
        ours = job.place == self.place.of(job.cell.row)
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


def borrow(sheet: Sheet) -> None:
    """Take over the records of the same cells from other specs, kept beside these."""
    beside = sorted(sheet.out.parent.glob("*.jsonl"))
    elsewhere = recorded(
        record for path in beside if path != sheet.out for record in _readable(path)
    )
    for cell in sheet.wanted:
        found = elsewhere.get(cell.id)
        done = cell.id in sheet.known and not failed(sheet.known[cell.id])
        if not (done or found is None or failed(found)):
            sheet.take(cell, found)


def _readable(path: Path) -> list[Record]:
    """Return the records of a file that is not ours; none if it holds other things."""
    try:
        return read_records(path)
    except DataIntegrityError:
        return []


def refuse_one_file_twice(sheets: Sequence[Sheet]) -> None:
    """Refuse two specs that would write to the same records."""
    seen: dict[Path, str] = {}
    for sheet in sheets:
        path, name = sheet.out.resolve(), sheet.place.spec
        if path in seen:
            raise InvalidParameterError(
                f"{sheet.out} would hold the records of {seen[path]} and of {name}. "
                "Name each spec once, and give each its own file."
            )
        seen[path] = name


@contextmanager
def only_writer(out: Path) -> Iterator[None]:
    """Keep other runs from writing to the same records."""
    with _opened(out) as file:
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


def _opened(out: Path) -> BinaryIO:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        return out.open("ab")
    except OSError as error:
        raise InvalidParameterError(
            f"Records cannot be written to {out}: {error.strerror}. Name a file that "
            "can be written (--records FILE)."
        ) from None
