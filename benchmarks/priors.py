"""Class-prior estimators side by side, coverage of the intervals, memory.

    python benchmarks/priors.py --seeds 0 1 2 3 4        # estimators x data sets
    python benchmarks/priors.py --coverage 100           # fresh draws, 90 % intervals
    python benchmarks/priors.py --memory 100000          # one large table
    python benchmarks/priors.py --table

Digits: a 70/30 split stratified by digit, even digits are positive, 20 % of them
labelled. Breast cancer: the same with malignant rows, 30 % labelled. The overlapping
mixture: two round bells in ten features, two widths apart, prior 0.4, 30 % labelled.
The rare class: 200 positives in 20,000 rows, four widths from the others, 100 of them
labelled. The mixture of the coverage runs has a pure region: of the positives, 70 % lie
four widths away and the others among the negatives. The rule behind "auto" was chosen
on seeds from 10 on; fresh draws of the coverage runs start at seed 1000.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

from _shared import finish, grid, grouped, options, peak_memory
from denspu import make_pu
from denspu._registry import registry
from denspu.benchmark import (
    Record,
    device_name,
    read_records,
    summarize,
    write_record,
)
from denspu.exceptions import DensPUWarning
from denspu.priors import PriorReport, estimate_prior

RECORDS = Path(__file__).parent / "records" / "priors.jsonl"
FIRST_FRESH = 1_000
LEVEL = 0.9

Rows = tuple[Any, Any, float]
"""X, PU labels, true share of positives inside U."""


# --- data sets ----------------------------------------------------------------------


def real(X: Any, positive: Any, strata: Any, share: float, seed: int) -> Rows:
    """Return the training part of a 70/30 split with some labels."""
    X, _, y, _ = train_test_split(
        X, positive.astype(int), test_size=0.3, stratify=strata, random_state=seed
    )
    pu = make_pu(X, y, n_labeled=share, random_state=seed)
    return pu.X, pu.y, pu.oracle.prior_in_unlabeled


def digits(seed: int) -> Rows:
    X, digit = load_digits(return_X_y=True)
    return real(X / 16, digit % 2 == 0, digit, 0.2, seed)


def breast_cancer(seed: int) -> Rows:
    X, benign = load_breast_cancer(return_X_y=True)
    return real(X, benign == 0, benign, 0.3, seed)


def drawn(X: Any, positive: Any, share: float, rng: np.random.Generator) -> Rows:
    labelled = positive & (rng.random(len(X)) < share)
    return X, labelled.astype(int), float(positive[~labelled].mean())


def overlapping(seed: int, n: int = 2_000, features: int = 10) -> Rows:
    rng = np.random.default_rng([seed, 7])
    positive = rng.random(n) < 0.4
    X = rng.normal(size=(n, features))
    X[positive] += 2 / np.sqrt(features)
    return drawn(X, positive, 0.3, rng)


def pure_region(seed: int) -> Rows:
    rng = np.random.default_rng([seed, 9])
    positive = rng.random(1_000) < 0.4
    X = rng.normal(size=(1_000, 5))
    X[positive & (rng.random(1_000) < 0.7), 0] += 4
    return drawn(X, positive, 0.3, rng)


def rare(seed: int) -> Rows:
    rng = np.random.default_rng([seed, 8])
    X = rng.normal(size=(20_000, 10))
    X[:200] += 4 / np.sqrt(10)
    return X, (np.arange(20_000) < 100).astype(int), 100 / 19_900


DATASETS: dict[str, Callable[[int], Rows]] = {
    "digits": digits,
    "breast_cancer": breast_cancer,
    "overlapping": overlapping,
    "rare": rare,
}
FRESH: dict[str, Callable[[int], Rows]] = {"pure_region": pure_region, "digits": digits}


# --- measuring ----------------------------------------------------------------------


def measured(
    dataset: str, rows: Rows, method: str, variant: str, seed: int, resamples: int
) -> Record:
    """Estimate once; ``metrics`` compare with the truth."""
    X, y, truth = rows
    memory: dict[str, float] = {}
    start = time.perf_counter()
    with warnings.catch_warnings(), peak_memory(memory):
        warnings.simplefilter("ignore", DensPUWarning)
        found = estimate_prior(
            X, y, method=method, level=LEVEL, n_resamples=resamples, random_state=seed
        )
    return Record(
        dataset=dataset,
        method=method,
        variant=variant,
        n_labeled=found.n_positive,
        seed=seed,
        metrics=compared(found, truth),
        estimates={"by_key": dict(found.estimates), "interval": list(found.interval)},
        seconds={"total": time.perf_counter() - start},
        device=device_name("cpu"),
        extra={"peak_mb": memory["peak_mb"], "n": len(y), "truth": truth},
    )


def compared(found: PriorReport, truth: float) -> dict[str, float]:
    error = found.prior_in_unlabeled - truth
    return {
        "prior_in_unlabeled": found.prior_in_unlabeled,
        "prior": found.prior,
        "true_prior": found.overall(truth),
        "error": error,
        "absolute_error": abs(error),
        "held": float(found.low <= truth <= found.high),
        "width": found.high - found.low,
    }


def jobs(args: argparse.Namespace) -> Iterator[tuple[str, str, str, int, Any, int]]:
    """Yield (data set, method, variant, seed, how to make the rows, resamples)."""
    if args.coverage:
        for name, make in FRESH.items():
            for seed in range(FIRST_FRESH, FIRST_FRESH + args.coverage):
                yield name, "auto", "fresh draw", seed, make, 50
    elif args.memory:
        variant = f"{args.memory} x 20"
        make = lambda seed: overlapping(seed, args.memory, 20)  # noqa: E731
        yield "overlapping", "auto", variant, args.seeds[0], make, 50
    else:
        for name in args.datasets:
            for key in ("auto", *registry().of_kind("prior")):
                for seed in args.seeds:
                    resamples = 50 if key == "auto" else 0
                    yield name, key, "share in U", seed, DATASETS[name], resamples


# --- tables -------------------------------------------------------------------------


def table(out: Path) -> str:
    """Return Markdown tables of the records: accuracy, coverage, memory."""
    records = read_records(out)
    lines = _accuracy([r for r in records if r.variant == "share in U"])
    fresh = [r for r in records if r.variant == "fresh draw"]
    if fresh:
        lines += [
            "\n| fresh draws | draws | held the truth | mean width | error |",
            "|---|---|---|---|---|",
        ]
    for name, found in grouped(fresh, lambda r: r.dataset).items():
        held, width = (summarize(found, m)[0] for m in ("held", "width"))
        error = "{:+.3f} ± {:.3f}".format(*summarize(found, "error")[:2])
        lines.append(f"| {name} | {len(found)} | {held:.2f} | {width:.3f} | {error} |")
    for r in records:
        if " x " in r.variant:
            lines.append(
                f"\n{r.variant} rows: {r.seconds['total']:.0f} s, "
                f"{r.extra['peak_mb']:.0f} MB, error {r.metrics['error']:+.3f}"
            )
    return "\n".join(lines)


def _accuracy(records: list[Record]) -> list[str]:
    """Return one row an estimator: mean ± deviation of the error, and mean |error|."""
    if not records:
        return []
    by_set = grouped(records, lambda r: r.dataset)
    heads = [
        f"{name} ({np.mean([r.extra['truth'] for r in found]):.3g})"
        for name, found in by_set.items()
    ]
    lines = []
    for method in grouped(records, lambda r: r.method):
        cells = []
        for found in by_set.values():
            own = [r for r in found if r.method == method]
            if not own:
                cells.append("")
                continue
            digit = 4 if own[0].extra["truth"] < 0.05 else 3
            mean, spread, _ = summarize(own, "error")
            size = summarize(own, "absolute_error")[0]
            cells.append(
                f"{mean:+.{digit}f} ± {spread:.{digit}f}, {size:.{digit}f} ({len(own)})"
            )
        lines.append([method, *cells])
    return [grid(["estimator", *heads], lines)]


def run(args: argparse.Namespace) -> None:
    done = {(r.dataset, r.method, r.variant, r.seed) for r in read_records(args.out)}
    for name, key, variant, seed, make, resamples in jobs(args):
        if (name, key, variant, seed) not in done:
            record = measured(name, make(seed), key, variant, seed, resamples)
            write_record(record, args.out)


if __name__ == "__main__":
    parser = options(__doc__, RECORDS, seeds=range(5))
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=[*DATASETS])
    parser.add_argument("--coverage", type=int, default=0, help="fresh draws a set")
    parser.add_argument("--memory", type=int, default=0, help="rows of a large table")
    finish(parser, run, table)
