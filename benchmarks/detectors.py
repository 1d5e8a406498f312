"""Every implementation of the boundary side by side in one run.

    python benchmarks/detectors.py                         # the paper's sizes, CPU
    python benchmarks/detectors.py --scale 10 --only ours sklearn
    python benchmarks/detectors.py --device cuda

Rows are positives densified by midpoints, as the paper's boundary sees them; queries
lie between such rows and others. Each implementation gets one warm-up call on a small
part, then fit and ``score_samples`` are timed. Peak memory is what the call adds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent / "records" / "detectors.jsonl"
THREADS = 2


def data(n_fit: int, n_score: int, d: int) -> tuple[Any, Any]:
    """Return densified positives with their encodings, and queries."""
    import numpy as np

    from denspu.density import Midpoint

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, d)).astype(np.float32)
    positive = np.maximum(
        centres[rng.integers(4, size=1_000)]
        + rng.normal(size=(1_000, d)).astype(np.float32),
        0,
    )
    pairs = min(499_500, -(-(n_fit - 1_000) // 11))
    dense = Midpoint(n_pairs=pairs).densify(positive, rng)
    Z = np.concatenate([dense, positive])[:n_fit]
    near = Z[rng.integers(len(Z), size=n_score)]
    far = np.maximum(rng.normal(size=(n_score, d)).astype(np.float32), 0)
    mix = rng.random((n_score, 1)).astype(np.float32)
    return Z, mix * near + (1 - mix) * far


def implementations(device: str, trees: int) -> dict[str, Callable[[int], Any]]:
    """Return a maker of each implementation, given a seed; those installed."""
    from denspu.detectors import IsolationForest

    def ours(**kw: Any) -> Callable[[int], Any]:
        return lambda seed: IsolationForest(
            n_estimators=trees, random_state=seed, n_jobs=THREADS, device=device, **kw
        )

    if device != "cpu":
        return {"ours": ours()}
    found: dict[str, Callable[[int], Any]] = {"ours": ours()}
    found["ours (torch engine)"] = ours(engine="torch")

    def sklearn(seed: int) -> Any:
        from sklearn.ensemble import IsolationForest as Theirs

        return Theirs(n_estimators=trees, random_state=seed, n_jobs=THREADS)

    found["sklearn"] = sklearn
    try:
        from coniferest.isoforest import IsolationForest as Conifer
    except ImportError:
        pass
    else:
        found["coniferest"] = lambda seed: Conifer(
            n_trees=trees, n_subsamples=256, random_seed=seed, n_jobs=THREADS
        )
    try:
        from pyod.models.iforest import IForest
    except ImportError:
        pass
    else:
        found["pyod"] = lambda seed: PyOD(
            IForest(n_estimators=trees, random_state=seed, n_jobs=THREADS)
        )
    return found


class PyOD:
    """PyOD's vocabulary in ours; it has no contamination='auto' and scores twice."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, Z: Any) -> PyOD:
        self.model.fit(Z)
        return self

    def score_samples(self, Z: Any) -> Any:
        return -self.model.decision_function(Z)


def device_mb(device: str) -> float:
    """Return the GPU memory in use at the peak so far."""
    if device == "cpu":
        return 0.0
    import torch

    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**20


def timed(make: Callable[[int], Any], Z: Any, Q: Any) -> tuple[Any, dict[str, float]]:
    """Warm up, then return the scores of one fit and their seconds and memory."""
    from _shared import peak_memory

    make(0).fit(Z[:512]).score_samples(Q[:512])
    facts: dict[str, float] = {}
    device = str(getattr(Z, "device", "cpu"))
    before = device_mb(device)
    with peak_memory(facts):
        start = time.perf_counter()
        model = make(0).fit(Z)
        middle = time.perf_counter()
        scores = model.score_samples(Q)
        end = time.perf_counter()
    if device != "cpu":
        facts["peak_mb"] = device_mb(device) - before
    return scores, {
        **facts,
        "fit": middle - start,
        "score": end - middle,
        "total": end - start,
    }


def agreement(makers: dict[str, Any], Z: Any, Q: Any, seeds: int) -> dict[str, float]:
    """Return Spearman of ours with scikit-learn, and of scikit-learn with itself."""
    import numpy as np
    from scipy.stats import spearmanr

    part = Q[:5_000]
    theirs = [
        makers["sklearn"](seed).fit(Z).score_samples(part) for seed in range(seeds + 1)
    ]
    ours = [makers["ours"](seed).fit(Z).score_samples(part) for seed in range(seeds)]
    own = [spearmanr(theirs[i], theirs[i + 1])[0] for i in range(seeds)]
    cross = [spearmanr(ours[i], theirs[i])[0] for i in range(seeds)]
    return {
        "spearman_ours_sklearn": float(np.mean(cross)),
        "spearman_sklearn_sklearn": float(np.mean(own)),
        "seeds": seeds,
    }


def on_device(array: Any, device: str) -> Any:
    if device == "cpu":
        return array
    import torch

    tensor = torch.from_numpy(array).to(device)
    torch.cuda.synchronize()
    return tensor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit-rows", type=int, default=177_000)
    parser.add_argument("--score-rows", type=int, default=49_000)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--trees", type=int, default=1_000)
    parser.add_argument("--scale", type=int, default=1, help="times as many rows")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="+", help="implementations to run")
    parser.add_argument("--agreement-seeds", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RECORDS)
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))

    from denspu.benchmark import Record, device_name, write_record

    n_fit, n_score = args.fit_rows * args.scale, args.score_rows * args.scale
    Z, Q = (on_device(a, args.device) for a in data(n_fit, n_score, args.features))
    makers = implementations(args.device, args.trees)
    chosen = {k: v for k, v in makers.items() if not args.only or k in args.only}
    rows: dict[str, dict[str, float]] = {}
    scores: dict[str, Any] = {}
    for name, make in chosen.items():
        scores[name], rows[name] = timed(make, Z, Q)
        print(name, {k: round(v, 3) for k, v in rows[name].items()}, flush=True)
    extra = (
        agreement(makers, Z, Q, args.agreement_seeds) if args.agreement_seeds else {}
    )
    base = rows.get("sklearn", {}).get("total")
    for name, facts in rows.items():
        write_record(
            Record(
                dataset=f"synthetic fit {n_fit}x{args.features}, score {n_score}",
                method="isolation_forest",
                variant=name,
                n_labeled=1_000,
                seed=0,
                metrics={},
                estimates=spearman(scores, name),
                seconds={k: facts[k] for k in ("fit", "score", "total")},
                device=device_name(args.device),
                extra={
                    "peak_mb": facts["peak_mb"],
                    "trees": args.trees,
                    "threads": THREADS,
                    **({"times_faster": base / facts["total"]} if base else {}),
                    **(extra if name == "ours" else {}),
                },
            ),
            args.out,
        )
    for name, facts in rows.items():
        print(name, {k: round(v, 2) for k, v in facts.items()}, extra)


def spearman(scores: dict[str, Any], name: str) -> dict[str, float]:
    if "sklearn" not in scores or name == "sklearn":
        return {}
    from scipy.stats import spearmanr

    return {"spearman_sklearn": float(spearmanr(scores[name], scores["sklearn"])[0])}


def table(out: Path) -> str:
    """Return the Markdown table of the records: ratios on CPUs, seconds on GPUs."""
    from denspu.benchmark import read_records

    note = ""
    lines = [
        "| rows | machine | implementation | times faster than scikit-learn "
        "| added MB | Spearman with scikit-learn | seconds (GPU) |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in read_records(out):
        gpu = not r.device.startswith("cpu")
        cells = [
            r.dataset.removeprefix("synthetic "),
            r.device,
            r.variant,
            f"{r.extra['times_faster']:.1f}" if "times_faster" in r.extra else "",
            f"{r.extra['peak_mb']:.0f}",
            "{:.3f}".format(*r.estimates.values()) if r.estimates else "",
            f"{r.seconds['total']:.2f}" if gpu else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
        if "spearman_sklearn_sklearn" in r.extra:
            own, ours = (r.extra[f"spearman_{k}_sklearn"] for k in ("sklearn", "ours"))
            note = (
                f"Mean Spearman over {r.extra['seeds']} seeds: {ours:.3f} between our "
                f"trees and scikit-learn's, {own:.3f} between scikit-learn's under two "
                "seeds."
            )
    return "\n".join([*lines, "", note])


if __name__ == "__main__":
    main()
