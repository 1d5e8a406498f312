"""The table of exported methods: what the newest records say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from denspu._registry import registry
from denspu.benchmark import Record, write_record

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "export_table.py"


def load():
    spec = importlib.util.spec_from_file_location("export_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(path, method, kind, *differences, **extra):
    names = ("score_difference", "probability_difference")
    found = dict(zip(names, differences, strict=False))
    write_record(Record("d", method, kind, 9, 0, {}, found, {}, "cpu", extra), path)


def test_the_newest_record_counts_and_gaps_are_told(tmp_path):
    out = tmp_path / "export.jsonl"
    write(out, "upu", "table", 1.0, 2.0)
    write(out, "upu", "table", 1e-9, 3e-6)
    write(out, "upu", "images", refused="no graph")
    lines = load().table(out).splitlines()
    assert lines[0] == "| method | table | images | embeddings |"
    assert "| `upu` | 3e-06 | no: no graph | not measured |" in lines
    assert len(lines) == 2 + len(registry().of_kind("method"))
