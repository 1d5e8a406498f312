"""What of some specs is recorded, what is missing, and what that would take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandas import DataFrame

from denspu._words import many
from denspu.benchmark.record import Record, failed, recorded
from denspu.benchmark.spec import Spec, cells_of
from denspu.benchmark.tables import MISSING, markdown_grid, plain, span_words

ENCODERS = "encoders that rows share"
HEADER = ("spec", "row", "data set", "missing", "seconds each", "seconds left")
NOTHING = "Nothing is missing."


@dataclass(frozen=True)
class Part:
    """Cells of a row on one data set, or encoders, and what the missing ones take."""

    spec: str
    name: str
    dataset: str
    cells: int
    missing: int
    failed: int = 0
    each: tuple[float, float] | None = None
    """Least and most seconds of the device: those of a record, divided by the cells
    that ran at once; ``None`` where such a device has run neither."""
    elsewhere: bool = False
    """Runs on a CPU whatever device the others are run on."""

    @property
    def left(self) -> tuple[float, float] | None:
        """Least and most seconds that the missing ones take."""
        if self.each is None:
            return None
        return self.missing * self.each[0], self.missing * self.each[1]


def parts_of(
    specs: Sequence[tuple[Spec, Sequence[Record]]],
    *,
    on_gpu: bool,
    encoders: str | Path = "encoders",
) -> list[Part]:
    """Return the parts of specs: rows by data set, then encoders to be trained.

    What several specs ask for is missing once, in the first of them.
    """
    frame = DataFrame(
        line
        for spec, records in specs
        for line in _lines(spec, records, on_gpu, Path(encoders))
    )
    own = frame.dropna(subset="seconds").groupby("id")["seconds"]
    alike = frame.dropna(subset="seconds").groupby(["work", "dataset"])["seconds"]
    by_id, by_work = own.agg(["min", "max"]), alike.agg(["min", "max"])
    asked: set[str] = set()
    parts = []
    for (spec, name, dataset), part in frame.groupby(
        ["spec", "name", "dataset"], sort=False
    ):
        first = part.iloc[0]
        missing = set(part["id"][~part["there"]]) - asked
        asked |= missing
        times = by_id[by_id.index.isin(part["id"])]
        if not len(times) or name == ENCODERS:
            times = by_work[by_work.index == (first["work"], dataset)]
        each = (times["min"].min(), times["max"].max()) if len(times) else None
        count, bad = part["id"].nunique(), int(part["failed"].sum())
        parts.append(
            Part(spec, name, dataset, count, len(missing), bad, each, first["cpu"])
        )
    return parts


def _lines(
    spec: Spec, records: Sequence[Record], on_gpu: bool, encoders: Path
) -> Iterator[dict[str, Any]]:
    """Yield a line for each cell, row by row, and for each use of a shared encoder."""
    known = recorded(records)
    cells = cells_of(spec)
    order = list(dict.fromkeys(cell.row.name for cell in cells))
    of_encoders = []
    for cell in sorted(cells, key=lambda cell: order.index(cell.row.name)):
        record = known.get(cell.id)
        bad = record is not None and failed(record)
        cpu = on_gpu and cell.row.keeps_to_cpu
        seconds = shared = None
        if record is not None and not bad and record.ran_on_gpu == (on_gpu and not cpu):
            seconds = record.seconds["total"] / record.extra.get("jobs", 1)
            shared = record.seconds.get("shared_encoder")
        line = {
            "spec": spec.name,
            "name": cell.row.name,
            "dataset": cell.task.dataset,
            "id": cell.id,
            "work": cell.work,
            "there": record is not None,
            "failed": bad,
            "seconds": seconds,
            "cpu": cpu,
        }
        yield line
        if cell.row.encoder == "shared":
            changes = {
                "name": ENCODERS,
                "id": cell.encoder_id,
                "work": cell.encoder_work,
                "there": record is not None or (encoders / cell.encoder_id).exists(),
                "failed": False,
                "seconds": shared,
            }
            of_encoders.append(line | changes)
    yield from of_encoders


# --- words --------------------------------------------------------------------------


def status_markdown(parts: Sequence[Part]) -> str:
    """Return what is missing as a table, then what is whole and the sum."""
    open_parts = [p for p in parts if p.missing or p.failed]
    if not open_parts:
        return NOTHING
    lines = [
        [
            plain(part.spec),
            plain(part.name),
            part.dataset,
            f"{part.missing} of {part.cells}"
            + (f", {part.failed} failed" if part.failed else ""),
            MISSING if part.each is None else span_words(part.each),
            MISSING if part.left is None else span_words(part.left),
        ]
        for part in open_parts
    ]
    return f"{markdown_grid(HEADER, lines)}\n\n{_sum(open_parts)}"


def _sum(parts: Sequence[Part]) -> str:
    """Say what all missing parts take, which nobody knows, and what failed."""
    here = [p for p in parts if not p.elsewhere]
    known = [part.left for part in here if part.missing and part.left is not None]
    unknown = sum(part.missing for part in here if part.left is None)
    on_cpu = sum(part.missing for part in parts if part.elsewhere)
    bad = sum(part.failed for part in parts)
    said = []
    if known:
        total = span_words([sum(ends) for ends in zip(*known, strict=True)])
        more = f", and {unknown} runs that are like none recorded on one"
        said.append(f"Together {total} s of such a device{more * bool(unknown)}.")
    elif unknown:
        said.append(f"None of these {unknown} is like a run recorded on such a device.")
    if on_cpu:
        said.append(f"{many(on_cpu, 'cell')} more on a CPU, with seconds of a CPU.")
    if bad:
        said.append(f"{bad} failed; `denspu bench run --retry` runs them again.")
    return " ".join(said)
