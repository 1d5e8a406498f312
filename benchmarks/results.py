"""Write docs/results.md from the specs and their records, or check that it agrees.

python benchmarks/results.py [--check]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from denspu.benchmark import read_records
from denspu.benchmark.results import results_page
from denspu.benchmark.spec import load_spec
from denspu.benchmark.tables import tables_of, to_markdown

HERE = Path(__file__).parent
SPECS = HERE / "specs"
RECORDS = HERE / "records" / "specs"
PAGE = HERE.parent / "docs" / "results.md"


def ablation(records: Path) -> str:
    """Return the table of what each part of the default contributes."""
    spec = load_spec(SPECS / "ablation.toml")
    [table] = tables_of(spec, read_records(records / "ablation.jsonl"))
    return to_markdown(table)


def outdated() -> bool:
    """Tell whether the page disagrees with the records."""
    if not PAGE.exists():
        return True
    return PAGE.read_text("utf-8") != results_page(SPECS, RECORDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        raise SystemExit("out of date: docs/results.md" if outdated() else 0)
    PAGE.write_text(results_page(SPECS, RECORDS), "utf-8")


if __name__ == "__main__":
    main()
