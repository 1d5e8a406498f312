"""What estimates of the share of positives have meant on development tables.

    python benchmarks/real.py --part development --labels 40 --rows "DensPU()"
    python benchmarks/learn_shares.py     # writes src/denspu/priors/experience.json

Reads what ``real.py`` recorded: what was seen of each labelling, and the truth. The
figures that are printed judge each source by the others.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import real
from denspu.priors import experience
from denspu.priors.experience import FEATURES, OUTSIDE, TOWARDS, Experience, log_odds

DIGITS = 4


def judged(low: Any, value: Any, high: Any, truth: Any) -> str:
    """Return coverage, width, interval score at a nominal 90 %, and mean error."""
    miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    width = high - low
    return (
        f"coverage {np.mean(miss == 0):.3f}, width {width.mean():.3f}, "
        f"score {np.mean(width + 20 * miss):.3f}, "
        f"mean error {np.abs(value - truth).mean():.3f}"
    )


def main() -> None:
    rows = [
        (record, said)
        for record in real.read(real.place("table", "development"))
        if record["mechanism"] == "random"
        and (said := record["rows"].get("DensPU()", {}).get("seen"))
    ]
    sources = np.array([record["source"] for record, _ in rows])
    truth = np.array([record["share"] for record, _ in rows])
    centre = np.array([said["centre"] for _, said in rows])
    names, count = np.unique(sources, return_counts=True)
    known = Experience(
        np.array([[said[name] for name in FEATURES] for _, said in rows]),
        np.array([log_odds(share) for share in truth]) - centre,
        1 / count[np.searchsorted(names, sources)],
    )
    at = np.array([OUTSIDE, TOWARDS, 1 - OUTSIDE])
    found = []
    for source, seen, middle in zip(sources, known.seen, centre, strict=True):
        out = sources == source
        others = replace(known, weight=np.where(out, 0.0, known.weight))
        found.append(expit(middle + others.quantiles(seen, at)))
    print(f"{len(rows)} labellings of {len(names)} sources")
    print("share:", judged(*np.transpose(found), truth))
    print(
        f"mean error of the middle estimate: {np.abs(expit(centre) - truth).mean():.3f}"
    )
    columns = {name: known.seen[:, i] for i, name in enumerate(FEATURES)}
    columns |= {"off": known.off, "weight": known.weight}
    lines = [
        f' "{name}": {json.dumps(np.round(values, DIGITS).tolist())}'
        for name, values in columns.items()
    ]
    path = Path(experience.__file__).with_name("experience.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
