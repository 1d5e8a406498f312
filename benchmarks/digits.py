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

from denspu import load_dataset, make, make_pu
from denspu.benchmark import (
    Record,
    device_name,
    measure,
    read_records,
    summarize,
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
    pu = make_pu(
        benchmark.X_train,
        benchmark.y_train,
        positive=benchmark.positive,
        n_labeled=0.2,
        random_state=seed,
    )
    return benchmark, pu


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
    lines = ["| method | seeds | F1 | accuracy | ROC AUC |", "|---|---|---|---|---|"]
    groups: dict[str, list[Record]] = {}
    for record in read_records(out):
        groups.setdefault(record.method, []).append(record)
    for method in sorted(groups, key=["isolation_forest", *METHODS].index):
        records = groups[method]
        name = f"{method} ({records[0].variant})"
        cells = ["{:.3f} ± {:.3f}".format(*summarize(records, m)[:2]) for m in SHOWN]
        lines.append(f"| {name} | {len(records)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--out", type=Path, default=RECORDS)
    parser.add_argument("--table", action="store_true", help="only print the table")
    args = parser.parse_args()
    done = {(r.method, r.seed) for r in read_records(args.out)}
    for seed in [] if args.table else args.seeds:
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
    print(table(args.out))


if __name__ == "__main__":
    main()
