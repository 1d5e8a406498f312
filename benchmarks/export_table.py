"""Fit every method at its defaults, export it to ONNX, and write the table of the docs.

    python benchmarks/export_table.py

Small data, one thread, a few minutes: what counts is whether a graph exists and how far
its answers lie from the model's.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from denspu import make_pu
from denspu._registry import registry
from denspu.exceptions import ModelFileError
from denspu.persistence.onnx import export_onnx

PAGE = Path(__file__).parents[1] / "docs" / "export.md"
BEGIN, END = "<!-- exported -->\n", "<!-- end exported -->\n"
KINDS = ("table", "images", "embeddings")


def sets():
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


def cell(entry, pu, folder):
    model = entry.build(random_state=0).fit(pu.X, pu.y)
    try:
        found = export_onnx(model, folder / "m.onnx", sample=pu.X, overwrite=True)
    except ModelFileError as error:
        return f"no: {str(error).split(': ', 1)[1]}"
    return f"{max(found.score_difference, found.probability_difference):.0e}"


def table():
    data = sets()
    lines = [f"| method | {' | '.join(KINDS)} |", "|---|" + "---|" * len(KINDS)]
    with tempfile.TemporaryDirectory() as folder:
        for entry in registry().of_kind("method").values():
            found = [cell(entry, data[kind], Path(folder)) for kind in KINDS]
            lines.append(f"| `{entry.key}` | {' | '.join(found)} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def main():
    warnings.simplefilter("ignore")
    made = table()
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + made + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
