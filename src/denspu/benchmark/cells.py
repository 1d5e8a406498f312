"""The cells of a spec: one row on one task with one seed, and who has been recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from denspu.benchmark.record import Record
from denspu.benchmark.spec import Row, Spec, Task
from denspu.exceptions import DataIntegrityError

ID_LENGTH = 16
SHAPES_NOTHING = (
    *("name", "tasks", "seeds", "printed", "note", "selection", "tuning", "heavy"),
    "group",
)
"""Settings that change how a table reads or a run is laid out, not what is measured."""
ADDED_LATER = {"cut": "own", "device": "any"}
"""Settings that earlier records do not know, and what these were run with."""
OF_LABELS = ("n_labeled", "share_of", "mechanism")
"""Settings of a task that change labels alone, where every row keeps its place."""


@dataclass(frozen=True)
class Cell:
    """One run."""

    task: Task
    row: Row
    seed: int
    shared_encoder: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the encoder it shares; empty where it has its own."""

    @property
    def id(self) -> str:
        """Say which run this is: all that shapes its result, and no titles."""
        facts = {
            "task": _facts(self.task),
            "row": _facts(self.row),
            "seed": self.seed,
        }
        if self.shared_encoder:
            facts["shared_encoder"] = self.shared_encoder
        return _hash(facts)

    @property
    def encoder_id(self) -> str:
        """Say which encoder it shares, whatever the task is called.

        One that looks at no label is the same however many there are, and whatever is
        positive where all rows are kept.
        """
        task = _facts(self.task)
        unseen = self.shared_encoder.get("positive_weight") == 0
        if unseen and self.task.scenario == "one-sample":
            whole = self.task.keep_positive == 1
            of_labels = (*OF_LABELS, "positive") if whole else OF_LABELS
            task = {k: v for k, v in task.items() if k not in of_labels}
        facts = {"task": task, "settings": self.shared_encoder}
        return f"{self.task.dataset}-{_hash(facts)}-{self.seed}"

    @property
    def work(self) -> str:
        """Say what it asks of a device, whatever labels it sees and what it is called.

        A prior that is told costs nothing, one that is estimated does.
        """
        row = self.row
        facts = [row.method, _plain(row.parameters), row.encoder, row.oracle]
        return _hash([*facts, row.prior == "estimate", row.device])

    @property
    def encoder_work(self) -> str:
        """Say the same of the encoder it shares."""
        settings = dict(self.shared_encoder)
        settings.pop("positive_weight", None)
        return _hash(settings)

    @property
    def alone(self) -> bool:
        """Tell whether others must wait: under ``max_seconds`` load changes results."""
        return any(name.endswith("max_seconds") for name in self.row.parameters)

    @property
    def encoder_alone(self) -> bool:
        """Tell the same of the encoder it shares."""
        return "max_seconds" in self.shared_encoder

    @property
    def title(self) -> str:
        """Name the cell for people."""
        return f"{self.row.name} · {self.task.name} · seed {self.seed}"


def cells_of(spec: Spec) -> list[Cell]:
    """Return all cells, seed by seed: a run that is cut off leaves whole rows."""
    return [
        Cell(
            task,
            row,
            seed,
            spec.shared_encoder if row.encoder == "shared" else {},
        )
        for seed in spec.seeds
        for task in spec.tasks
        for row in spec.rows_of(task)
        if row.seeds is None or seed in row.seeds
    ]


def spec_hash(spec: Spec) -> str:
    """Return a fingerprint of everything a spec says, wherever its file is."""
    return _hash(asdict_of(replace(spec, path="")))


def recorded(records: Iterable[Record]) -> dict[str, Record]:
    """Return the record of each cell: its first success, else its last failure."""
    found: dict[str, Record] = {}
    for record in records:
        cell = record.extra.get("cell")
        if cell is None:
            continue
        if "total" not in record.seconds:
            raise DataIntegrityError(
                f"The record of cell {cell} ({record.variant}, seed {record.seed}) has "
                "no total seconds. Take its line out of the file of records, or the "
                "file back from version control."
            )
        if cell in found and not failed(found[cell]):
            continue
        found[cell] = record
    return found


def failed(record: Record) -> bool:
    """Tell whether a record is of a run that raised."""
    return "error" in record.extra


def asdict_of(thing: Any) -> dict[str, Any]:
    """Return a dataclass as plain data."""
    return {name: _plain(getattr(thing, name)) for name in thing.__dataclass_fields__}


def _facts(thing: Task | Row) -> dict[str, Any]:
    facts = asdict_of(thing)
    return {
        name: value
        for name, value in facts.items()
        if name not in SHAPES_NOTHING and ADDED_LATER.get(name, ...) != value
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return asdict_of(value) if isinstance(value, Task | Row) else value


def _hash(facts: Any) -> str:
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]
