"""Keep what the walk-throughs found: figures with labels, and estimates without.

    python benchmarks/walkthroughs.py images table text

Each folder holds the input made by ``examples/make_data.py``, its ``truth.csv``, and
the folder ``run`` that ``denspu fit`` wrote as told in docs/walkthroughs.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from denspu.benchmark import Record, device_name, write_record
from fit_images import FIGURES, called

RECORDS = Path(__file__).parent / "records" / "walkthroughs.jsonl"


def record_of(top: Path) -> Record:
    """Return the record of one finished run."""
    facts = json.loads((top / "run" / "run.json").read_text("utf-8"))
    words = ["--model", "run/model", "--labels", "truth.csv", "--json"]
    told, _ = called("evaluate", *words, cwd=top)
    compared = json.loads(told)["figures"]
    return Record(
        dataset=f"walk-through, {facts['kind']}",
        method=facts["method"],
        variant="denspu fit",
        n_labeled=facts["n_positive"],
        seed=facts["settings"].get("seed", 0),
        metrics={name: compared[name]["value"] for name in FIGURES},
        estimates={name: compared[name]["estimate"] for name in FIGURES},
        seconds=facts["seconds"],
        device=device_name("cpu"),
        extra={
            "compared": compared,
            "command_of_the_fit": facts["command"],
            "n_held_out": facts["n_held_out"],
            "n_unlabeled": facts["n_unlabeled"],
            "n_called": facts["n_called"],
            "prior": facts["prior"],
            "skipped": len(facts["skipped"]),
            "copies": len(facts["copies"]),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=RECORDS)
    args = parser.parse_args()
    for folder in args.folders:
        record = record_of(folder.resolve())
        write_record(record, args.out)
        print(record.dataset, dict(record.metrics), dict(record.estimates), sep="\n")


if __name__ == "__main__":
    main()
