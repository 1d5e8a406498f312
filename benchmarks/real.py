"""Who ranks real data best with few labels, and do our words hold?

    python benchmarks/real.py --kind table --part development --labels 40 --draws 2
    python benchmarks/real.py --kind table --part sealed-a    # run once, at the end
    python benchmarks/real.py --show                          # tables from the records

Tasks and their split are those of ``real_data.py``. Each draw labels some positives, at
random or in favour of some; every row ranks the same unlabelled items. All rows see the
same encoded numbers, so that learners are compared and not their preparation; ours
begins with the data as they are read. Finished cells are skipped, so that a run that
was ended goes on.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from denspu import DensPU, make
from denspu.encoders import TabularEncoder, TextEncoder
from real_data import LABELS, Task, load, tasks

RECORDS = Path(__file__).parent / "records" / "real"
MECHANISMS = ("random", "sar", "easiest")
EASIEST = 0.4
"""``easiest`` labels among this share of the positives, those a forest finds surest."""
SAR_STRENGTH = 2.0
LEVEL = 0.9
BEFORE = 'DensPU(refiner="embedding")'


# --- one draw ------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One labelling of one task."""

    task: Task
    labels: int
    mechanism: str
    draw: int

    @property
    def key(self) -> tuple[str, int, str, int]:
        return self.task.name, self.labels, self.mechanism, self.draw


@dataclass(frozen=True)
class Data:
    """A task as learners see it."""

    X: Any
    Z: np.ndarray
    wide: csr_matrix | None
    y: np.ndarray

    @property
    def standard(self) -> np.ndarray:
        return (self.Z - self.Z.mean(axis=0)) / (self.Z.std(axis=0) + 1e-9)


@cache
def data_of(task: Task, folder: Path | None) -> Data:
    """Read a task and encode it as ``DensPU`` does."""
    X, y = load(task, folder)
    if task.kind == "text":
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        wide = vectorizer.fit_transform(X)
        return Data(X, TextEncoder(random_state=0).fit_transform(X), wide, y)
    if task.kind == "image":
        return Data(X, histograms(X), None, y)
    return Data(X, np.asarray(TabularEncoder().fit_transform(X)), None, y)


def histograms(images: np.ndarray) -> np.ndarray:
    """Return gradient directions in 4×4 fields and colours, in a second."""
    grey = images.mean(axis=3)
    down, right = np.gradient(grey, axis=(1, 2))
    size, angle = np.hypot(down, right), np.arctan2(down, right) % np.pi
    side = grey.shape[1] // 4
    features = []
    for i in range(4):
        for j in range(4):
            at = np.s_[:, i * side : (i + 1) * side, j * side : (j + 1) * side]
            turn = np.minimum((angle[at] / np.pi * 8).astype(int), 7)
            field = [(size[at] * (turn == k)).sum(axis=(1, 2)) for k in range(8)]
            features += field + [images[at].mean(axis=(1, 2))[:, c] for c in range(3)]
    coarse = (images // 64).astype(int) @ np.array([16, 4, 1])
    features += [(coarse == k).mean(axis=(1, 2)) for k in range(64)]
    return np.sqrt(np.maximum(np.column_stack(features), 0))


def labelled(cell: Cell, data: Data) -> np.ndarray:
    """Return which rows carry a label."""
    positives = np.flatnonzero(data.y)
    seed = [MECHANISMS.index(cell.mechanism), cell.labels, cell.draw]
    rng = np.random.default_rng(seed)
    chance = None
    if cell.mechanism == "sar":
        Z = data.standard[positives]
        axis = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)[2][0]
        along = Z @ axis
        chance = np.exp(SAR_STRENGTH * (along - along.mean()) / (along.std() + 1e-9))
        chance /= chance.sum()
    elif cell.mechanism == "easiest":
        most = max(cell.labels, int(EASIEST * len(positives)))
        positives = positives[np.argsort(-sureness(cell.task, data)[positives])[:most]]
    found = np.zeros(len(data.y), dtype=bool)
    found[rng.choice(positives, cell.labels, replace=False, p=chance)] = True
    return found


_SURE: dict[str, np.ndarray] = {}


def sureness(task: Task, data: Data) -> np.ndarray:
    """Return how sure a forest with all true labels is of each row."""
    if task.name not in _SURE:
        forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
        votes = cross_val_predict(forest, data.Z, data.y, cv=3, method="predict_proba")
        _SURE[task.name] = votes[:, 1]
    return _SURE[task.name]


# --- rows: who ranks -----------------------------------------------------------------

Ranked = tuple[np.ndarray, dict[str, Any]]
"""Scores of the unlabelled items, and what is said of them."""


def ours(data: Data, label: np.ndarray, draw: int) -> Ranked:
    """Rank by ``DensPU()``, every positive judging once."""
    model = DensPU(random_state=draw)
    model.fit(data.X, label.astype(int), holdout="folds")
    return model.evidence_.unlabeled, words(model, data.y[~label])


def before(data: Data, label: np.ndarray, draw: int) -> Ranked:
    """Rank by what was the default before, judged by a fifth of the positives."""
    y = label.astype(int)
    model = DensPU(random_state=draw, refiner="embedding").fit(data.X, y, holdout=0.2)
    return model.decision_function(data.X)[~label], words(model, data.y[~label])


def members(data: Data, label: np.ndarray, draw: int) -> Ranked:
    """Rank by the fixed mean of the four members: one look, no evidence."""
    from denspu.refinement import MembersRefiner

    model = DensPU(
        random_state=draw, refiner=MembersRefiner(looks=1, weights="equal")
    ).fit(data.X, label.astype(int))
    return model.unseen_scores_[~label], {}


def bag(
    Z: np.ndarray, label: np.ndarray, draw: int, make: Any, n: int, times: int = 1
) -> np.ndarray:
    """Return the mean score of unlabelled rows by bags that have not seen them."""
    rng = np.random.default_rng(draw)
    P, U = np.flatnonzero(label), np.flatnonzero(~label)
    total, count = np.zeros(len(Z)), np.zeros(len(Z))
    for i in range(n):
        drawn = rng.choice(U, min(times * len(P), len(U) // 2), replace=False)
        out = np.setdiff1d(U, drawn)
        rows = np.r_[P, drawn]
        model = make(i).fit(Z[rows], np.arange(len(rows)) < len(P))
        if hasattr(model, "decision_function"):
            total[out] += model.decision_function(Z[out])
        else:
            total[out] += model.predict_proba(Z[out])[:, 1]
        count[out] += 1
    return (total / np.maximum(count, 1))[U]


def tree(seed: int) -> Any:
    return DecisionTreeClassifier(max_features="sqrt", random_state=seed)


def leafy(seed: int) -> Any:
    return DecisionTreeClassifier(
        max_features="sqrt", min_samples_leaf=2, random_state=seed
    )


def extra(seed: int) -> Any:
    return ExtraTreesClassifier(15, random_state=seed)


def kernel(seed: int) -> Any:
    return SVC(C=3.0)


def linear(data: Data, label: np.ndarray) -> np.ndarray:
    Z = data.standard if data.wide is None else data.wide
    strength = 1.0 if data.wide is None else 10.0
    model = LogisticRegression(C=strength, class_weight="balanced", max_iter=1000)
    return np.asarray(model.fit(Z, label).decision_function(Z[~label]))


def boosted(data: Data, label: np.ndarray) -> np.ndarray:
    model = HistGradientBoostingClassifier(max_iter=100, class_weight="balanced")
    found = cross_val_predict(model, data.Z, label, cv=5, method="decision_function")
    return np.asarray(found)[~label]


def nearest(data: Data, label: np.ndarray) -> np.ndarray:
    Z = data.standard
    near = NearestNeighbors(n_neighbors=3).fit(Z[label])
    return -near.kneighbors(Z[~label])[0].mean(axis=1)


def isolation(data: Data, label: np.ndarray) -> np.ndarray:
    model = IsolationForest(n_estimators=200, random_state=0).fit(data.Z[label])
    return np.asarray(model.score_samples(data.Z[~label]))


def method(key: str) -> Callable[[Data, np.ndarray, int], Ranked]:
    """Rank by another method of denspu, given the same numbers."""

    def rank(data: Data, label: np.ndarray, draw: int) -> Ranked:
        model = make(key, random_state=draw, encoder="identity")
        model.fit(data.standard.astype(np.float32), label.astype(int))
        return model.decision_function(data.standard[~label].astype(np.float32)), {}

    return rank


def silent(score: Callable[..., np.ndarray]) -> Callable[..., Ranked]:
    """Make a row of a learner that says nothing but a ranking."""
    return lambda data, label, draw: (score(data, label), {})


def bagged(make: Any, n: int, times: int = 1) -> Callable[..., Ranked]:
    def rank(data: Data, label: np.ndarray, draw: int) -> Ranked:
        Z = data.standard if make is kernel else data.Z
        return bag(Z, label, draw, make, n, times), {}

    return rank


ROWS: dict[str, Callable[..., Ranked]] = {
    "DensPU()": ours,
    "fixed mean of four": members,
    "bag of 200 trees": bagged(tree, 200),
    "bag of trees, 5 U for a P": bagged(leafy, 200, 5),
    "bag of extra trees": bagged(extra, 25, 3),
    "bag of kernel machines": bagged(kernel, 30, 3),
    "logistic regression": silent(linear),
    "boosted trees": silent(boosted),
    "nearest positives": silent(nearest),
    "isolation forest": silent(isolation),
    "elkan_noto": method("elkan_noto"),
    BEFORE: before,
    "nnpu": method("nnpu"),
}
SLOW = ("nnpu", BEFORE)
"""Rows that are run for the first draws only."""
SLOW_DRAWS = 1


# --- what was said, beside the truth ------------------------------------------------


def words(model: Any, truth: np.ndarray) -> dict[str, Any]:
    """Return our figures with their intervals, and what is true."""
    evidence, called = model.evidence_, model.evidence_.unlabeled > model.threshold_
    report = model.evaluate(level=LEVEL)
    found: dict[str, Any] = {
        "share": [evidence.prior_in_unlabeled, *evidence.prior_interval, truth.mean()]
    }
    true = {
        "precision": truth[called].mean() if called.any() else None,
        "recall": called[truth == 1].mean(),
    }
    for name, value in true.items():
        figure = report[name]
        found[name] = [figure.value, figure.low, figure.high, value]
    chance = expit(evidence.unlabeled)
    sure = chance >= 0.9
    best = IsotonicRegression(out_of_bounds="clip").fit(evidence.unlabeled, truth)
    found["sure"] = [int(sure.sum()), int(truth[sure].sum())]
    found["could_be_sure"] = int((best.predict(evidence.unlabeled) >= 0.9).sum())
    share = float(np.clip(evidence.prior_in_unlabeled, 1e-6, 1 - 1e-6))
    found["log_loss"] = [
        log_loss(truth, np.clip(chance, 1e-6, 1 - 1e-6), labels=[0, 1]),
        log_loss(truth, np.full(len(truth), share), labels=[0, 1]),
    ]
    seen = getattr(getattr(model, "refiner_", None), "share_seen_", None)
    if seen is not None:
        found["seen"] = seen
    return rounded(found)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    if isinstance(value, float | np.floating):
        return None if not np.isfinite(value) else round(float(value), 5)
    return value


def run(cell: Cell, rows: tuple[str, ...], folder: Path | None) -> dict[str, Any]:
    """Rank one labelling by all rows."""
    data = data_of(cell.task, folder)
    label = labelled(cell, data)
    truth = data.y[~label]
    record: dict[str, Any] = {
        "task": cell.task.name,
        "source": cell.task.source,
        "part": cell.task.part,
        "kind": cell.task.kind,
        "labels": cell.labels,
        "mechanism": cell.mechanism,
        "draw": cell.draw,
        "n": len(truth),
        "columns": int(data.Z.shape[1]),
        "share": float(truth.mean()),
        "rows": {},
    }
    for name in rows:
        if name in SLOW and cell.draw >= SLOW_DRAWS:
            continue
        began = time.perf_counter()
        try:
            with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
                warnings.simplefilter("always")
                scores, said = ROWS[name](data, label, cell.draw)
        except Exception as error:  # told in the record: one row must not end a run
            record["rows"][name] = {"error": f"{type(error).__name__}: {error}"[:300]}
            continue
        entry = {
            "ap": average_precision_score(truth, scores),
            "auc": roc_auc_score(truth, scores),
            "seconds": time.perf_counter() - began,
        }
        if said:
            entry |= said
            kinds = {w.category.__name__ for w in caught}
            entry["warnings"] = sorted(k for k in kinds if k != "FutureWarning")
        record["rows"][name] = entry
    return dict(rounded(record))


# --- all of them ----------------------------------------------------------------------


def cells(args: argparse.Namespace) -> Iterator[Cell]:
    """Yield the cells that are asked for, the first draws of all tasks first."""
    chosen = [
        task
        for task in tasks(args.kind, args.part)
        if not args.only or task.name in args.only
    ]
    for draw in range(args.first, args.draws):
        for mechanism in args.mechanisms:
            for count in args.labels:
                for task in chosen:
                    if (task.positives or 0) >= 2 * count:
                        yield Cell(task, count, mechanism, draw)


def place(kind: str, part: str) -> Path:
    return RECORDS / f"{kind}-{part}.jsonl"


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- tables ---------------------------------------------------------------------------

LEVELS = (0.05, 0.95)
BEHIND, FAR_BEHIND = 0.01, 0.03
RESAMPLES = 2_000
OURS, EQUAL = "DensPU()", "fixed mean of four"
BAG = "bag of 200 trees"
BASELINES = [name for name in ROWS if name not in (OURS, EQUAL, BEFORE)]


def by_task(records: list[Any], row: str) -> dict[str, dict[int, float]]:
    """Return average precisions by task and draw."""
    found: dict[str, dict[int, float]] = {}
    for record in records:
        value = record["rows"].get(row, {}).get("ap")
        if value is not None:
            found.setdefault(record["task"], {})[record["draw"]] = value
    return found


def ahead(records: list[Any], row: str) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much ours is ahead of a row, task by task, and the sources."""
    ours_, other = by_task(records, OURS), by_task(records, row)
    source = {record["task"]: record["source"] for record in records}
    tasks_ = [t for t in ours_ if t in other]
    found = [np.mean([ours_[t][d] - other[t][d] for d in other[t]]) for t in tasks_]
    return np.array(found), np.array([source[t] for t in tasks_])


def interval(values: np.ndarray, sources: np.ndarray) -> tuple[float, float]:
    """Return the 90 % bootstrap interval of a mean; sources are drawn whole."""
    names, at = np.unique(sources, return_inverse=True)
    total, count = np.bincount(at, weights=values), np.bincount(at)
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(names), size=(RESAMPLES, len(names)))
    means = total[drawn].sum(axis=1) / count[drawn].sum(axis=1)
    return tuple(np.quantile(means, LEVELS))


def far_behind(records: list[Any]) -> float:
    """Return on how many tasks ours is far behind the best baseline.

    The baseline is chosen on the even draws and judged on the odd ones.
    """
    of = {row: by_task(records, row) for row in BASELINES}
    mine, losses = by_task(records, OURS), []
    for task, draws in mine.items():
        rows = [row for row in BASELINES if len(of[row].get(task, {})) == len(draws)]
        even = [d for d in draws if d % 2 == 0]
        odd = [d for d in draws if d % 2]
        if not rows or not even or not odd:
            continue
        best = max(rows, key=lambda row: np.mean([of[row][task][d] for d in even]))
        losses.append(np.mean([of[best][task][d] - draws[d] for d in odd]))
    return float(np.mean(np.array(losses) > FAR_BEHIND)) if losses else np.nan


def some(folder: Path, chosen: str) -> list[Any]:
    """Return the records of ``kind/part/labels/mechanism``."""
    kind, part, labels, mechanism = chosen.split("/")
    found: dict[tuple[str, int], Any] = {}
    for path in sorted(folder.glob(f"{kind}-{part}*.jsonl")):  # slow rows lie apart
        for record in read(path):
            if record["mechanism"] == mechanism and record["labels"] == int(labels):
                key = record["task"], record["draw"]
                found.setdefault(key, record | {"rows": {}})["rows"] |= record["rows"]
    return list(found.values())


def ranking_table(folder: Path, chosen: str) -> str:
    """Return who ranks best, as Markdown."""
    records = some(folder, chosen)
    lines = [
        "| row | tasks | average precision | ours ahead by | 90 % interval | "
        "ours behind by over .01 |",
        "|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        of = by_task(records, row)
        if not of:
            continue
        mean = np.mean([np.mean(list(draws.values())) for draws in of.values()])
        rest = "– | – | –"
        if row != OURS:
            found, sources = ahead(records, row)
            low, high = interval(found, sources)
            rest = (
                f"{found.mean():+.3f} | {low:+.3f} to {high:+.3f} | "
                f"{np.mean(found < -BEHIND):.0%}"
            )
        lines.append(f"| {row} | {len(of)} | {mean:.3f} | {rest} |")
    return "\n".join(lines)


def words_table(folder: Path, chosen: str) -> str:
    """Return whether the intervals held, as Markdown."""
    records = some(folder, chosen)
    lines = [
        "| row | figure | fits | held | width | interval score |",
        "|---|---|---|---|---|---|",
    ]
    for row in (OURS, BEFORE):
        for name in ("share", "precision", "recall"):
            said = [
                (record["source"], *record["rows"][row][name])
                for record in records
                if record["rows"].get(row, {}).get(name)
                and record["rows"][row][name][3] is not None
            ]
            if not said:
                continue
            low, high, true = (
                np.array([np.nan if v is None else v for v in column], float)
                for column in list(zip(*said, strict=True))[2:]
            )
            low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
            miss = np.maximum(low - true, 0) + np.maximum(true - high, 0)
            score = high - low + 2 / (1 - LEVEL) * miss
            lines.append(
                f"| {row} | {name} | {len(said)} | {np.mean(miss == 0):.1%} | "
                f"{np.mean(high - low):.2f} | {score.mean():.2f} |"
            )
    return "\n".join(lines)


def chances_table(folder: Path, chosen: str) -> str:
    """Return whether chances of .9 and more held, as Markdown."""
    records = some(folder, chosen)
    lines = [
        "| row | tasks with 20 such rows | at least .8 of them right | rows, of those "
        "an oracle would name | log loss | of the constant share |",
        "|---|---|---|---|---|---|",
    ]
    for row in (OURS, BEFORE):
        said = [r["rows"][row] for r in records if "sure" in r["rows"].get(row, {})]
        if not said:
            continue
        named, right = np.array([one["sure"] for one in said]).T
        enough = named >= 20
        kept = np.mean(right[enough] / named[enough] >= 0.8) if enough.any() else np.nan
        could = sum(one["could_be_sure"] for one in said)
        loss = np.array([one["log_loss"] for one in said]).mean(axis=0)
        lines.append(
            f"| {row} | {enough.sum()} | {kept:.0%} | {named.sum() / could:.0%} | "
            f"{loss[0]:.3f} | {loss[1]:.3f} |"
        )
    return "\n".join(lines)


def show(out: Path | None) -> None:
    """Print all tables of the records."""
    for path in [out] if out else sorted(RECORDS.glob("*-*.jsonl")):
        records = read(path)
        if not records or "mechanism" not in records[0] or "-slow" in path.stem:
            continue
        keys = sorted({(r["labels"], r["mechanism"]) for r in records})
        for labels, mechanism in keys:
            chosen = f"{path.stem.replace('-', '/', 1)}/{labels}/{mechanism}"
            print(f"\n## {chosen}\n")
            for make_table in (ranking_table, words_table, chances_table):
                print(make_table(path.parent, chosen), "\n")
            share = far_behind(some(path.parent, chosen))
            print(f"behind the best baseline by more than {FAR_BEHIND}: {share:.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kind", default="table", choices=("table", "text", "image"))
    parser.add_argument("--part", default="development")
    parser.add_argument("--labels", type=int, nargs="+", default=list(LABELS))
    parser.add_argument("--mechanisms", nargs="+", default=["random"])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", nargs="+", default=list(ROWS))
    parser.add_argument("--only", nargs="+", help="names of tasks")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="tables, nothing is run")
    args = parser.parse_args()
    if args.show:
        show(args.out)
        return
    out = args.out or place(args.kind, args.part)
    out.parent.mkdir(parents=True, exist_ok=True)
    done = {(r["task"], r["labels"], r["mechanism"], r["draw"]) for r in read(out)}
    todo = [cell for cell in cells(args) if cell.key not in done]
    rows = tuple(args.rows)
    with ProcessPoolExecutor(args.jobs) as pool, out.open("a") as file:
        waiting = {pool.submit(run, cell, rows, args.cache): cell for cell in todo}
        for i, future in enumerate(as_completed(waiting), 1):
            try:
                record = future.result()
            except Exception as error:
                print(f"{waiting[future].key}: {type(error).__name__}: {error}"[:300])
                continue
            file.write(json.dumps(record) + "\n")
            file.flush()
            first = record["rows"].get(rows[0], {})
            print(
                f"{i}/{len(todo)} {waiting[future].key} {first.get('ap')}", flush=True
            )


if __name__ == "__main__":
    main()
