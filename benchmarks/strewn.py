"""Does a fit notice labels that say nothing, and leave true ones in peace?

    python benchmarks/strewn.py            # 50 fits each, records/real/strewn.jsonl
    python benchmarks/strewn.py --show     # the table from the records

Forty labels are drawn ten times on each of five development tables, which were chosen
by name before anything was run: among the positives, or strewn over all rows. Finished
fits are skipped.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from denspu import DensPU
from real_data import Task, load, tasks

RECORD = Path(__file__).parent / "records" / "real" / "strewn.jsonl"
TABLES = ("vehicle", "segment", "wdbc", "spambase", "yeast1")
LABELS, DRAWS = 40, 10
SORTS = ("true", "strewn")


def fitted(task: Task, sort: str, draw: int, cache: Path | None) -> dict[str, Any]:
    """Return what a fit says of its labels."""
    X, y = load(task, cache)
    rng = np.random.default_rng([SORTS.index(sort), draw])
    among = np.flatnonzero(y) if sort == "true" else np.arange(len(y))
    label = np.zeros(len(y), dtype=np.int64)
    label[rng.choice(among, LABELS, replace=False)] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DensPU(random_state=draw).fit(X, label)
    return {
        "table": task.name,
        "labels": sort,
        "draw": draw,
        "luck": float(model.refiner_.luck_),
        "lead": model.refiner_.lead_,
        "alarms": [check.name for check in model.checks_ if check.ok is False],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--show", action="store_true", help="the table alone")
    parser.add_argument("--cache", type=Path, help="where packages are kept")
    given = parser.parse_args()
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    found = [json.loads(line) for line in lines]
    done = {(one["table"], one["labels"], one["draw"]) for one in found}
    of = {task.name: task for task in tasks("table", "development")}
    for name in () if given.show else TABLES:
        for sort in SORTS:
            for draw in range(DRAWS):
                if (name, sort, draw) in done:
                    continue
                entry = fitted(of[name], sort, draw, given.cache)
                found.append(entry)
                with RECORD.open("a") as file:
                    file.write(json.dumps(entry) + "\n")
                print(entry, flush=True)
    for alarm in ("labels tell something", "ranking", "labels alike"):
        for sort in SORTS:
            hits = {
                name: sum(
                    alarm in one["alarms"]
                    for one in found
                    if (one["table"], one["labels"]) == (name, sort)
                )
                for name in TABLES
            }
            print(f"{alarm:22} {sort:7} {sum(hits.values()):3} {hits}")


if __name__ == "__main__":
    main()
