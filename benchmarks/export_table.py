"""Fit methods at their defaults, export it to ONNX, and compare the answers.

    python benchmarks/export_table.py

Small data, one thread, a few minutes: what counts is whether a graph exists and how far
its answers lie from the model's. The newest record of a method and a kind counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from denspu import make_pu
from denspu._registry import Entry, registry
from denspu.benchmark import Record, device_name, read_records, write_record
from denspu.data import PUDataset
from denspu.exceptions import ModelFileError

RECORDS = Path(__file__).parent / "records" / "export.jsonl"
KINDS = ("table", "images", "embeddings")
DATASETS = {
    "table": "breast_cancer",
    "images": "digits",
    "embeddings": "breast_cancer, rows of length 1",
}
FIGURES = ("score_difference", "probability_difference")


def sets() -> dict[str, PUDataset]:
    """Return PU rows of each kind."""
    X, y = load_breast_cancer(return_X_y=True)
    unit = (X - X.mean(0)) / X.std(0)
    unit = (unit / np.linalg.norm(unit, axis=1, keepdims=True)).astype(np.float32)
    pixels, digit = load_digits(return_X_y=True)
    pixels = (15 * pixels[:400]).reshape(-1, 8, 8, 1).astype(np.uint8)
    even = (digit[:400] % 2 == 0).astype(int)
    rows = {"table": (X, y), "images": (pixels, even), "embeddings": (unit, y)}
    return {
        kind: make_pu(X, y, n_labeled=0.3, random_state=0)
        for kind, (X, y) in rows.items()
    }


def exported(entry: Entry, kind: str, pu: PUDataset, folder: Path) -> Record:
    """Fit, export, and return what the comparison says, or why there is no graph."""
    from denspu.persistence.onnx import export_onnx  # needs the extra

    start = time.perf_counter()
    model = entry.build(random_state=0).fit(pu.X, pu.y)
    fitted = time.perf_counter()
    estimates: dict[str, float] = {}
    extra: dict[str, Any] = {}
    try:
        found = export_onnx(model, folder / "m.onnx", sample=pu.X, overwrite=True)
        estimates = {name: getattr(found, name) for name in FIGURES}
    except ModelFileError as error:
        extra["refused"] = str(error).split(": ", 1)[-1]
    end = time.perf_counter()
    return Record(
        dataset=DATASETS[kind],
        method=entry.key,
        variant=kind,
        n_labeled=pu.n_labeled,
        seed=0,
        metrics={},
        estimates=estimates,
        seconds={"fit": fitted - start, "export": end - fitted, "total": end - start},
        device=device_name(getattr(model, "device_", "cpu")),
        extra=extra,
    )


def graphs() -> list[str]:
    """Return the methods that train a network, dens_pu among them."""
    return [key for key, entry in registry().of_kind("method").items() if entry.deep]


def told(record: Record | None) -> str:
    """Return one cell of the table."""
    if record is None:
        return "not measured"
    if "refused" in record.extra:
        return f"no: {record.extra['refused']}"
    return f"{max(record.estimates[name] for name in FIGURES):.0e}"


def table(path: Path = RECORDS) -> str:
    """Return the Markdown table of the methods that have a graph."""
    newest = {(record.method, record.variant): record for record in read_records(path)}
    lines = [f"| method | {' | '.join(KINDS)} |", "|---|" + "---|" * len(KINDS)]
    for key in graphs():
        cells = [told(newest.get((key, kind))) for kind in KINDS]
        lines.append(f"| `{key}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--out", type=Path, default=RECORDS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    known = registry().of_kind("method")
    data = sets()
    with tempfile.TemporaryDirectory() as folder:
        for key in args.methods or graphs():
            for kind, pu in data.items():
                record = exported(known[key], kind, pu, Path(folder))
                write_record(record, args.out)
                print(f"{key:<18} {kind:<11} {told(record)}", flush=True)


if __name__ == "__main__":
    main()
