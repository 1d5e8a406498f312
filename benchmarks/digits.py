"""``DensPU()`` and others on handwritten digits, no prior given.

    python benchmarks/digits.py --seeds 0 1 2 3 4

Pixels in [0, 1], a 70/30 split stratified by digit, positive = even digits, 20 % of the
training positives labelled, the rest unlabelled. Each seed draws split and labels anew.
An Isolation Forest fitted on the labelled positives is the yardstick; nnPU, which
estimates its prior, and Elkan-Noto, which needs none, are the rivals. The default was
developed on validation parts of training data under seeds from 10 on
(docs/decisions.md), and so were defaults of the rivals (docs/methods.md); seeds 0-4 are
for this record.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from _shared import finish, grid, grouped, options, pu_of, spreads
from denspu import load_dataset, make
from denspu.benchmark import (
    Record,
    device_name,
    measure,
    read_records,
    write_record,
)
from denspu.data import Benchmark, PUDataset
from denspu.detectors import IsolationForest
from denspu.metrics import oracle_metrics

RECORDS = Path(__file__).parent / "records" / "digits.jsonl"
SHOWN = ("f1", "accuracy", "roc_auc")
METHODS = {"nnpu": "prior estimated", "elkan_noto": "default", "dens_pu": "default"}
"""Key and variant of each, in the table's order."""


def digits(seed: int) -> tuple[Benchmark, PUDataset]:
    """Return the split of one seed, one row of 64 pixels an image."""
    full = load_dataset("digits", split_seed=seed)
    benchmark = replace(
        full,
        X_train=full.X_train.reshape(len(full.X_train), -1) / 16,
        X_test=full.X_test.reshape(len(full.X_test), -1) / 16,
    )
    return benchmark, pu_of(benchmark, 0.2, seed)


def yardstick(benchmark: Benchmark, pu: PUDataset, seed: int) -> Record:
    """Measure an Isolation Forest on the positives alone, inlier = positive."""
    start = time.perf_counter()
    forest = IsolationForest(n_estimators=100, contamination=0.1, random_state=seed)
    forest.fit(pu.X[pu.labeled_index])
    seconds = time.perf_counter() - start
    y_test = np.isin(benchmark.y_test, benchmark.positive).astype(int)
    return Record(
        dataset="digits",
        method="isolation_forest",
        variant="on positives, contamination 0.1",
        n_labeled=pu.n_labeled,
        seed=seed,
        metrics=oracle_metrics(y_test, forest.decision_function(benchmark.X_test)),
        estimates={},
        seconds={"total": seconds},
        device=device_name("cpu"),
    )


def table(out: Path) -> str:
    """Return the Markdown table of the records."""
    groups = grouped(read_records(out), lambda r: r.method)
    return grid(
        ["method", "seeds", "F1", "accuracy", "ROC AUC"],
        [
            [f"{method} ({found[0].variant})", len(found), *spreads(found, SHOWN)]
            for method in ("isolation_forest", *METHODS)
            if (found := groups.get(method))
        ],
    )


def run(args: argparse.Namespace) -> None:
    done = {(r.method, r.seed) for r in read_records(args.out)}
    for seed in args.seeds:
        benchmark, pu = digits(seed)
        if ("isolation_forest", seed) not in done:
            write_record(yardstick(benchmark, pu, seed), args.out)
        for method, variant in METHODS.items():
            if (method, seed) in done:
                continue
            model = make(method, random_state=seed, device="cpu")
            record = measure(
                model, pu, benchmark, method=method, variant=variant, seed=seed
            )
            write_record(record, args.out)


if __name__ == "__main__":
    finish(options(__doc__, RECORDS, seeds=range(5)), run, table)
