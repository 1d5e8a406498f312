"""What each stage and ingredient of the recipe contributes, on kept encoders.

    python benchmarks/recipe.py --task cifar10 --seeds 0 1 2 --keep encoders
    python benchmarks/ablation.py --task cifar10 --seeds 0 1 2 --encoders encoders

Every variant of a seed starts from the same trained encoder (``recipe.py --keep``), so
that one thing differs. ``--group`` chooses what is run; in the order of what it teaches
for its GPU seconds (H200, CIFAR-10, one seed):

* ``boundary``: every densifier with the Isolation Forest, every detector without one,
  and the paper's autoencoder in place of the encoder; AUC on U. About 2 s each, 20 s
  for the autoencoder.
* ``ending``: the paper's ending (Ñ and one classifier) on the contrastive embedding,
  and refinement on the embedding alone. About 5 to 30 s each.
* ``refine``: each ingredient of the refinement switched off. About 35 to 75 s each.
  With all of them it is the run that trained the encoder (``recipe.py``), so that
  record stands in the table.
* ``labels``: 100, 250, 500, 1,000 and 3,000 labelled positives on an encoder trained
  without labels (``recipe.py --keep ... --positive-weight 0``). About 75 s each.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn.frozen import FrozenEstimator

from denspu import DensPU, load_dataset, make_pu
from denspu._registry import registry
from denspu.benchmark import Record, measure, read_records, write_record
from denspu.encoders import CAEEncoder, ContrastiveEncoder
from denspu.exceptions import DensPUWarning
from recipe import TASKS, Task, percent

RECORDS = Path(__file__).parent / "records" / "ablation.jsonl"
WHOLE = Path(__file__).parent / "records" / "recipe.jsonl"
CHEAP_ENDING = {"selector": "by_score", "classifier": "logistic"}

BOUNDARY: dict[str, dict[str, Any]] = {
    **{
        f"isolation_forest on {key}": {
            "densifier": key,
            "detector": "isolation_forest",
            **CHEAP_ENDING,
        }
        for key in registry().of_kind("densifier")
    },
    **{
        f"{key} alone": {"densifier": "none", "detector": key, **CHEAP_ENDING}
        for key in registry().of_kind("detector")
        if key not in ("isolation_forest", "density_ratio")
    },
    "density_ratio": dict(CHEAP_ENDING),
    "autoencoder instead, isolation_forest on midpoint": {
        "encoder": CAEEncoder(),
        "densifier": "midpoint",
        "detector": "isolation_forest",
        **CHEAP_ENDING,
    },
    "autoencoder instead, density_ratio": {"encoder": CAEEncoder(), **CHEAP_ENDING},
}
ENDING: dict[str, dict[str, Any]] = {
    "paper's ending, logistic on P and as many far negatives": {
        "densifier": "midpoint",
        "detector": "isolation_forest",
        **CHEAP_ENDING,
    },
    "refined on the embedding": {"refiner": "embedding"},
}
REFINE: dict[str, dict[str, Any]] = {
    "without P against U": {"ratio_epochs": 0},
    "without the risk": {"risk_epochs": 0},
    "without smoothing": {"smooth": 0},
    "one round": {"rounds": 1},
    "two rounds": {"rounds": 2},
    "without weights": {"weighted": False},
    "without mixup": {"mixup": False},
    "without averaged weights": {"ema_decay": None},
}
GROUPS = ("boundary", "ending", "refine", "labels")
LABELS = (100, 250, 500, 1_000, 3_000)


def variants(group: str) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the settings of DensPU for each variant of a group."""
    if group == "refine":
        build = registry().get("network", "refiner").build
        return {
            name: lambda options=options: {"refiner": build(**options)}
            for name, options in REFINE.items()
        }
    chosen = {"boundary": BOUNDARY, "ending": ENDING}[group]
    return {name: lambda s=settings: dict(s) for name, settings in chosen.items()}


def run_one(
    args: argparse.Namespace, seed: int, variant: str, settings: dict[str, Any], n: int
) -> Record:
    """Fit one variant on one seed's encoder and return the record."""
    task: Task = TASKS[args.task]
    benchmark = load_dataset(task.dataset)
    positive = task.positive or benchmark.positive
    benchmark = replace(benchmark, positive=positive)
    pu = make_pu(
        benchmark.X_train,
        benchmark.y_train,
        positive=positive,
        n_labeled=n,
        random_state=seed,
    )
    if "encoder" not in settings:
        folder = args.encoders / f"{args.task}-{seed}"
        settings["encoder"] = FrozenEstimator(ContrastiveEncoder.load(folder))
    model = DensPU(random_state=seed, verbose=0, **settings)
    record = measure(model, pu, benchmark, method="dens_pu", variant=variant, seed=seed)
    return replace(record, dataset=args.task)


def run(args: argparse.Namespace) -> None:
    done = {(r.dataset, r.variant, r.seed) for r in read_records(args.out)}
    task = TASKS[args.task]
    began, longest = time.perf_counter(), 0.0
    if args.group == "labels":
        cells = [(f"{n} labelled", dict, n) for n in LABELS]
    else:
        cells = [
            (name, make, task.n_labeled) for name, make in variants(args.group).items()
        ]
    for seed in args.seeds:
        for name, make, n in cells:
            variant = f"{args.group}: {name}"
            if (args.task, variant, seed) in done:
                continue
            if time.perf_counter() - began + longest > args.budget:
                print(f"budget reached before {variant}, seed {seed}")
                return
            start = time.perf_counter()
            record = run_one(args, seed, variant, make(), n)
            write_record(record, args.out)
            longest = max(longest, time.perf_counter() - start)
            right = record.extra["oracle"].get("unlabeled_right", float("nan"))
            print(
                f"{variant}, seed {seed}: boundary AUC "
                f"{100 * record.extra['oracle']['boundary_auc']:.2f}, U right "
                f"{100 * right:.2f}, test accuracy "
                f"{100 * record.metrics['accuracy']:.2f}, "
                f"{time.perf_counter() - start:.1f} s",
                flush=True,
            )


def with_defaults(records: list[Record]) -> list[Record]:
    """Put the runs that trained the encoders before those without an ingredient."""
    refined = [r for r in records if r.variant.startswith("refine: ")]
    seeds = {(r.dataset, r.seed) for r in refined}
    whole = [
        replace(r, variant="refine: all ingredients")
        for r in read_records(WHOLE)
        if r.variant == "default" and (r.dataset, r.seed) in seeds
    ]
    first = records.index(refined[0]) if refined else len(records)
    return [*records[:first], *whole, *records[first:]]


def table(out: Path) -> str:
    """Return the Markdown table of the records."""
    lines = [
        "| data set | variant | seeds | boundary AUC on U | share of U right "
        "| test accuracy | test F1 | test AUC |",
        "|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in with_defaults(read_records(out)):
        groups.setdefault((record.dataset, record.variant), []).append(record)
    for (dataset, variant), records in groups.items():
        oracles = [r.extra["oracle"] for r in records]
        known = all("unlabeled_right" in oracle for oracle in oracles)
        cells = [
            percent([oracle["boundary_auc"] for oracle in oracles]),
            percent([o["unlabeled_right"] for o in oracles]) if known else "",
            *(
                percent([r.metrics[metric] for r in records])
                for metric in ("accuracy", "f1", "roc_auc")
            ),
        ]
        lines.append(
            f"| {dataset} | {variant} | {len(records)} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=list(TASKS), default="cifar10")
    parser.add_argument(
        "--group",
        choices=["boundary", "ending", "refine", "labels"],
        default="boundary",
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--encoders", type=Path, default=Path("encoders"))
    parser.add_argument("--out", type=Path, default=RECORDS)
    parser.add_argument("--budget", type=float, default=float("inf"))
    parser.add_argument("--table", action="store_true", help="only print the table")
    args = parser.parse_args()
    if not args.table:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DensPUWarning)
            run(args)
    print(table(args.out))


if __name__ == "__main__":
    main()
