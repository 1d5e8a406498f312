"""What estimates of the share of positives have meant on development tables.

    python benchmarks/real.py --part development --rows "DensPU()"
    python benchmarks/learn_shares.py     # writes src/denspu/priors/experience.json

Reads what ``real.py`` recorded: the estimates, how well P and U are told apart, and the
truth. A ridge regression says how far the truth lies from the centre estimate, in
log-odds; how far it misses, by the overlap of the classes, gives the interval. A source
counts once, however many tasks and draws it has. The figures that are printed leave out
the source that is judged.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import real
from denspu.priors import experience

FEATURES = (
    "area",
    "area_squared",
    "area_from_centre",
    "between",
    "above_from_centre",
    "density_ratio",
    "dedpul",
    "mixture",
)
SCALE = ("area", "between")
RIDGE = 1.0
OUTSIDE = 0.04
"""Share of the misses beyond each end: a little under a twentieth, since sources that
were not seen miss by more."""
LEAST_SCALE = 0.15
FOLDS = 15


def learn(
    seen: np.ndarray, by: np.ndarray, off: np.ndarray, weight: np.ndarray
) -> dict[str, Any]:
    """Return weights and ends."""
    mean, spread = seen.mean(axis=0), seen.std(axis=0)
    table = np.column_stack([np.ones(len(seen)), (seen - mean) / spread])
    penalty = np.diag([0.0] + [RIDGE] * len(mean))
    weighted = table * weight[:, None]
    found = np.linalg.solve(weighted.T @ table + penalty, weighted.T @ off)
    miss = off - table @ found
    root = np.sqrt(weight)
    scale = np.linalg.lstsq(by * root[:, None], np.abs(miss) * root, rcond=None)[0]
    ratio = miss / np.maximum(by @ scale, LEAST_SCALE)
    order = np.argsort(ratio)
    share = np.cumsum(weight[order]) / weight.sum()
    ends = [
        float(ratio[order][np.searchsorted(share, q)]) for q in (OUTSIDE, 1 - OUTSIDE)
    ]
    weights = found[1:] / spread
    return {
        "features": list(FEATURES),
        "weights": weights.tolist(),
        "intercept": float(found[0] - mean @ weights),
        "scale_features": list(SCALE),
        "scale": scale.tolist(),
        "least_scale": LEAST_SCALE,
        "ends": ends,
    }


def judged(low: Any, high: Any, truth: Any) -> str:
    """Return coverage, width and interval score at a nominal 90 %."""
    miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    width = high - low
    return (
        f"coverage {np.mean(miss == 0):.3f}, width {width.mean():.3f}, "
        f"score {np.mean(width + 20 * miss):.3f}"
    )


def main() -> None:
    rows = [
        (record, said)
        for record in real.read(real.place("table", "development"))
        if record["mechanism"] == "random"
        and (said := record["rows"].get("DensPU()", {}).get("seen"))
    ]
    seen = np.array([[said[name] for name in FEATURES] for _, said in rows])
    by = np.array([[1.0, *(said[name] for name in SCALE)] for _, said in rows])
    centre = np.array([said["centre"] for _, said in rows])
    truth = np.array([record["share"] for record, _ in rows])
    off = np.array([experience.log_odds(share) for share in truth]) - centre
    sources = np.array([record["source"] for record, _ in rows])
    names, count = np.unique(sources, return_counts=True)
    weight = 1 / count[np.searchsorted(names, sources)]
    fold = np.array([zlib.crc32(name.encode()) % FOLDS for name in sources])
    value, low, high = np.zeros((3, len(rows)))
    for part in range(FOLDS):
        out = fold == part
        known = learn(seen[~out], by[~out], off[~out], weight[~out])
        at = centre[out] + known["intercept"] + seen[out] @ known["weights"]
        scale = np.maximum(LEAST_SCALE, by[out] @ known["scale"])
        value[out] = expit(at)
        low[out] = expit(at + known["ends"][0] * scale)
        high[out] = expit(at + known["ends"][1] * scale)
    print(f"{len(rows)} draws of {len(names)} sources, each judged by the others")
    print("share:", judged(low, high, truth))
    print(
        f"mean error {np.abs(value - truth).mean():.3f}, of the centre estimate "
        f"{np.abs(expit(centre) - truth).mean():.3f}"
    )
    known = learn(seen, by, off, weight) | {"draws": len(rows), "sources": len(names)}
    path = Path(experience.__file__).with_name("experience.json")
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(f"written: {path.name}")


if __name__ == "__main__":
    main()
