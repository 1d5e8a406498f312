"""What of some specs is recorded, what is missing, and what that would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from denspu._words import many
from denspu.benchmark.record import Record, failed, recorded
from denspu.benchmark.spec import Cell, Spec, cells_of
from denspu.benchmark.tables import MISSING, markdown_grid, plain, span_words
from denspu.benchmark.work import Place, encoder_folder

ENCODERS = "encoders that rows share"


@dataclass(frozen=True)
class Span:
    """The least and the most that something takes, in seconds."""

    low: float
    high: float

    def times(self, count: int) -> Span:
        """Return what ``count`` of them take."""
        return Span(count * self.low, count * self.high)

    @property
    def words(self) -> str:
        """Show both ends, or one where they look the same."""
        return span_words([self.low, self.high])


@dataclass(frozen=True)
class Part:
    """Cells of a row on one data set, or encoders, and what the missing ones take."""

    spec: str
    name: str
    dataset: str
    cells: int
    missing: int
    failed: int = 0
    each: Span | None = None
    """Seconds of the device: those of a record, divided by the cells that ran at once.

    Of the row itself, or of one that does the same work on these data in any of the
    specs; ``None`` where such a device has run neither."""
    elsewhere: bool = False
    """Runs on a CPU whatever device the others are run on."""

    @property
    def left(self) -> Span | None:
        """What the missing ones take."""
        return None if self.each is None else self.each.times(self.missing)


def parts_of(
    specs: Sequence[tuple[Spec, Sequence[Record]]],
    *,
    on_gpu: bool,
    encoders: str | Path = "encoders",
) -> list[Part]:
    """Return the parts of specs: rows by data set, then encoders to be trained.

    What several specs ask for is missing once, in the first of them.
    """
    asked: set[str] = set()
    known = [(spec, recorded(records)) for spec, records in specs]
    times = Times(on_gpu)
    for spec, records in known:
        times.learn(cells_of(spec), records)
    return [
        part
        for spec, records in known
        for part in _of_spec(spec, records, times, Path(encoders), asked)
    ]


def _of_spec(
    spec: Spec,
    known: Mapping[str, Record],
    times: Times,
    encoders: Path,
    asked: set[str],
) -> list[Part]:
    rows: dict[str, list[Cell]] = {}
    for cell in cells_of(spec):
        rows.setdefault(cell.row.name, []).append(cell)
    sharing = [cell for cell in cells_of(spec) if cell.row.encoder == "shared"]
    return [
        *(
            part
            for name, cells in rows.items()
            for part in _row(spec.name, name, cells, known, times, asked)
        ),
        *_encoders(spec.name, sharing, known, times, encoders, asked),
    ]


@dataclass
class Times:
    """Seconds that such a device was busy with recorded cells, and with encoders."""

    on_gpu: bool
    cells: dict[str, list[float]] = field(default_factory=dict)
    alike: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """By work and data set."""
    encoders: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """By work and data set."""

    def learn(self, cells: Sequence[Cell], known: Mapping[str, Record]) -> None:
        """Remember what took how long; failures and other devices say nothing."""
        for cell in cells:
            record = known.get(cell.id)
            if record is None or failed(record):
                continue
            if record.ran_on_gpu != (self.on_gpu and not cell.row.keeps_to_cpu):
                continue
            seconds = record.seconds["total"] / record.extra.get("jobs", 1)
            self.cells.setdefault(cell.id, []).append(seconds)
            self.alike.setdefault(_work(cell), []).append(seconds)
            if "shared_encoder" in record.seconds:
                seconds = record.seconds["shared_encoder"]
                self.encoders.setdefault(_encoder_work(cell), []).append(seconds)

    def of_cells(self, cells: Sequence[Cell]) -> Span | None:
        """Return what one of a row's cells takes, if the row or one like it was run."""
        own = [s for cell in cells for s in self.cells.get(cell.id, ())]
        return _span(own or self.alike.get(_work(cells[0]), ()))

    def of_encoders(self, cells: Sequence[Cell]) -> Span | None:
        """Return what the encoder of some cells takes, if one like it was trained."""
        return _span(self.encoders.get(_encoder_work(cells[0]), ()))


def _work(cell: Cell) -> tuple[str, str]:
    return cell.work, cell.task.dataset


def _encoder_work(cell: Cell) -> tuple[str, str]:
    return cell.encoder_work, cell.task.dataset


def _span(seconds: Sequence[float]) -> Span | None:
    return Span(min(seconds), max(seconds)) if seconds else None


def _row(
    spec: str,
    name: str,
    cells: Sequence[Cell],
    known: Mapping[str, Record],
    times: Times,
    asked: set[str],
) -> list[Part]:
    """Return the parts of a row, one a data set."""
    parts = []
    for dataset, here in _by_dataset(cells).items():
        bad = sum(failed(known[cell.id]) for cell in here if cell.id in known)
        missing = _new([c.id for c in here if c.id not in known], asked)
        each = times.of_cells(here)
        elsewhere = times.on_gpu and here[0].row.keeps_to_cpu
        part = Part(spec, name, dataset, len(here), missing, bad, each, elsewhere)
        parts.append(part)
    return parts


def _encoders(
    spec: str,
    sharing: Sequence[Cell],
    known: Mapping[str, Record],
    times: Times,
    folder: Path,
    asked: set[str],
) -> list[Part]:
    """Return the encoders that cells share: missing where one of these is."""
    place = Place(encoders=folder)
    parts = []
    for dataset, here in _by_dataset(sharing).items():
        wanted = [encoder_folder(c, place) for c in here if c.id not in known]
        missing = _new([path.name for path in wanted if not path.exists()], asked)
        count = len({cell.encoder_id for cell in here})
        each = times.of_encoders(here)
        parts.append(Part(spec, ENCODERS, dataset, count, missing, 0, each))
    return parts


def _by_dataset(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.task.dataset, []).append(cell)
    return found


def _new(ids: Sequence[str], asked: set[str]) -> int:
    """Return how many of some runs no other has asked for, and remember them."""
    new = set(ids) - asked
    asked |= new
    return len(new)


# --- words --------------------------------------------------------------------------

HEADER = ("spec", "row", "data set", "missing", "seconds each", "seconds left")
NOTHING = "Nothing is missing."


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
            _missing(part),
            MISSING if part.each is None else part.each.words,
            MISSING if part.left is None else part.left.words,
        ]
        for part in open_parts
    ]
    return f"{markdown_grid(HEADER, lines)}\n\n{_sum(open_parts)}"


def _missing(part: Part) -> str:
    text = f"{part.missing} of {part.cells}"
    return f"{text}, {part.failed} failed" if part.failed else text


def _sum(parts: Sequence[Part]) -> str:
    """Say what all missing parts take, which nobody knows, and what failed."""
    here = [p for p in parts if not p.elsewhere]
    known = [part.left for part in here if part.missing and part.left is not None]
    unknown = sum(part.missing for part in here if part.left is None)
    on_cpu = sum(part.missing for part in parts if part.elsewhere)
    bad = sum(part.failed for part in parts)
    said = []
    if known:
        total = Span(sum(s.low for s in known), sum(s.high for s in known))
        more = f", and {unknown} runs that are like none recorded on one"
        said.append(f"Together {total.words} s of such a device{more * bool(unknown)}.")
    elif unknown:
        said.append(f"None of these {unknown} is like a run recorded on such a device.")
    if on_cpu:
        said.append(f"{many(on_cpu, 'cell')} more on a CPU, with seconds of a CPU.")
    if bad:
        said.append(f"{bad} failed; `denspu bench run --retry` runs them again.")
    return " ".join(said)
