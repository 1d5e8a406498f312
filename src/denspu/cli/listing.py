"""Registry and data facts as JSON or as tables for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from denspu._registry import KINDS, Entry, registry
from denspu.exceptions import InvalidParameterError, did_you_mean

TITLES = {
    "method": "Methods",
    "encoder": "Encoders  x → z",
    "densifier": "Densifiers  z → denser z",
    "detector": "Detectors  z → normality",
    "selector": "Selectors  normality → Ñ",
    "classifier": "Classifiers  (x, targets) → f",
    "prior": "Class priors",
}


def chosen_entries(kind: str | None) -> list[Entry]:
    """Return all entries, or those of one kind."""
    if kind is not None and kind not in KINDS:
        raise InvalidParameterError(
            f"--kind {kind} must be one of {', '.join(KINDS)}."
            f"{did_you_mean(kind, KINDS)}"
        )
    return [entry for entry in registry() if kind in (None, entry.kind)]


def as_json(entries: Iterable[Entry]) -> str:
    """Return one JSON array, one object an entry."""
    return json.dumps([entry.facts() for entry in entries], indent=1)


def as_tables(entries: Sequence[Entry]) -> list[Table]:
    """Return one table a kind, in the order of the walk."""
    kinds = [kind for kind in KINDS if any(e.kind == kind for e in entries)]
    return [_table(kind, [e for e in entries if e.kind == kind]) for kind in kinds]


def _table(kind: str, entries: Sequence[Entry]) -> Table:
    table = Table(title=TITLES[kind], title_justify="left", title_style="bold")
    table.add_column("key", style="cyan", no_wrap=True)
    table.add_column("what it does")
    table.add_column("from")
    columns = {"takes": lambda e: ", ".join(e.inputs)}
    if kind == "method":
        columns["labels"] = lambda e: e.assumption or ""
        columns["scenario"] = lambda e: e.scenario or ""
        columns["prior"] = lambda e: "needed" if e.needs_prior else "not needed"
    for name in columns:
        table.add_column(name)
    for e in entries:
        facts = [show(e) for show in columns.values()]
        table.add_row(e.key, e.summary, e.paper or "", *facts)
    return table


def data_table(facts: Iterable[dict[str, Any]], home: Path) -> Table:
    """Return the data sets as a table."""
    table = Table(
        title=f"Data sets (cache: {home})", title_justify="left", title_style="bold"
    )
    for name in ("name", "here", "train", "test", "image", "positive classes"):
        table.add_column(name)
    table.add_column("licence")
    for row in facts:
        positive = ", ".join(str(row["classes"][c]) for c in row["positive"])
        table.add_row(
            row["name"],
            "yes" if row["present"] else "no",
            f"{row['n_train']:,}",
            f"{row['n_test']:,}",
            "×".join(map(str, row["shape"])),
            positive,
            row["licence"],
        )
    return table
