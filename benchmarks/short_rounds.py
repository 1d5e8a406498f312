"""What few epochs are worth in one round or in several, on a validation part.

    python benchmarks/short_rounds.py cifar10 --rows 10000 --encoder-epochs 12

Under ``max_seconds`` the rounds of the network refiner have little time. This trains an
encoder and refines its labels with the same number of epochs divided in two ways, after
a ratio and a risk step as short as a minute allows. A sixth of the images drawn from
the training set is put aside to judge the network on; the seeds are not those of any
recorded comparison, and the test set is not opened.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator

from _shared import finish, grid, grouped, options, pu_of
from denspu import DensPU, load_dataset
from denspu._machine import resolve_device
from denspu.benchmark import Record, measure, read_records, write_record
from denspu.benchmark.tables import Value
from denspu.data import Benchmark
from denspu.encoders import ContrastiveEncoder
from denspu.refinement import NetworkRefiner
from vpu_settings import parted

RECORDS = Path(__file__).parent / "records" / "short-rounds.jsonl"
DIVISIONS = ((3, 3), (1, 9))
"""Rounds, and the epochs of each."""
BEFORE = {"ratio_epochs": 4, "risk_epochs": 2}
SEEDS = (10, 11, 12)
LABELED = 0.05


def some(full: Benchmark, rows: int, seed: int) -> Benchmark:
    """Return a part of the training images, divided into training and judging."""
    order = np.random.default_rng([seed, 12]).permutation(len(full.y_train))[:rows]
    part = replace(full, X_train=full.X_train[order], y_train=full.y_train[order])
    return parted(part, seed)


def run(args: argparse.Namespace) -> None:
    for seed in args.seeds:
        run_seed(args, seed)


def run_seed(args: argparse.Namespace, seed: int) -> None:
    """Train an encoder, and refine with each division that has no record."""
    done = {key(record) for record in read_records(args.out)}
    network = "resnet18" if resolve_device(args.device).type == "cuda" else "small"
    setting = (args.dataset, network, f"{args.rows:,}", str(args.encoder_epochs))
    missing = [
        (rounds, epochs)
        for rounds, epochs in DIVISIONS
        if (*setting, variant(rounds, epochs), seed) not in done
    ]
    if not missing:
        return
    data = some(load_dataset(args.dataset), args.rows, seed)
    pu = pu_of(data, LABELED, seed)
    encoder = ContrastiveEncoder(
        network=network,
        epochs=args.encoder_epochs,
        random_state=seed,
        device=args.device,
    ).fit(pu.X, pu.y)
    for rounds, epochs in missing:
        refiner = NetworkRefiner(rounds=rounds, epochs=epochs, tolerance=0, **BEFORE)
        model = DensPU(
            encoder=FrozenEstimator(encoder),
            refiner=refiner,
            random_state=seed,
            device=args.device,
        )
        name = variant(rounds, epochs)
        record = measure(model, pu, data, method="dens_pu", variant=name, seed=seed)
        extra = {
            "rows": args.rows,
            "encoder_epochs": args.encoder_epochs,
            "network": network,
            "unlabeled_right": record.extra["oracle"]["unlabeled_right"],
            "boundary_auc": record.extra["oracle"]["boundary_auc"],
            "epochs": model.refiner_.epochs_,
        }
        write_record(replace(record, extra=extra), args.out)
        print(f"{name}, seed {seed}: {record.metrics['accuracy']:.4f}", flush=True)


def variant(rounds: int, epochs: int) -> str:
    return f"{rounds} × {epochs} epochs"


def key(record: Record) -> tuple[str, str, str, str, str, int]:
    """Return what tells a run apart: set, network, images, epochs, division, seed."""
    at = record.extra
    rows, epochs = f"{at['rows']:,}", str(at["encoder_epochs"])
    return record.dataset, at["network"], rows, epochs, record.variant, record.seed


def table(out: Path = RECORDS) -> str:
    """Return the Markdown table of the records."""
    lines = []
    groups = grouped(read_records(out), lambda record: key(record)[:-1])
    for setting, records in sorted(groups.items()):
        accuracy = spread(r.metrics["accuracy"] for r in records)
        auc = spread(r.metrics["roc_auc"] for r in records)
        boundary = spread(r.extra["boundary_auc"] for r in records)
        lines.append([*setting, len(records), accuracy, auc, boundary])
    header = "set|network|images|encoder's epochs|rounds|seeds|accuracy|ROC AUC|"
    return grid([*header.split("|")[:-1], "boundary AUC"], lines)


def spread(shares: Iterable[float]) -> str:
    """Return mean and deviation in percent."""
    return Value(tuple(100 * share for share in shares)).words


def main() -> None:
    parser = options(__doc__, RECORDS, seeds=SEEDS, device="auto")
    parser.add_argument("dataset", choices=("cifar10", "fashion-mnist"))
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--encoder-epochs", type=int, default=12)
    finish(parser, run, table)


if __name__ == "__main__":
    main()
