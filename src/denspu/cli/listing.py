"""Registry and data facts as JSON or as tables for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich import box
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
    "refiner": "Refiners  first labels → f",
    "prior": "Class priors",
}

SHORT_COLUMNS = {"key", "name", "labels", "scenario", "here", "train / test", "image"}
YES_NO = {True: "yes", False: "no"}


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
    names, rows = ["key", "what it does, and where it comes from"], []
    rooms_with_choice = any(e.inputs != ("embedding",) for e in entries)
    for e in entries:
        paper = f"\n[dim]{e.paper}[/dim]" if e.paper else ""
        row = [e.key, f"{e.summary}{paper}"]
        if rooms_with_choice:
            row.append(", ".join(e.inputs))
        if kind == "method":
            row.append(_needs(e))
        rows.append(row)
    names += ["takes"] if rooms_with_choice else []
    names += ["assumes, needs, uses"] if kind == "method" else []
    return _plain_table(TITLES[kind], names, rows)


def _needs(entry: Entry) -> str:
    """Return a method's facts in a few words."""
    words = [
        entry.assumption,
        None if entry.scenario == "any" else entry.scenario,
        "a prior" if entry.needs_prior else None,
        "a network" if entry.deep else None,
        "known negatives" if entry.uses_known_negatives else None,
    ]
    return ", ".join(word for word in words if word)


def _plain_table(
    title: str, names: Sequence[str], rows: Iterable[Sequence[str]]
) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
    )
    for name in names:
        table.add_column(
            name,
            style="cyan" if name == names[0] else None,
            no_wrap=name in SHORT_COLUMNS,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*row)
    return table


def data_table(facts: Iterable[dict[str, Any]], home: Path) -> Table:
    """Return the data sets as a table."""
    rows = [
        [
            row["name"],
            YES_NO[row["present"]],
            f"{row['n_train']:,} / {row['n_test']:,}",
            "×".join(map(str, row["shape"])),
            ", ".join(str(row["classes"][c]) for c in row["positive"]),
            row["licence"],
        ]
        for row in facts
    ]
    names = ("name", "here", "train / test", "image", "positive classes", "licence")
    return _plain_table(f"Data sets (cache: {home})", names, rows)
