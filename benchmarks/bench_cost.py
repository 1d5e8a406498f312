"""What captured steps and several cells at once save, on a sample of cells.

    python benchmarks/bench_cost.py benchmarks/specs/table2-cifar10.toml --jobs 10

The baselines of a spec (one seed, each with a share of its epochs) run three times on
the same machine: one at a time without captured steps, one at a time, and ``--jobs`` at
once. Starting processes and reading data count. Several processes share a GPU best
where NVIDIA's MPS is running; the record says whether it was.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from _shared import finish, grid, options
from denspu._machine import resolve_device
from denspu.benchmark import Record, device_name, read_records, write_record
from denspu.benchmark.runner import run_specs
from denspu.benchmark.spec import Row, Spec, load_spec
from denspu.training import loop

RECORDS = Path(__file__).parent / "records" / "bench-cost.jsonl"
EPOCHS = ("epochs", "estimator__epochs")


def sample(spec: Spec, share: float, seed: int) -> Spec:
    """Return the baselines that learn from pixels, with a share of their epochs."""
    rows = [
        shortened(row, share)
        for row in spec.rows
        if row.encoder == "own" and row.oracle == "no" and row.method != "dens_pu"
    ]
    return replace(spec, rows=tuple(rows), seeds=(seed,), reference=None)


def shortened(row: Row, share: float) -> Row:
    parameters = dict(row.parameters)
    for name in EPOCHS:
        if name in parameters:
            parameters[name] = max(2, round(share * parameters[name]))
    return replace(row, parameters=parameters)


@contextmanager
def no_capture() -> Iterator[None]:
    """Take every step as usual, in this process."""
    before, loop.WARM_UP = loop.WARM_UP, 10**9
    try:
        yield
    finally:
        loop.WARM_UP = before


def seconds_of(spec: Spec, args: argparse.Namespace, jobs: int) -> dict[str, float]:
    """Run the sample from nothing; return seconds in all and for each row."""
    with tempfile.TemporaryDirectory() as top:
        out = Path(top) / "records.jsonl"
        start = time.perf_counter()
        outcome = run_specs(
            [(spec, out)], device=args.device, jobs=jobs, encoders=top, verbose=0
        )
        total = time.perf_counter() - start
        records = read_records(out)
    for record in records:
        if "error" in record.extra:
            print(f"{record.variant}: {record.extra['error']}", flush=True)
    if outcome.failed:
        raise SystemExit(f"{outcome.failed} cells failed: nothing can be compared.")
    return {"total": total, **{r.variant: r.seconds["total"] for r in records}}


def run(args: argparse.Namespace) -> None:
    spec = sample(load_spec(args.spec), args.share, args.seed)
    device = str(resolve_device(args.device))
    first = replace(spec, rows=spec.rows[:1])
    with tempfile.TemporaryDirectory() as top:  # data read, libraries loaded
        run_specs([(first, Path(top) / "records.jsonl")], device=args.device, verbose=0)
    found: dict[str, dict[str, float]] = {}
    found["several at once"] = seconds_of(spec, args, args.jobs)
    print(f"{args.jobs} at once: {found['several at once']['total']:.1f} s", flush=True)
    found["one at a time"] = seconds_of(spec, args, 1)
    print(f"one at a time: {found['one at a time']['total']:.1f} s", flush=True)
    with no_capture():
        found["uncaptured"] = seconds_of(spec, args, 1)
    print(f"uncaptured: {found['uncaptured']['total']:.1f} s", flush=True)
    record = Record(
        dataset=spec.tasks[0].dataset,
        method="baselines",
        variant=f"{len(spec.rows)} rows, {100 * args.share:g} % of their epochs",
        n_labeled=int(spec.tasks[0].n_labeled),
        seed=args.seed,
        metrics={},
        estimates={},
        seconds={name: parts["total"] for name, parts in found.items()},
        device=device_name(device),
        extra={
            "spec": spec.name,
            "jobs": args.jobs,
            "mps": "CUDA_MPS_PIPE_DIRECTORY" in os.environ,
            "rows": found,
        },
    )
    write_record(record, args.out)


def table(out: Path = RECORDS) -> str:
    """Return the Markdown table of the records."""
    lines = []
    for record in read_records(out):
        plain = record.seconds["uncaptured"]
        cells = [
            f"{record.seconds[name]:.0f} s ({100 * record.seconds[name] / plain:.0f} %)"
            for name in ("one at a time", "several at once")
        ]
        several = f"{cells[1]}, {record.extra['jobs']} at once"
        what = [record.extra["spec"], record.variant, f"{plain:.0f} s"]
        lines.append([*what, cells[0], several])
    header = "spec|sample|one at a time, uncaptured|one at a time, captured|"
    return grid([*header.split("|")[:-1], "captured, several at once"], lines)


def main() -> None:
    parser = options(__doc__, RECORDS, device="auto")
    parser.add_argument("spec", type=Path)
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.05, help="of the epochs")
    parser.add_argument("--seed", type=int, default=10)
    finish(parser, run, table)


if __name__ == "__main__":
    main()
