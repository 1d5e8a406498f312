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
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator

from denspu import DensPU, load_dataset, make_pu
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


def run(args: argparse.Namespace, seed: int) -> None:
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
    pu = make_pu(
        data.X_train,
        data.y_train,
        positive=data.positive,
        n_labeled=LABELED,
        random_state=seed,
    )
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
    lines = [
        "| set | network | images | encoder's epochs | rounds | seeds | accuracy "
        "| ROC AUC | boundary AUC |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in read_records(out):
        groups[key(record)[:-1]].append(record)
    for setting, records in sorted(groups.items()):
        accuracy = spread(r.metrics["accuracy"] for r in records)
        auc = spread(r.metrics["roc_auc"] for r in records)
        boundary = spread(r.extra["boundary_auc"] for r in records)
        cells = [*setting, str(len(records)), accuracy, auc, boundary]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(shares: Iterable[float]) -> str:
    """Return mean and deviation in percent."""
    return Value(tuple(100 * share for share in shares)).words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", choices=("cifar10", "fashion-mnist"))
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--encoder-epochs", type=int, default=12)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=RECORDS)
    args = parser.parse_args()
    for seed in args.seeds:
        run(args, seed)
    print(table(args.out))


if __name__ == "__main__":
    main()
