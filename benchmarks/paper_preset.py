"""Run the paper's recipe to the letter and record its stages' figures.

    python benchmarks/paper_preset.py --dataset cifar10 --seeds 0 1 2
    python benchmarks/paper_preset.py --dataset cifar10 --seeds 0 1 2 --no-plateau
    python benchmarks/paper_preset.py --table

The split is the paper's Table 1: 1,000 labelled positives, the rest unlabelled, the
test set whole. ``--no-plateau`` trains the classifier for all 200 epochs. Seeds that
are recorded are skipped, and none is begun that would not end within ``--budget``
seconds (judged by the longest so far).
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from pathlib import Path

from _shared import finish, grid, options, pu_of, spreads, within
from denspu import DensPU, load_dataset
from denspu.benchmark import measure, read_records, write_record
from denspu.exceptions import DensPUWarning

RECORDS = Path(__file__).parent / "records" / "paper-preset.jsonl"
N_LABELED = 1_000
CLAIMED = {  # Table 2: accuracy, F1, and "AUC", which is balanced accuracy
    "fashion-mnist": (95.73, 94.80, 96.00),
    "cifar10": (93.63, 91.96, 93.22),
}


METRICS = ("accuracy", "f1", "roc_auc", "balanced_accuracy")
VARIANTS = {False: "paper", True: "paper, all 200 epochs"}


def run(args: argparse.Namespace) -> None:
    dataset, out, variant = args.dataset, args.out, VARIANTS[args.no_plateau]
    benchmark = load_dataset(dataset)
    records = [r for r in read_records(out) if r.variant == variant]
    done = {r.seed for r in records if r.dataset == dataset}
    for seed in within(args.budget, [s for s in args.seeds if s not in done]):
        pu = pu_of(benchmark, N_LABELED, seed)
        model = DensPU(preset="paper", random_state=seed, device=args.device, verbose=1)
        if args.no_plateau:
            model.set_params(classifier="vgg16", classifier__patience=None)
        record = measure(
            model, pu, benchmark, method="dens_pu", variant=variant, seed=seed
        )
        write_record(record, out)
        print(model.stages_, record.extra["oracle"], dict(record.metrics), sep="\n")


def table(out: Path) -> str:
    """Return the Markdown table of the records beside the paper's claims."""
    lines = []
    every = read_records(out)
    for (dataset, claimed), variant in product(CLAIMED.items(), VARIANTS.values()):
        records = [r for r in every if (r.dataset, r.variant) == (dataset, variant)]
        if not records:
            continue
        oracle = [r.extra["oracle"] for r in records]
        auc, purity, base = (
            100 * sum(o[key] for o in oracle) / len(oracle)
            for key in ("boundary_auc", "purity", "negative_share_of_unlabeled")
        )
        lines.append(
            [
                f"{dataset}, {variant}",
                len(records),
                f"{auc:.1f}",
                f"{purity:.1f} ({base:.1f})",
                *spreads(records, METRICS, digits=1, unit=100),
                " / ".join(f"{c:.2f}" for c in claimed),
            ]
        )
    header = "data set, variant|seeds|boundary AUC on U|purity of Ñ (base rate)|"
    header += "accuracy|F1|ROC AUC|balanced acc.|claimed acc. / F1 / balanced acc."
    return grid(header.split("|"), lines)


def main() -> None:
    parser = options(__doc__, RECORDS, seeds=[0], device="auto", budget=True)
    parser.add_argument("--dataset", choices=list(CLAIMED), default="cifar10")
    parser.add_argument("--no-plateau", action="store_true")
    warnings.simplefilter("always", DensPUWarning)
    finish(parser, run, table)


if __name__ == "__main__":
    main()
