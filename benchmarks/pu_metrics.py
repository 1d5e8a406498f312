"""Are the figures made without negatives right? Bias and coverage over labelling draws.

    python benchmarks/pu_metrics.py                   # 2,000 draws, true prior
    python benchmarks/pu_metrics.py --estimated 100   # 100 draws, estimated prior
    python benchmarks/pu_metrics.py --table

Digits, even ones are positive. A logistic regression is fitted once, with true labels,
on one half of the rows, and is never changed: only the labelling of the other half
varies.
One-sample: 89 positives of that half, a fifth, get a label at random; the rest is U.
Two-sample: a random half of that half is U; 89 positives of what is left are P. Every
estimate is compared with the figure that true labels give on the very same rows: the
rows of U, and in the one-sample scenario also P and U together. precision_at_r is the
precision among as many rows as there are positives.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from _shared import finish, options
from denspu.benchmark import Record, device_name, read_records, write_record
from denspu.exceptions import DensPUWarning
from denspu.metrics import PUReport, oracle_metrics, pu_metrics
from denspu.priors import estimate_prior

RECORDS = Path(__file__).parent / "records" / "pu-metrics.jsonl"
N_LABELED = 89
LEVEL = 0.9
K = 100
CASES = (
    ("one-sample", "unlabeled"),
    ("one-sample", "population"),
    ("two-sample", "unlabeled"),
)


@dataclass(frozen=True)
class Half:
    """The rows whose labelling varies."""

    X: Any
    y: Any
    scores: Any


def half(seed: int) -> Half:
    X, digit = load_digits(return_X_y=True)
    y = (digit % 2 == 0).astype(int)
    Xa, Xb, ya, yb = train_test_split(
        X / 16, y, test_size=0.5, stratify=digit, random_state=seed
    )
    model = LogisticRegression(max_iter=1_000).fit(Xa, ya)
    return Half(Xb, yb, model.decision_function(Xb))


def labelled(y: Any, scenario: str, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the rows of P and of U in one draw."""
    order = rng.permutation(len(y))
    pool = order if scenario == "one-sample" else order[len(y) // 2 :]
    P = pool[y[pool] == 1][:N_LABELED]
    U = np.setdiff1d(order, P) if scenario == "one-sample" else order[: len(y) // 2]
    return P, U


def truth(y: Any, scores: Any, r: int) -> dict[str, float]:
    found = oracle_metrics(y, scores)
    found["lift"] = found["precision"] / y.mean()
    ranked = y[np.argsort(-scores, kind="stable")]
    return found | {
        f"precision_at_{K}": ranked[:K].mean(),
        "precision_at_r": ranked[:r].mean(),
    }


def prior_of(rows: Half, P: Any, U: Any, scenario: Any, seed: int) -> dict[str, Any]:
    """Return the estimated prior inside U with its interval."""
    both = np.r_[P, U]
    y = np.r_[np.ones(len(P)), np.zeros(len(U))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)
        found = estimate_prior(rows.X[both], y, scenario=scenario, random_state=seed)
    return {
        "prior_in_unlabeled": found.prior_in_unlabeled,
        "prior_interval": found.interval,
        "prior_level": found.level,
    }


def compared(
    rows: Half, scenario: Any, population: Any, estimated: bool, seed: int
) -> Iterator[tuple[str, float, float, float]]:
    """Yield (name, error, held, width) of each figure in one draw."""
    P, U = labelled(rows.y, scenario, np.random.default_rng(seed))
    about = np.r_[P, U] if population == "population" else U
    r = int(rows.y[about].sum())
    prior: dict[str, Any] = {"prior_in_unlabeled": float(rows.y[U].mean())}
    if estimated:
        prior = prior_of(rows, P, U, scenario, seed)
    found: PUReport = pu_metrics(
        rows.scores[P],
        rows.scores[U],
        **prior,
        scenario=scenario,
        population=population,
        k=[K, r],
        level=LEVEL,
        random_state=seed,
    )
    true = truth(rows.y[about], rows.scores[about], r)
    for name, value in true.items():
        figure = found["precision_at_" + str(r) if name == "precision_at_r" else name]
        held = figure.low - 1e-9 <= value <= figure.high + 1e-9
        yield name, figure.value - value, float(held), figure.high - figure.low


def measured(
    rows: Half, case: tuple[str, str], estimated: bool, draws: int, seed: int
) -> Record:
    """Return one record: bias, spread, coverage and width of every figure."""
    start = time.perf_counter()
    found: dict[str, list[tuple[float, float, float]]] = {}
    for draw in range(draws):
        for name, *rest in compared(rows, *case, estimated, seed + draw):
            found.setdefault(name, []).append(tuple(rest))
    metrics = {}
    for name, each in found.items():
        error, held, width = np.array(each).T
        metrics[f"bias_{name}"] = float(error.mean())
        metrics[f"spread_{name}"] = float(error.std(ddof=1))
        metrics[f"held_{name}"] = float(held.mean())
        metrics[f"width_{name}"] = float(width.mean())
    return Record(
        dataset="digits",
        method="pu_metrics",
        variant=variant(case, estimated),
        n_labeled=N_LABELED,
        seed=seed,
        metrics=metrics,
        estimates={},
        seconds={"total": time.perf_counter() - start},
        device=device_name("cpu"),
        extra={"draws": draws, "level": LEVEL, "names": list(found)},
    )


def variant(case: tuple[str, str], estimated: bool) -> str:
    about = "U" if case[1] == "unlabeled" else "P and U"
    return f"{case[0]}, {about}, {'estimated' if estimated else 'true'} prior"


def table(out: Path) -> str:
    """Return Markdown tables: error of the estimates, and how often intervals hold."""
    lines = []
    for record in read_records(out):
        lines += [
            f"\n**{record.variant}** ({record.extra['draws']:,} draws)\n",
            "| figure | bias | spread | intervals that hold | width |",
            "|---|---|---|---|---|",
        ]
        for name in record.extra["names"]:
            bias, spread, held, width = (
                record.metrics[f"{what}_{name}"]
                for what in ("bias", "spread", "held", "width")
            )
            cells = f"{bias:+.4f} | {spread:.3f} | {held:.1%} | {width:.3f}"
            lines.append(f"| {name} | {cells} |")
    return "\n".join(lines).strip()


def run(args: argparse.Namespace) -> None:
    done = {(r.variant, r.seed) for r in read_records(args.out)}
    rows = half(args.seed)
    for case in CASES:
        key = variant(case, args.estimated > 0), args.seed
        if key not in done:
            draws = args.estimated or args.draws
            found = measured(rows, case, args.estimated > 0, draws, args.seed)
            write_record(found, args.out)


if __name__ == "__main__":
    parser = options(__doc__, RECORDS)
    parser.add_argument("--draws", type=int, default=2_000, help="with the true prior")
    parser.add_argument("--estimated", type=int, default=0, help="draws, prior guessed")
    parser.add_argument("--seed", type=int, default=0)
    finish(parser, run, table)
