"""``denspu fit`` on a folder of picture files: seconds, pictures a second, memory.

    python examples/make_data.py images --out images
    python benchmarks/fit_images.py images --max-seconds 900

The command runs in a process of its own, on the CPU. Then ``denspu predict`` scores the
folder ``new``, and ``denspu evaluate`` compares the answers with ``truth.csv``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _shared import finish, grid, options
from denspu.benchmark import Record, device_name, read_records, write_record

RECORDS = Path(__file__).parent / "records" / "fit-images.jsonl"
FIGURES = ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "roc_auc")


def called(*words: str, cwd: Path) -> tuple[str, float]:
    """Run the command and return what it printed and its seconds."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "denspu", *words],
        cwd=cwd,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout, time.perf_counter() - start


def peak_of_children() -> int:
    """Return the most bytes that one finished process held."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def run(args: argparse.Namespace) -> Record:
    top = args.images.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "run"
        limit = [] if args.max_seconds is None else ["--max-seconds", args.max_seconds]
        words = ["--positive", "confirmed", "--unlabeled", "archive", "--device", "cpu"]
        _, seconds = called("fit", *words, *limit, "--out", str(out), cwd=top)
        peak = peak_of_children()
        facts = json.loads((out / "run.json").read_text("utf-8"))
        model = ["--model", str(out / "model")]
        answers = ["--out", str(Path(scratch) / "answers.csv"), "--json"]
        told, _ = called("predict", *model, "new", *answers, cwd=top)
        predicted = json.loads(told)
        told, _ = called("evaluate", *model, "--labels", "truth.csv", "--json", cwd=top)
        compared = json.loads(told)["figures"]
    n_read = facts["n_positive"] + facts["n_unlabeled"]
    return Record(
        dataset="fashion-mnist, PNG files",
        method=facts["method"],
        variant="denspu fit",
        n_labeled=facts["n_positive"],
        seed=0,
        metrics={name: compared[name]["value"] for name in FIGURES},
        estimates={name: compared[name]["estimate"] for name in FIGURES},
        seconds={**facts["seconds"], "total": seconds},
        device=device_name("cpu"),
        extra={
            "items": n_read,
            "skipped": len(facts["skipped"]),
            "copies": len(facts["copies"]),
            "read_a_second": n_read / facts["seconds"]["read"],
            "predicted_a_second": predicted["per_second"],
            "peak_bytes": peak,
            "max_seconds": args.max_seconds and float(args.max_seconds),
            "prior": facts["prior"],
        },
    )


def table(out: Path) -> str:
    """Return the last run as a table."""
    lines = []
    for record in read_records(out)[-1:]:
        extra: dict[str, Any] = record.extra
        lines.append(
            [
                f"{extra['items']:,}",
                f"{extra['skipped']:,}",
                extra["copies"],
                f"{extra['read_a_second']:,.0f}",
                f"{extra['predicted_a_second']:,.0f}",
                f"{extra['peak_bytes'] / 1e9:.2f} GB",
                f"{record.metrics['accuracy']:.3f}",
                f"{record.estimates['accuracy']:.3f}",
            ]
        )
    header = "files read|skipped|copies|read a second|scored a second|peak memory|"
    header += "accuracy on U|estimated without labels"
    return grid(header.split("|"), lines)


def main() -> None:
    parser = options(__doc__, RECORDS)
    parser.add_argument("images", type=Path, nargs="?", help="made by make_data.py")
    parser.add_argument("--max-seconds")
    finish(parser, lambda args: write_record(run(args), args.out), table)


if __name__ == "__main__":
    main()
