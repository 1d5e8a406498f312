"""``DensPU()`` on 224-pixel grey images with the GPU's memory capped.

    python benchmarks/large_images.py --gigabytes 24

5,000 Fashion-MNIST training pictures enlarged to 224×224 (bilinear), 500 labelled
positives, 1,000 test pictures enlarged alike. What is measured is that it runs through,
its memory and its seconds.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from _shared import finish, grid, options, pu_of
from denspu import DensPU, load_dataset
from denspu.benchmark import measure, read_records, write_record

RECORDS = Path(__file__).parent / "records" / "large-images.jsonl"
SIZE, N_TRAIN, N_TEST, N_LABELED = 224, 5_000, 1_000, 500


def enlarged(images: Any) -> Any:
    """Return bytes of shape N×224×224."""
    small = torch.from_numpy(np.ascontiguousarray(images))[:, None].float()
    parts = [
        F.interpolate(part, (SIZE, SIZE), mode="bilinear").round().byte()
        for part in small.split(500)
    ]
    return torch.cat(parts)[:, 0].numpy()


def run(args: argparse.Namespace) -> None:
    full = load_dataset("fashion-mnist")
    rng = np.random.default_rng(args.seed)
    rows = rng.choice(len(full.X_train), N_TRAIN, replace=False)
    benchmark = replace(
        full,
        name="fashion-mnist, 224 pixels",
        X_train=enlarged(full.X_train[rows]),
        y_train=full.y_train[rows],
        X_test=enlarged(full.X_test[:N_TEST]),
        y_test=full.y_test[:N_TEST],
    )
    pu = pu_of(benchmark, N_LABELED, args.seed)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(args.gigabytes * 1e9 / total)
    torch.cuda.reset_peak_memory_stats()
    model = DensPU(random_state=args.seed, max_seconds=args.max_seconds, verbose=1)
    variant = f"default, {args.gigabytes:g} GB, at most {args.max_seconds:g} s"
    record = measure(
        model, pu, benchmark, method="dens_pu", variant=variant, seed=args.seed
    )
    extra = {
        **record.extra,
        "peak_gpu_bytes": torch.cuda.max_memory_reserved(),
        "parts_a_step": model.encoder_.n_parts_,
    }
    write_record(replace(record, extra=extra), args.out)
    print(model.stages_, dict(record.metrics), sep="\n")


def table(out: Path) -> str:
    """Return the Markdown table of the records."""
    lines = []
    for record in read_records(out):
        cells = [
            f"{100 * record.metrics[m]:.1f}" for m in ("accuracy", "f1", "roc_auc")
        ]
        facts = record.extra["stages"]["encode"]
        lines.append(
            [
                f"{record.dataset}, {record.variant}",
                *cells,
                f"{record.extra['peak_gpu_bytes'] / 1e9:.1f} GB",
                facts["batch_size"],
                f"{record.seconds['total']:.0f}",
            ]
        )
    header = "run|accuracy|F1|ROC AUC|peak GPU memory|batch|seconds"
    return grid(header.split("|"), lines)


def main() -> None:
    parser = options(__doc__, RECORDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gigabytes", type=float, default=24)
    parser.add_argument("--max-seconds", type=float, default=120)
    finish(parser, run, table)


if __name__ == "__main__":
    main()
