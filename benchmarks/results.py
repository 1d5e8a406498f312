"""Write docs/results.md from the specs and their records, or check that it agrees.

    python benchmarks/results.py [--check]

Its pictures are drawn anew where the spec or its records changed: each file tells what
it was made from. A spec shows one: its metric over the number of labels where tasks
differ in it, else every seed. ``denspu bench figure`` draws all, also seconds against
accuracy, which say little where runs were made side by side.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from denspu.benchmark import Record, read_records
from denspu.benchmark.record import recorded
from denspu.benchmark.results import results_page, specs_in_order
from denspu.benchmark.spec import Spec
from denspu.benchmark.spec_file import load_spec
from denspu.benchmark.status import parts_of, status_markdown
from denspu.benchmark.tables import tables_of
from denspu.report.bench import CAPTIONS, draw, figure_names
from denspu.report.style import save

HERE = Path(__file__).parent
SPECS = HERE / "specs"
RECORDS = HERE / "records" / "specs"
PAGE = HERE.parent / "docs" / "results.md"
FOLDER = "images/bench"
NO_ENCODERS = HERE / "no-encoders"
"""The page tells of a machine that has none."""


def ablation(records: Path) -> str:
    """Return the table of what each part of the default contributes."""
    spec = load_spec(SPECS / "ablation.toml")
    [table] = tables_of(spec, read_records(records / "ablation.jsonl"))
    return table.markdown()


def ablation_labels(records: Path) -> str:
    """Return the tables of how many labels the default needs."""
    spec = load_spec(SPECS / "ablation-labels.toml")
    found = tables_of(spec, read_records(records / "ablation-labels.jsonl"))
    return "\n\n".join(f"**{t.title}**\n\n{t.markdown()}" for t in found)


def missing(records: Path) -> str:
    """Return the table of what has no record yet, and what it would take on a GPU."""
    paths = specs_in_order(SPECS)
    specs = [(load_spec(p), read_records(records / f"{p.stem}.jsonl")) for p in paths]
    return status_markdown(parts_of(specs, on_gpu=True, encoders=NO_ENCODERS))


@dataclass(frozen=True)
class Picture:
    """The main picture of a spec: what it shows, where it is, what it is made from."""

    spec: Spec
    records: Sequence[Record]
    name: str

    @property
    def link(self) -> str:
        """Where it is, seen from the page."""
        return f"{FOLDER}/{self.spec.name}-{self.name}.svg"

    @property
    def path(self) -> Path:
        return PAGE.parent / self.link

    @property
    def origin(self) -> str:
        files = SPECS / f"{self.spec.name}.toml", RECORDS / f"{self.spec.name}.jsonl"
        made_from = "".join(path.read_text("utf-8") for path in files)
        return f"made from {hashlib.sha256(made_from.encode()).hexdigest()[:16]}"

    def is_old(self) -> bool:
        known = self.path.read_text("utf-8") if self.path.exists() else ""
        return self.origin not in known


def pictures_of(spec: Spec, records: Sequence[Record]) -> list[Picture]:
    return [Picture(spec, records, name) for name in figure_names(spec, records)[:1]]


def captions_and_links(spec: Spec, records: Sequence[Record]) -> list[tuple[str, str]]:
    return [(CAPTIONS[p.name], p.link) for p in pictures_of(spec, records)]


def page() -> str:
    return results_page(SPECS, RECORDS, captions_and_links)


def old_pictures() -> list[Picture]:
    """Return the pictures that are not of the spec and records as they are."""
    found = []
    for path in sorted(SPECS.glob("*.toml")):
        spec, records = load_spec(path), read_records(RECORDS / f"{path.stem}.jsonl")
        if recorded(records):
            found += [p for p in pictures_of(spec, records) if p.is_old()]
    return found


def outdated() -> list[str]:
    """Return the files that disagree with the records: the page, pictures."""
    old = [picture.path.name for picture in old_pictures()]
    if not PAGE.exists() or PAGE.read_text("utf-8") != page():
        old = [PAGE.name, *old]
    return old


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        old = ", ".join(outdated())
        raise SystemExit(f"out of date: {old}" if old else 0)
    PAGE.write_text(page(), "utf-8")
    for picture in old_pictures():
        figure = draw(picture.name, picture.spec, picture.records)
        save(figure, picture.path, picture.origin)


if __name__ == "__main__":
    main()
