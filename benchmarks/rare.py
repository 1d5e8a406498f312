"""Rare positives: one in a thousand, 800 of them labelled, in millions of rows.

    python benchmarks/rare.py --seeds 0 1 2                 # 2 million x 30
    python benchmarks/rare.py --rows 100000 --seeds 10 --out /tmp/rare.jsonl

Each seed draws a task of its own: five clouds of negatives in 12 features; positives
are two clouds inside them, one cloud that differs by correlations alone, and two rules
("these three features are high"); 18 features mean nothing. Densities are known, so the
best possible ranking is in the table too. Every method runs in a fresh process, and
ranks as many new rows as half of those it learned from. Peak memory is what fit and
scoring add to the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RECORDS = Path(__file__).parent / "records" / "rare.jsonl"
THREADS = 2
ROWS = 2_000_000
PRIOR = 0.001
N_LABELED = 800
LABELED_SHARE = 0.4
"""Of the positives, where there are not enough for 800."""
TOP = 1_000

INFORMATIVE, NUISANCE, HIDDEN = 12, 18, 6
WEIGHTS_NEGATIVE = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
WEIGHTS_POSITIVE = np.array([0.25, 0.2, 0.2, 0.2, 0.15])
CORRELATION = 0.93
TAIL = 0.07
"""Each feature of a rule is beyond this quantile of the rows that fit so far."""


@dataclass(frozen=True)
class Rule:
    """A box: three features beyond a cut on one side."""

    features: Any
    sign: Any
    cuts: Any

    def holds(self, X: Any) -> Any:
        return (X[:, self.features] * self.sign > self.cuts).all(axis=1)


class Task:
    """One drawn problem: how rows arise, and how likely each is to be positive."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        shape = (len(WEIGHTS_NEGATIVE), INFORMATIVE)
        self.centre = rng.normal(scale=1.5, size=shape)
        self.spread = rng.uniform(0.7, 1.4, size=shape)
        near = rng.choice(len(self.centre), 2, replace=False)
        self.cloud_centre = self.centre[near].copy()
        self.cloud_spread = self.spread[near] * 0.6
        for k in range(2):
            moved = rng.choice(INFORMATIVE, 4, replace=False)
            step = rng.choice([-1, 1], 4) * rng.uniform(1.5, 2.0, 4)
            self.cloud_centre[k, moved] += step * self.spread[near[k], moved]
        self.home = int(rng.integers(len(self.centre)))
        self.pairs = rng.permutation(INFORMATIVE)[:8].reshape(4, 2)
        chosen = [rng.choice(INFORMATIVE, 3, replace=False) for _ in range(2)]
        rows = self.negatives(400_000, rng)
        self.rules = [self._rule(features, rows, rng) for features in chosen]
        self.mix = rng.normal(size=(HIDDEN, NUISANCE)).astype(np.float32)

    def _rule(self, features: Any, rows: Any, rng: np.random.Generator) -> Rule:
        sign = rng.choice([-1, 1], 3)
        values = rows[:, features] * sign
        cuts = []
        for j in range(3):
            cuts.append(np.quantile(values[:, j], 1 - TAIL))
            values = values[values[:, j] > cuts[-1]]
        return Rule(features, sign, np.array(cuts))

    def negatives(self, n: int, rng: np.random.Generator) -> Any:
        k = rng.choice(len(WEIGHTS_NEGATIVE), n, p=WEIGHTS_NEGATIVE)
        noise = rng.normal(size=(n, INFORMATIVE))
        return (self.centre[k] + self.spread[k] * noise).astype(np.float32)

    def positives(self, n: int, rng: np.random.Generator) -> Any:
        counts = rng.multinomial(n, WEIGHTS_POSITIVE)
        parts = [
            centre + spread * rng.normal(size=(count, INFORMATIVE))
            for centre, spread, count in zip(
                self.cloud_centre, self.cloud_spread, counts[:2], strict=True
            )
        ]
        noise = rng.normal(size=(counts[2], INFORMATIVE))
        a, b = self.pairs.T
        rest = np.sqrt(1 - CORRELATION**2)
        noise[:, b] = CORRELATION * noise[:, a] + rest * noise[:, b]
        parts.append(self.centre[self.home] + self.spread[self.home] * noise)
        for rule, count in zip(self.rules, counts[3:], strict=True):
            parts.append(self._follow(rule, count, rng))
        return np.concatenate(parts).astype(np.float32)

    def _follow(self, rule: Rule, n: int, rng: np.random.Generator) -> Any:
        found: list[Any] = []
        while sum(map(len, found)) < n:
            rows = self.negatives(500_000, rng)
            found.append(rows[rule.holds(rows)])
        return np.concatenate([np.empty((0, INFORMATIVE)), *found])[:n]

    def log_ratio(self, X: Any) -> Any:
        """Return log p(x | positive) - log p(x | negative)."""
        return np.concatenate(
            [self._log_ratio(X[at : at + 200_000]) for at in range(0, len(X), 200_000)]
        )

    def _log_ratio(self, X: Any) -> Any:
        X = X.astype(np.float64)
        weights = np.log(WEIGHTS_POSITIVE)
        negative = np.logaddexp.reduce(
            [
                np.log(w) + log_normal(X, centre, spread)
                for w, centre, spread in zip(
                    WEIGHTS_NEGATIVE, self.centre, self.spread, strict=True
                )
            ]
        )
        terms = [
            weights[k] + log_normal(X, self.cloud_centre[k], self.cloud_spread[k])
            for k in range(2)
        ]
        Y = (X - self.centre[self.home]) / self.spread[self.home]
        a, b = self.pairs.T
        free = 1 - CORRELATION**2
        gain = ((Y[:, b] - CORRELATION * Y[:, a]) ** 2 / free - Y[:, b] ** 2).sum(1)
        gain = -0.5 * gain - 0.5 * len(a) * np.log(free)
        at_home = log_normal(X, self.centre[self.home], self.spread[self.home])
        terms.append(weights[2] + at_home + gain)
        ratios = [term - negative for term in terms]
        for weight, rule in zip(weights[3:], self.rules, strict=True):
            ratios.append(np.where(rule.holds(X), weight - 3 * np.log(TAIL), -np.inf))
        return np.logaddexp.reduce(ratios)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        count = round(PRIOR * n)
        X = np.concatenate([self.positives(count, rng), self.negatives(n - count, rng)])
        order = rng.permutation(n)
        return X[order], order < count

    def dress(self, X: Any, rng: np.random.Generator) -> Any:
        """Return the table: some features seen through exp, others meaningless."""
        table = np.empty((len(X), INFORMATIVE + NUISANCE), dtype=np.float32)
        table[:, :INFORMATIVE] = X
        table[:, :INFORMATIVE:3] = np.exp(X[:, ::3] / 2)
        hidden = rng.standard_normal((len(X), HIDDEN), dtype=np.float32)
        noise = hidden @ self.mix
        noise += rng.standard_normal(noise.shape, dtype=np.float32)
        noise[:, :6] = np.exp(noise[:, :6] / 3)
        noise[:, 6:12] = np.floor(noise[:, 6:12])
        table[:, INFORMATIVE:] = noise
        return table


def log_normal(X: Any, centre: Any, spread: Any) -> Any:
    return -0.5 * (((X - centre) / spread) ** 2).sum(1) - np.log(spread).sum()


@dataclass(frozen=True)
class Data:
    """Rows to learn from, rows to rank, and what only the referee knows."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    best: Any
    prior_in_unlabeled: float


def draw(rows: int, seed: int) -> Data:
    task, rng = Task(seed), np.random.default_rng([seed, 2])
    X, truth = task.sample(rows, rng)
    positive = np.flatnonzero(truth)
    n_labeled = min(N_LABELED, int(LABELED_SHARE * len(positive)))
    y = np.zeros(rows, dtype=np.int64)
    y[rng.choice(positive, n_labeled, replace=False)] = 1
    X_test, y_test = task.sample(rows // 2, rng)
    best = task.log_ratio(X_test)
    hidden = (len(positive) - n_labeled) / (rows - n_labeled)
    return Data(
        task.dress(X, rng), y, task.dress(X_test, rng), y_test, best, float(hidden)
    )


# --- the methods: fit(X, y, seed) returns a ranking of new rows and what it estimates


Fitted = tuple[Callable[[Any], Any], dict[str, Any]]


def ours(X: Any, y: Any, seed: int) -> Fitted:
    from denspu import DensPU

    model = DensPU(random_state=seed).fit(X, y)
    return model.decision_function, {
        "seconds": model.stages_.seconds,
        **model.stages_["label"].facts,
        **model.stages_["refine"].facts,
    }


def boosting(**settings: Any) -> Callable[[Any, Any, int], Fitted]:
    def fit(X: Any, y: Any, seed: int) -> Fitted:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(random_state=seed, **settings)
        return model.fit(X, y).decision_function, {"iterations": int(model.n_iter_)}

    return fit


def bagging(n_trees: int, times: int) -> Callable[[Any, Any, int], Fitted]:
    """Trees on P against bootstraps of U, ``times`` as large (Mordelet and Vert)."""

    def fit(X: Any, y: Any, seed: int) -> Fitted:
        from sklearn.tree import DecisionTreeClassifier

        rng = np.random.default_rng(seed)
        positive, unlabeled = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
        trees = []
        for _ in range(n_trees):
            drawn = rng.choice(unlabeled, times * len(positive))
            rows = np.concatenate([positive, drawn])
            tree = DecisionTreeClassifier(random_state=int(rng.integers(2**31)))
            trees.append(tree.fit(X[rows], y[rows]))

        def score(Q: Any) -> Any:
            total = np.zeros(len(Q))
            for tree in trees:
                total += tree.predict_proba(Q)[:, 1]
            return total / n_trees

        return score, {}

    return fit


METHODS: dict[str, Callable[[Any, Any, int], Fitted]] = {
    "denspu": ours,
    "gradient boosting": boosting(),
    "gradient boosting, balanced": boosting(class_weight="balanced"),
    "gradient boosting, slow": boosting(
        learning_rate=0.05,
        max_iter=300,
        max_leaf_nodes=8,
        l2_regularization=10.0,
        early_stopping=False,
    ),
    "PU bagging, K = n_P": bagging(50, 1),
    "PU bagging, K = 20 n_P": bagging(50, 20),
}
ORACLE = "best possible"
DEMANDED = [ORACLE, *METHODS]


# --- one run in a fresh process, and the comparison


def figures(y: Any, scores: Any) -> dict[str, float]:
    from denspu.metrics import oracle_metrics

    top = np.argpartition(-scores, TOP)[:TOP]
    return {**oracle_metrics(y, scores), f"precision_at_{TOP}": float(y[top].mean())}


def run_one(name: str, rows: int, seed: int) -> dict[str, Any]:
    """Fit and rank in this process; return figures, seconds, memory, estimates."""
    from _shared import peak_memory

    data = draw(rows, seed)
    memory: dict[str, float] = {"peak_mb": 0.0}
    seconds = {"fit": 0.0, "score": 0.0, "total": 0.0}
    estimates: dict[str, Any] = {}
    scores = data.best
    if name != ORACLE:
        with peak_memory(memory):
            began = time.perf_counter()
            score, estimates = METHODS[name](data.X, data.y, seed)
            fitted = time.perf_counter()
            scores = score(data.X_test)
            ended = time.perf_counter()
        seconds = {
            "fit": fitted - began,
            "score": ended - fitted,
            "total": ended - began,
        }
    return {
        "metrics": figures(data.y_test, scores),
        "estimates": estimates,
        "seconds": seconds,
        "extra": {
            **memory,
            "table_mb": data.X.nbytes / 2**20,
            "threads": THREADS,
            "prior_in_unlabeled": data.prior_in_unlabeled,
            "test_rows": len(data.y_test),
        },
        "n_labeled": int(data.y.sum()),
    }


def in_fresh_process(name: str, rows: int, seed: int) -> dict[str, Any]:
    words = [sys.executable, __file__, "--one", name, "--rows", str(rows)]
    env = {
        **os.environ,
        "OMP_NUM_THREADS": str(THREADS),
        "OPENBLAS_NUM_THREADS": str(THREADS),
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    answer = subprocess.run(
        [*words, "--seeds", str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=env,
    )
    return json.loads(answer.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", choices=[ORACLE, *METHODS])
    parser.add_argument("--out", type=Path, default=RECORDS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(args.one, args.rows, args.seeds[0])))
        return

    from denspu.benchmark import Record, write_record

    for seed in args.seeds:
        for name in args.methods or DEMANDED:
            facts = in_fresh_process(name, args.rows, seed)
            write_record(
                Record(
                    dataset=f"synthetic {args.rows}x{INFORMATIVE + NUISANCE}",
                    method="rare",
                    variant=name,
                    seed=seed,
                    device=f"cpu, {THREADS} threads",
                    **facts,
                ),
                args.out,
            )
            print(seed, name, shown(facts), flush=True)
    print(table(args.out))


def shown(facts: dict[str, Any]) -> dict[str, float]:
    metrics = facts["metrics"]
    names = ("average_precision", f"precision_at_{TOP}", "roc_auc")
    return {
        **{name: round(metrics[name], 4) for name in names},
        "seconds": round(facts["seconds"]["total"], 1),
        "peak_mb": round(facts["extra"]["peak_mb"]),
    }


def table(out: Path) -> str:
    """Return the Markdown table of the records: mean over seeds."""
    from denspu.benchmark import read_records, summarize

    records = read_records(out)
    lines = [
        "| rows | method | seeds | average precision | precision at 1,000 | ROC AUC "
        "| times the seconds of balanced gradient boosting | added MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    keys = dict.fromkeys((r.dataset, r.variant) for r in records)
    for dataset, variant in keys:
        chosen = [r for r in records if (r.dataset, r.variant) == (dataset, variant)]
        cells = []
        for metric in ("average_precision", f"precision_at_{TOP}", "roc_auc"):
            mean, spread, n = summarize(chosen, metric)
            cells.append(f"{mean:.3f} ± {spread:.3f}" if n > 1 else f"{mean:.3f}")
        base = [
            r.seconds["total"]
            for r in records
            if (r.dataset, r.variant) == (dataset, "gradient boosting, balanced")
        ]
        took = np.mean([r.seconds["total"] for r in chosen])
        memory = np.mean([r.extra["peak_mb"] for r in chosen])
        timed = variant != ORACLE
        cells.append(f"{took / np.mean(base):.1f}" if base and timed else "")
        cells.append(f"{memory:.0f}" if timed else "")
        name = dataset.removeprefix("synthetic ")
        lines.append(f"| {name} | {variant} | {n} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
