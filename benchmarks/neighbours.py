"""Neighbour detectors against scikit-learn, and what they cost on millions of rows.

    python benchmarks/neighbours.py exact      # 50,000 x 512, k = 500
    python benchmarks/neighbours.py millions   # density ratio, 800 in 2,000,000 x 30
    python benchmarks/neighbours.py stream     # forest scores from a memory map

One run each, two threads; every figure is printed and recorded.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from _shared import peak_memory
from denspu.benchmark import (
    Record,
    device_name,
    read_records,
    write_record,
)
from denspu.detectors import DensityRatio, IsolationForest, KNNDistance
from denspu.detectors.neighbours import Neighbours

THREADS = 2
RECORDS = Path(__file__).parent / "records" / "neighbours.jsonl"


def keep(
    out: Path, method: str, variant: str, dataset: str, seconds: Any, extra: Any
) -> None:
    """Print and record one measurement."""
    print(f"{method} | {variant} | {dataset} | {seconds} | {extra}", flush=True)
    write_record(
        Record(
            dataset=dataset,
            method=method,
            variant=variant,
            n_labeled=extra.get("positives", 0),
            seed=0,
            metrics={},
            estimates={},
            seconds=seconds,
            device=device_name("cpu"),
            extra={"threads": THREADS, **extra},
        ),
        out,
    )


def exact(out: Path, n: int, d: int, k: int) -> None:
    """Compare the k nearest of all rows with scikit-learn's brute force."""
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(20, d))
    Z = (centres[rng.integers(20, size=n)] + rng.normal(size=(n, d))).astype("f4")
    dataset = f"synthetic {n}x{d}, k={k}"
    list(Neighbours(Z[:1_000]).search(Z[:1_000], 10))
    facts: dict[str, float] = {}
    with peak_memory(facts):
        start = time.perf_counter()
        ours = np.concatenate([f.index for f in Neighbours(Z).search(Z, k)])
        our_seconds = time.perf_counter() - start
    brute = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=THREADS).fit(Z)
    brute.kneighbors(Z[:1_000])
    start = time.perf_counter()
    theirs = brute.kneighbors(Z)[1]
    their_seconds = time.perf_counter() - start
    same = np.mean(
        [len(np.intersect1d(a, b)) for a, b in zip(ours, theirs, strict=True)]
    )
    keep(out, "neighbours", "sklearn brute", dataset, {"total": their_seconds}, {})
    extra = {
        "same_neighbours": float(same / k),
        "times_faster": their_seconds / our_seconds,
        **facts,
    }
    keep(out, "neighbours", "ours", dataset, {"total": our_seconds}, extra)
    knn = KNNDistance(n_neighbors=k, contamination="auto", device="cpu")
    knn._fit(Z, None)  # the threshold would search a second time
    start = time.perf_counter()
    knn._score(Z)
    seconds = time.perf_counter() - start
    faster = {"times_faster": their_seconds / seconds}
    keep(out, "knn", "scores", dataset, {"total": seconds}, faster)
    positive = np.arange(n) < 1_000
    ratio = DensityRatio(
        around="rows", n_neighbors=k, max_unlabeled=None, device="cpu"
    ).fit(Z, positive.astype(int))
    start = time.perf_counter()
    ratio.score_samples(Z)
    seconds = time.perf_counter() - start
    faster = {"times_faster": their_seconds / seconds, "positives": 1_000}
    keep(out, "density_ratio", "scores", dataset, {"total": seconds}, faster)


def rare(n: int, d: int, rng: np.random.Generator, prior: float) -> tuple[Any, Any]:
    """Return overlapping classes with few positives."""
    positive = rng.random(n) < prior
    Z = rng.normal(size=(n, d)).astype("f4")
    Z[positive, :5] += 2.0
    return Z, positive


def millions(out: Path, n: int, d: int, n_labeled: int) -> None:
    """Score all rows of a large table, and compare with the exact ratio on a part."""
    from scipy.stats import spearmanr
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    Z, true = rare(n, d, rng, prior=0.001)
    labelled = rng.choice(np.flatnonzero(true), n_labeled, replace=False)
    y = np.zeros(n, int)
    y[labelled] = 1
    detector = DensityRatio(random_state=0, device="cpu")
    facts: dict[str, float] = {}
    with peak_memory(facts):
        start = time.perf_counter()
        scores = detector.fit(Z, y).score_samples(Z)
        seconds = time.perf_counter() - start
    part = rng.choice(n, 100_000, replace=False)
    part = np.union1d(part, labelled)
    share = DensityRatio(max_unlabeled=None, device="cpu").fit(Z[part], y[part])
    start = time.perf_counter()
    whole = share.score_samples(Z[part])
    exact_seconds = time.perf_counter() - start
    sampled = DensityRatio(random_state=0, device="cpu")
    quick = sampled.fit(Z[part], y[part]).score_samples(Z[part])
    rest = y == 0
    extra = {
        "positives": n_labeled,
        **facts,
        "auc_of_unlabelled": float(roc_auc_score(true[rest], scores[rest])),
        "spearman_with_exact_on_100000": float(spearmanr(quick, whole)[0]),
        "auc_exact_on_part": float(roc_auc_score(true[part], whole)),
        "top_1000_in_common": float(np.isin(best(quick), best(whole)).mean()),
        "auc_sampled_on_part": float(roc_auc_score(true[part], quick)),
        "exact_seconds_on_part": exact_seconds,
    }
    dataset = f"synthetic rare {n}x{d}"
    keep(out, "density_ratio", "reference sample", dataset, {"total": seconds}, extra)


def best(scores: Any) -> Any:
    """Return the 1,000 rows with the highest scores."""
    return np.argsort(-scores, kind="stable")[:1_000]


def stream(out: Path, n: int, d: int) -> None:
    """Score a memory map of n rows and of a fifth of them, best of three each."""
    rng = np.random.default_rng(0)
    forest = IsolationForest(random_state=0, n_estimators=300, n_jobs=THREADS)
    forest.set_params(device="cpu").fit(rng.normal(size=(5_000, d)).astype("f4"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        rows = np.lib.format.open_memmap(path, "w+", "f4", (n, d))
        for start in range(0, n, 100_000):
            size = min(100_000, n - start)
            rows[start : start + size] = rng.normal(size=(size, d))
        rows.flush()
        seconds = {}
        for count in (n // 5, n):
            part = np.load(path, mmap_mode="r")[:count]
            seconds[count], peak = best_of_three(forest, part)
            scores_mb = count * 8 / 2**20
            extra = {
                "peak_mb_beyond_the_scores": peak - scores_mb,
                "scores_mb": scores_mb,
                "data_mb": part.nbytes / 2**20,
            }
            if count == n:
                extra["seconds_ratio_for_5_times_the_rows"] = (
                    seconds[n] / seconds[n // 5]
                )
            total = {"total": seconds[count]}
            keep(out, "isolation_forest", "memory map", f"{count}x{d}", total, extra)


def best_of_three(forest: IsolationForest, part: Any) -> tuple[float, float]:
    """Return the shortest seconds and the largest added memory of three runs."""
    seconds, peaks = [], []
    for _ in range(3):
        facts: dict[str, float] = {}
        with peak_memory(facts):
            start = time.perf_counter()
            forest.score_samples(part)
            seconds.append(time.perf_counter() - start)
        peaks.append(facts["peak_mb"])
    return min(seconds), max(peaks)


def table(out: Path) -> str:
    """Return the Markdown table of the records."""
    lines = ["| what | rows | figures |", "|---|---|---|"]
    for r in read_records(out):
        figures = {k: v for k, v in r.extra.items() if k not in ("threads",)}
        shown = ", ".join(f"{k.replace('_', ' ')} {v:.4g}" for k, v in figures.items())
        if shown:
            lines.append(f"| {r.method}, {r.variant} | {r.dataset} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["exact", "millions", "stream"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--out", type=Path, default=RECORDS)
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    if args.what == "exact":
        exact(args.out, args.rows or 50_000, 512, 500)
    elif args.what == "millions":
        millions(args.out, args.rows or 2_000_000, 30, 800)
    else:
        stream(args.out, args.rows or 5_000_000, 64)


if __name__ == "__main__":
    main()
