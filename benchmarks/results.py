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
from collections.abc import Iterator, Sequence
from pathlib import Path

from denspu.benchmark import Record, read_records
from denspu.benchmark.cells import recorded
from denspu.benchmark.results import results_page
from denspu.benchmark.spec import Spec, load_spec
from denspu.benchmark.tables import tables_of, to_markdown
from denspu.report.bench import CAPTIONS, draw, figure_names
from denspu.report.style import save

HERE = Path(__file__).parent
SPECS = HERE / "specs"
RECORDS = HERE / "records" / "specs"
PAGE = HERE.parent / "docs" / "results.md"
FOLDER = "images/bench"


def ablation(records: Path) -> str:
    """Return the table of what each part of the default contributes."""
    spec = load_spec(SPECS / "ablation.toml")
    [table] = tables_of(spec, read_records(records / "ablation.jsonl"))
    return to_markdown(table)


def shown(spec: Spec, records: Sequence[Record]) -> list[str]:
    """Return the names of the pictures of a spec that stand on the page."""
    return figure_names(spec, records)[:1]


def link(spec: Spec, name: str) -> str:
    """Return where a picture is, seen from the page."""
    return f"{FOLDER}/{spec.name}-{name}.svg"


def captions_and_links(spec: Spec, records: Sequence[Record]) -> list[tuple[str, str]]:
    return [(CAPTIONS[name], link(spec, name)) for name in shown(spec, records)]


def page() -> str:
    return results_page(SPECS, RECORDS, captions_and_links)


def old_pictures() -> Iterator[tuple[str, Spec, Path, str]]:
    """Yield name, spec, file and origin of each picture that is not of its records."""
    for path in sorted(SPECS.glob("*.toml")):
        spec, lines = load_spec(path), RECORDS / f"{path.stem}.jsonl"
        records = read_records(lines)
        if not recorded(records):
            continue
        made_from = path.read_text("utf-8") + lines.read_text("utf-8")
        origin = f"made from {hashlib.sha256(made_from.encode()).hexdigest()[:16]}"
        for name in shown(spec, records):
            picture = PAGE.parent / link(spec, name)
            known = picture.read_text("utf-8") if picture.exists() else ""
            if origin not in known:
                yield name, spec, picture, origin


def outdated() -> list[str]:
    """Return the files that disagree with the records: the page, pictures."""
    old = [path.name for _, _, path, _ in old_pictures()]
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
    for name, spec, path, origin in old_pictures():
        records = read_records(RECORDS / f"{spec.name}.jsonl")
        save(draw(name, spec, records), path, origin)


if __name__ == "__main__":
    main()
