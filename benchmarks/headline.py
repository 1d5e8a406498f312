"""The small table of README: accuracy of the default beside the best rivals.

    python benchmarks/headline.py

Made from the records of the specs and of benchmarks/digits.py. A rival is any other row
of the same task and machine; rows that see true labels of U are none.
"""

from __future__ import annotations

import json
import tomllib
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

HERE = Path(__file__).parent
RECORDS = HERE / "records"
HEAD = ("task", "machine", "`DensPU()`", "best rival", "best, told the share")
TASKS = (
    ("digits", "two cores", "digits", "default", "digits"),
    (
        "Fashion-MNIST",
        "two cores",
        "specs/no-gpu",
        "Dens-PU, our default, on a CPU",
        "fashion-mnist",
    ),
    (
        "CIFAR-10",
        "two cores",
        "specs/no-gpu",
        "Dens-PU, our default, on a CPU",
        "cifar10",
    ),
    (
        "Fashion-MNIST",
        "one H200",
        "specs/table2-fmnist",
        "Dens-PU, our default",
        "fashion-mnist",
    ),
    (
        "CIFAR-10",
        "one H200",
        "specs/table2-cifar10",
        "Dens-PU, our default",
        "cifar10",
    ),
)
"""Task, machine, file of records, our row, data set."""


def told_the_prior(records: str) -> set[str]:
    """Return the rows of a spec that were told the true share of positives."""
    path = HERE / f"{records}.toml"
    rows = tomllib.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    return {row["name"] for row in rows if row.get("prior") == "true"}


def accuracies(path: Path, dataset: str) -> dict[tuple[str, str], list[float]]:
    """Return the accuracies of every row in percent, one a seed."""
    found = defaultdict(list)
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        if record["dataset"] == dataset:
            row = record["method"], record["variant"]
            found[row].append(100 * record["metrics"]["accuracy"])
    return found


def table(records: Path) -> str:
    """Return the table as Markdown."""
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    for task, machine, file, ours, dataset in TASKS:
        found = accuracies(records / f"{file}.jsonl", dataset)
        given = told_the_prior(file)
        if machine == "two cores" and file != "digits":  # the others ran on a GPU
            kept = {"PU bagging, estimated prior", ours}
            found = {row: values for row, values in found.items() if row[1] in kept}
        rivals = {
            row: values
            for row, values in found.items()
            if row[0] not in ("dens_pu", "supervised")
        }
        cells = [task, machine, shown(found["dens_pu", ours])]
        for group in (
            {r: v for r, v in rivals.items() if r[1] not in given},
            {r: v for r, v in rivals.items() if r[1] in given},
        ):
            best = max(group, key=lambda row: mean(group[row]), default=None)
            told = best and f"{shown(group[best])} `{best[0]}`"
            cells.append(told or "not run")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def shown(values: list[float]) -> str:
    """Return mean ± standard deviation."""
    return f"{mean(values):.1f} ± {stdev(values):.1f}"


if __name__ == "__main__":
    print(table(RECORDS))
