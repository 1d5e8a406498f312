"""Write docs/results.md from the specs and their records, or check that it agrees.

python benchmarks/results.py [--check]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from denspu.benchmark.results import results_page

HERE = Path(__file__).parent
SPECS = HERE / "specs"
RECORDS = HERE / "records" / "specs"
PAGE = HERE.parent / "docs" / "results.md"


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
