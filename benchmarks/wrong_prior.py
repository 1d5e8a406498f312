"""What a prior that is told wrong costs, on a validation part of the digits.

    python benchmarks/wrong_prior.py

The share of positives told to a method is the true one times a factor; our default is
also run without. Labels are given at random or with a bias, as in the spec sar-digits.
A sixth of the training rows is put aside to judge on, the seeds are not those of a
recorded comparison, and the test set is not opened.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from _shared import finish, grid, options, pu_of
from denspu import load_dataset, make
from denspu.benchmark import Record, measure, read_records, write_record
from denspu.benchmark.tables import Value
from denspu.exceptions import DensPUWarning
from vpu_settings import parted

RECORDS = Path(__file__).parent / "records" / "wrong-prior.jsonl"
FACTORS = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5)
METHODS = {"dens_pu": (None, *FACTORS), "nnpu": FACTORS}
"""Factors of each; None: not told."""
MECHANISMS = {"scar": "at random", "sar": "biased"}
SEEDS = (10, 11, 12, 13, 14)
LABELED = 0.2

Key = tuple[str, float | None, str, int]


def key(record: Record) -> Key:
    """Return what tells a run apart: method, factor, mechanism, seed."""
    at = record.extra
    return record.method, at["factor"], at["mechanism"], record.seed


def run_one(wanted: Key, out: Path) -> None:
    """Fit one method once and record it."""
    method, factor, mechanism, seed = wanted
    data = parted(load_dataset("digits"), seed)
    pu = pu_of(data, LABELED, seed, mechanism=mechanism)
    given = {} if factor is None else {"prior": factor * pu.oracle.prior}
    model = make(method, random_state=seed, device="cpu", **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)  # that P and U say otherwise
        record = measure(model, pu, data, method=method, variant=method, seed=seed)
    extra = {"factor": factor, "mechanism": mechanism, "prior": pu.oracle.prior}
    write_record(replace(record, extra=extra), out)


def table(out: Path = RECORDS) -> str:
    """Return the Markdown table of the records."""
    found: dict[tuple[str, float | None, str], list[float]] = defaultdict(list)
    for record in read_records(out):
        method, factor, mechanism, _ = key(record)
        found[method, factor, mechanism].append(100 * record.metrics["f1"])
    columns = [(m, kind) for kind in MECHANISMS for m in METHODS]
    titles = [f"{method}, {MECHANISMS[kind]}" for method, kind in columns]
    lines = []
    for factor in (None, *FACTORS):
        name = "none" if factor is None else f"{factor:g} × the true one"
        cells = [
            Value(tuple(values)).words
            if (values := found.get((method, factor, kind)))
            else "–"
            for method, kind in columns
        ]
        lines.append([name, *cells])
    return grid(["prior told", *titles], lines)


def run(args: argparse.Namespace) -> None:
    done = {key(record) for record in read_records(args.out)}
    for seed in args.seeds:
        for method in args.methods:
            for factor in METHODS[method]:
                for mechanism in MECHANISMS:
                    wanted = (method, factor, mechanism, seed)
                    if wanted not in done:
                        run_one(wanted, args.out)
                        print(*wanted, flush=True)


if __name__ == "__main__":
    parser = options(__doc__, RECORDS, seeds=SEEDS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    finish(parser, run, table)
