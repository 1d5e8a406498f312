"""``DensPU()`` with its defaults on the paper's two image sets and an untuned task.

    python benchmarks/recipe.py --task cifar10 --seeds 0 1 2 3 4
    python benchmarks/recipe.py --table

The split of the paper's Table 1: 1,000 labelled positives, the rest of the training
part unlabelled, the test set whole. No class prior is given. ``cats-and-dogs`` is a
task on which nothing was tuned: CIFAR-10's cats and dogs, 500 labelled. Settings were
chosen on a validation part of the training data with seeds from 10 on; seeds 0-4 and
the test set are for these records. Seeds that are recorded are skipped, and none is
begun that would not end within ``--budget`` seconds (judged by the longest so far).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from _shared import finish, grid, grouped, options, pu_of, within
from denspu import DensPU, load_dataset, save
from denspu.benchmark import measure, read_records, write_record

HERE = Path(__file__).parent
RECORDS = HERE / "records" / "recipe.jsonl"
SHOWN = ("accuracy", "f1", "roc_auc")


@dataclass(frozen=True)
class Task:
    """A data set, its positive classes and the number of labels."""

    dataset: str
    n_labeled: int
    positive: tuple[int, ...] | None = None
    """``None``: the paper's."""


TASKS = {
    "cifar10": Task("cifar10", 1_000),
    "fashion-mnist": Task("fashion-mnist", 1_000),
    "cats-and-dogs": Task("cifar10", 500, (3, 5)),
}


def run_one(name: str, seed: int, args: argparse.Namespace) -> None:
    """Fit the default on one seed, write the record, keep the encoder."""
    task = TASKS[name]
    benchmark = load_dataset(task.dataset)
    if task.positive is not None:
        benchmark = replace(benchmark, positive=task.positive)
    pu = pu_of(benchmark, task.n_labeled, seed)
    model = DensPU(
        random_state=seed,
        device=args.device,
        max_seconds=args.max_seconds,
        verbose=args.verbose,
    )
    record = measure(
        model, pu, benchmark, method="dens_pu", variant=args.variant, seed=seed
    )
    print(model.stages_, dict(record.metrics), record.extra["oracle"], sep="\n")
    record = replace(record, dataset=name)
    write_record(record, args.out)
    if args.keep is not None:
        save(model.encoder_, args.keep / f"{name}-{seed}")


def run(args: argparse.Namespace) -> None:
    records = [r for r in read_records(args.out) if r.variant == args.variant]
    done = {(r.dataset, r.seed) for r in records}
    missing = [seed for seed in args.seeds if (args.task, seed) not in done]
    for seed in within(args.budget, missing):
        run_one(args.task, seed, args)


def table(out: Path) -> str:
    """Return the Markdown table of the records."""
    lines = []
    groups = grouped(read_records(out), lambda r: (r.dataset, r.variant))
    for (task, variant), records in groups.items():
        cells = [percent([r.metrics[metric] for r in records]) for metric in SHOWN]
        guess = percent([r.estimates["estimated_accuracy"] for r in records])
        prior = percent([r.estimates["prior_in_unlabeled"] for r in records])
        true = np.mean(
            [1 - r.extra["oracle"]["negative_share_of_unlabeled"] for r in records]
        )
        seconds = np.mean([r.seconds["total"] for r in records])
        title = task if variant == "default" else f"{task}, {variant}"
        about = [guess, f"{prior} ({100 * true:.1f})", f"{seconds:.0f}"]
        lines.append([title, len(records), *cells, *about])
    header = "task|seeds|accuracy|F1|ROC AUC|accuracy without labels|prior in U (true)"
    return grid([*header.split("|"), "seconds"], lines)


def percent(values: list[float]) -> str:
    """Return mean and standard deviation over seeds, in percent."""
    mean = f"{100 * np.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {100 * np.std(values, ddof=1):.2f}"


def main() -> None:
    parser = options(__doc__, RECORDS, seeds=[0], device="auto", budget=True)
    parser.add_argument("--task", choices=list(TASKS), default="cifar10")
    parser.add_argument("--variant", default="default")
    parser.add_argument("--max-seconds", type=float, default=None)
    parser.add_argument("--keep", type=Path, help="folder for the trained encoders")
    parser.add_argument("--verbose", type=int, default=1)
    finish(parser, run, table)


if __name__ == "__main__":
    main()
