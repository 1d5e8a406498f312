"""Which rate and mixup weight VPU's own held-out loss chooses, on a validation part.

    python benchmarks/vpu_settings.py cifar10 --device cuda

Those of VPU's paper belong to other networks than the ones all baselines of Table 2
share. This fits the row *VPU* of Table 2 with others. A sixth of the training images is
put aside; the rest is split into P and U under a seed that no recorded run uses. What
chooses is the least variational loss on the rows VPU holds out itself, as in its paper,
which knows no true label. Accuracy and ROC AUC on the images put aside show whether the
choice is a good one. The test set is not opened.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np

from _shared import finish, grid, options, pu_of
from denspu import load_dataset
from denspu.benchmark import Record, measure, read_records, write_record
from denspu.benchmark.spec import load_spec
from denspu.data import Benchmark
from denspu.methods.vpu import VPU

HERE = Path(__file__).parent
RECORDS = HERE / "records" / "vpu-settings.jsonl"
SPECS = {"cifar10": "table2-cifar10", "fashion-mnist": "table2-fmnist"}
RATES = (3e-5, 1e-4, 3e-4)
WEIGHTS = (0.03, 0.3, 3.0)
PUT_ASIDE = 1 / 6
HELD_OUT = "held_out"


def parted(full: Benchmark, seed: int) -> Benchmark:
    """Return a data set whose test part is a part of the training images."""
    order = np.random.default_rng([seed, 11]).permutation(len(full.y_train))
    aside, kept = np.split(order, [round(PUT_ASIDE * len(order))])
    return replace(
        full,
        X_train=full.X_train[kept],
        y_train=full.y_train[kept],
        X_test=full.X_train[aside],
        y_test=full.y_train[aside],
    )


def run(args: argparse.Namespace) -> None:
    """Fit VPU with each rate and mixup weight that has no record."""
    spec = load_spec(HERE / "specs" / f"{SPECS[args.dataset]}.toml")
    (row,) = (row for row in spec.rows if row.name == "VPU")
    data = parted(load_dataset(args.dataset), args.seed)
    pu = pu_of(data, int(spec.tasks[0].n_labeled), args.seed)
    done = [(r.dataset, r.seed, r.extra["parameters"]) for r in read_records(args.out)]
    for rate, weight in itertools.product(args.rates, args.weights):
        settings = {**row.parameters, "lr": rate, "mixup_weight": weight}
        if (args.dataset, args.seed, settings) in done:
            continue
        model = VPU(**settings, random_state=args.seed, device=args.device)
        name = f"rate {rate:g}, weight {weight:g}"
        record = measure(model, pu, data, method="vpu", variant=name, seed=args.seed)
        losses = model.history_.column(HELD_OUT)
        found = {"held_out_loss": min(losses), "epoch": int(np.argmin(losses)) + 1}
        extra = {"rate": rate, "weight": weight, "parameters": settings}
        write_record(replace(record, estimates=found, extra=extra), args.out)
        print(f"{name}: {found}, {record.metrics['accuracy']:.4f}", flush=True)


def order(record: Record) -> tuple[str, int, float]:
    return record.dataset, record.seed, record.estimates["held_out_loss"]


def table(out: Path = RECORDS) -> str:
    """Return the Markdown table of the records."""
    lines = []
    for record in sorted(read_records(out), key=order):
        at, found, figures = record.extra, record.estimates, record.metrics
        lines.append(
            [
                record.dataset,
                record.seed,
                f"{at['rate']:g}",
                f"{at['weight']:g}",
                f"{found['held_out_loss']:.4f}",
                found["epoch"],
                f"{100 * figures['accuracy']:.2f}",
                f"{100 * figures['roc_auc']:.2f}",
            ]
        )
    header = "set|seed|rate|mixup weight|least held-out loss|after epoch|accuracy|"
    return grid([*header.split("|")[:-1], "ROC AUC"], lines)


def main() -> None:
    parser = options(__doc__, RECORDS, device="auto")
    parser.add_argument("dataset", choices=SPECS)
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--weights", type=float, nargs="+", default=WEIGHTS)
    parser.add_argument("--seed", type=int, default=10)
    finish(parser, run, table)


if __name__ == "__main__":
    main()
